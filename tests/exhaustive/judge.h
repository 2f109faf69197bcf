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
  template <typename Order>
  [[nodiscard]] std::optional<Answer> rejected_fast(const Order& order);
  template <typename Order>
  [[nodiscard]] Answer of_both(const Order& order, const Input& input);

  Verdicts::Declared declared_;
  Through through_;
  std::uint64_t check_each_;
  std::uint64_t rejected_ = 0;
  Verdicts verdicts_;
};

}  // namespace capo::exhaustive
