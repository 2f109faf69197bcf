// The product's side: one order after another under the same declarations.
//
// The fast interface has to say what check() says. So both are asked, unless check() is wanted
// alone or the options want it for a part of what is rejected; where they differ the answer is the
// rule "check() differs", which no oracle gives.

#pragma once

#include "core/rules/verdicts.h"
#include "tests/exhaustive/answer.h"
#include "tests/exhaustive/options.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace capo::exhaustive {

class Judge {
 public:
  Judge(Verdicts::Declared declared, const Options& options);

  [[nodiscard]] Answer of(const std::vector<TeEntry>& list);
  [[nodiscard]] Answer of(const Input& input);

 private:
  /// The fast interface's answer; nullopt if check() is wanted alone.
  template <typename Order>
  [[nodiscard]] std::optional<Answer> asked_fast(const Order& order);
  /// Whether check() need not be asked as well.
  [[nodiscard]] bool suffices(const Answer& fast);
  /// check()'s answer, or that it differs from the fast interface's.
  [[nodiscard]] Answer compared(const Input& input, const std::optional<Answer>& fast) const;

  Verdicts::Declared declared_;
  Through through_;
  std::uint64_t check_each_;
  std::uint64_t rejected_ = 0;
  Verdicts verdicts_;
};

}  // namespace capo::exhaustive
