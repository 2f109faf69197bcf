// The findings of one check: complete in number, bounded in size, sorted by place.
//
// A list of ten million entries can break a rule ten million times. Every finding counts towards
// the verdict; the first `limit` of each rule are kept in full, and the report says how many were
// not. A caller that wants nothing but a verdict asks for the first error alone: then no words are
// kept, and a rule that names its place before it builds them is spared the building. Tested by
// diagnostics_test.cpp.

#pragma once

#include "core/diag/diagnostic.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace capo {

/// The error that a report lists first: of all errors the one at the first place, there that of the
/// first rule. A finding about the input as a whole, which has no place, comes first.
struct FirstError {
  std::string_view rule;
  std::optional<Span> place;

  friend bool operator==(const FirstError&, const FirstError&) = default;
};

class Diagnostics {
 public:
  static constexpr std::size_t kDefaultLimit = 100;

  Diagnostics() = default;
  explicit Diagnostics(std::size_t limit_per_rule) : limit_(limit_per_rule) {}
  /// Counts findings and remembers the first error, and keeps nothing.
  [[nodiscard]] static Diagnostics first_error_only();

  /// Counts a finding of `rule` and says whether it will be kept; a rule whose message is costly to
  /// build asks first and builds only if it is wanted.
  [[nodiscard]] bool wants(std::string_view rule, Severity severity = Severity::Error);
  /// Does what wants() does for a finding that will stand at `place`: a span, or nullopt for the
  /// input as a whole, or a function that returns one of these and is called only if the finding
  /// could be the first.
  template <typename Place>
  [[nodiscard]] bool wants_at(std::string_view rule, Place place,
                              Severity severity = Severity::Error) {
    if (!wants(rule, severity)) return false;
    if (!only_first_) return true;
    if constexpr (std::is_invocable_v<Place>) {
      note(rule, place());
    } else {
      note(rule, place);
    }
    return false;
  }
  /// Whether no further finding of `rule` will be kept.
  [[nodiscard]] bool full(std::string_view rule) const;
  /// Counts `number` errors of `rule` at once that nobody will describe.
  void count_unseen(std::string_view rule, std::size_t number);
  /// Keeps a finding that wants() has counted.
  void keep(Diagnostic diagnostic);
  /// wants() and keep() in one, for findings that are cheap to describe.
  void add(Diagnostic diagnostic);

  /// How many findings of `rule` were counted, kept or not.
  [[nodiscard]] std::size_t seen(std::string_view rule) const;

  /// Sorts by place and then by rule, so that equal inputs give equal lists.
  void sort();
  /// Lets `change` rewrite each finding that is kept, but for its rule, severity and place.
  template <typename Change>
  void revise(Change change) {
    for (Diagnostic& finding : kept_) change(finding);
  }
  /// Keeps `finding` alone, an error that stands for all that were found.
  void replace_by(Diagnostic finding);
  /// Keeps `finding` before all others, an error that explains them. If its rule has as many as are
  /// kept, the last of these goes.
  void put_first(Diagnostic finding);
  /// Lowers the limit: of each rule the first `limit_per_rule` findings stay, the others are
  /// counted.
  void narrow(std::size_t limit_per_rule);
  /// Forgets all findings, and keeps the limit and the mode.
  void clear();

  /// Whether nothing is kept but the place of the first error.
  [[nodiscard]] bool only_first() const { return only_first_; }
  /// nullopt if there is no error. Precondition: only_first().
  [[nodiscard]] const std::optional<FirstError>& first_error() const { return first_; }

  [[nodiscard]] const std::vector<Diagnostic>& kept() const { return kept_; }
  /// The finding that stands for all: of sorted findings the first error, or the first warning if
  /// there is no error; null if none is kept.
  [[nodiscard]] const Diagnostic* foremost() const;
  [[nodiscard]] bool empty() const { return errors_ + warnings_ == 0; }
  [[nodiscard]] std::size_t errors() const { return errors_; }
  [[nodiscard]] std::size_t warnings() const { return warnings_; }
  /// Findings that were counted and not kept.
  [[nodiscard]] std::size_t dropped() const { return errors_ + warnings_ - kept_.size(); }

 private:
  struct Count {
    std::string_view rule;
    std::size_t seen = 0;
  };

  Count& count_of(std::string_view rule);
  void note(std::string_view rule, std::optional<Span> place);

  std::size_t limit_ = kDefaultLimit;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
  std::vector<Count> counts_;
  std::vector<Diagnostic> kept_;
  bool only_first_ = false;
  std::optional<FirstError> first_;
};

}  // namespace capo
