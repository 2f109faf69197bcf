// The product's side: one order after another under the same declarations.
//
// The fast interface has to say what check() says. So of every order that it accepts, and of every
// 997th that it rejects, check() is asked as well; an answer of its own shows as the rule
// "check() differs", which no oracle gives.

#pragma once

#include <capo/core/rules/verdicts.h>
#include <capo/tests/exhaustive/answer.h>
#include <capo/tests/exhaustive/options.h>

#include <cstdint>
#include <vector>

namespace capo::exhaustive {

class Judge {
 public:
  Judge(Verdicts::Declared declared, Through through);

  [[nodiscard]] Answer of(const std::vector<TeEntry>& list);
  [[nodiscard]] Answer of(const Input& input);
  /// The same with both ways asked, whatever comes.
  [[nodiscard]] Answer of_both(const std::vector<TeEntry>& list);

  /// How often check() was asked beside the fast interface.
  [[nodiscard]] std::uint64_t asked_both() const { return asked_both_; }

 private:
  [[nodiscard]] bool wants_both(const Answer& fast);
  [[nodiscard]] Answer checked(const Input& input) const;
  [[nodiscard]] Answer checked(const std::vector<TeEntry>& list) const;

  Verdicts::Declared declared_;
  Through through_;
  Verdicts verdicts_;
  std::uint64_t rejected_ = 0;
  std::uint64_t asked_both_ = 0;
};

}  // namespace capo::exhaustive
