// The findings of one check: complete in number, bounded in size, sorted by place.
//
// A list of ten million entries can break a rule ten million times. Every finding counts towards
// the verdict; the first `limit` of each rule are kept in full, and the report says how many were
// not. Tested by diagnostics_test.cpp.

#pragma once

#include <capo/core/diag/diagnostic.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace capo {

class Diagnostics {
 public:
  static constexpr std::size_t kDefaultLimit = 100;

  Diagnostics() = default;
  explicit Diagnostics(std::size_t limit_per_rule) : limit_(limit_per_rule) {}

  /// Counts a finding of `rule` and says whether it will be kept; a rule whose message is costly to
  /// build asks first and builds only if it is wanted.
  [[nodiscard]] bool wants(std::string_view rule, Severity severity = Severity::Error);
  /// Whether no further finding of `rule` will be kept.
  [[nodiscard]] bool full(std::string_view rule) const;
  /// Counts `number` errors of `rule` at once that nobody will describe.
  void count_unseen(std::string_view rule, std::size_t number);
  /// Keeps a finding that wants() has counted.
  void keep(Diagnostic diagnostic);
  /// wants() and keep() in one, for findings that are cheap to describe.
  void add(Diagnostic diagnostic);

  /// By place, then by rule: the same input gives the same list.
  void sort();

  [[nodiscard]] const std::vector<Diagnostic>& kept() const { return kept_; }
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

  std::size_t limit_ = kDefaultLimit;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
  std::vector<Count> counts_;
  std::vector<Diagnostic> kept_;
};

}  // namespace capo
