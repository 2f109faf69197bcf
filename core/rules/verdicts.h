// Verdicts by the million: the verdict, and the rule and the place of the first error, of order
// after order under the same declarations.
//
//   Verdicts verdicts({});                       nothing declared, as check() without options
//   FirstFinding first = verdicts.of(list);      [1, -1, -1, 1]: rejected, S23 at index 2
//
// The rules are those of check(), run by the same Passes over the same Context; what is left out is
// words, warnings and results beside the verdict. Memory is used again from order to order: one
// that is wrong by itself, or of which only the shape is judged, costs no allocation.
//
// Most orders that a search or an enumeration comes to are wrong by themselves, so a list is
// counted first, with the tallies that the rules of shape read, and only from where it differs from
// the list before. Where every chunk has what it must have, the rules of shape can say nothing but
// that entries run ahead of what they need, and the first that does is known from the counting.
// Everything else is left to the rules.
//
// It is for programs that search for orders (docs/verdicts.md) and for `check --batch --verdicts`.
// Minimise asks whether a certain rule is still broken anywhere, warnings included, where this
// knows the first error alone.
//
// verdicts_test.cpp, tests/exhaustive and fuzz_verdicts test that this is check()'s answer;
// bench_verdicts prints how fast it is.

#pragma once

#include "core/diag/span.h"
#include "core/frameworks/te/from_te_list.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "core/rules/verdict.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace capo {

struct FirstFinding {
  Verdict verdict = Verdict::NoVerdict;
  /// The rule of the error that a report lists first: by place, then by rule; empty if there is
  /// none.
  std::string_view rule;
  /// nullopt if the finding is about the input as a whole.
  std::optional<Place> place;

  friend bool operator==(const FirstFinding&, const FirstFinding&) = default;
};

class Verdicts {
 public:
  struct Declared {
    TeDeclarations list;                        ///< holds for each TE list
    Topology topology = Topology::Independent;  ///< holds for each TE list; not Custom
    CheckOptions options;
  };

  explicit Verdicts(Declared declared);
  Verdicts(Verdicts&&) noexcept;
  Verdicts& operator=(Verdicts&&) noexcept;
  ~Verdicts();

  /// Judges a TE list. The offsets of its entries in a text do not matter.
  [[nodiscard]] FirstFinding of(std::span<const TeEntry> list);
  /// Judges any input. Declarations inside the input win over `Declared`. Precondition: the spans
  /// of its entries are disjoint and ascend in the order of the ranks.
  [[nodiscard]] FirstFinding of(const Input& input);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace capo
