#include "core/plan/uses.h"

#include "core/frameworks/assign.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capo {
namespace {

class Heard final : public UseVisitor {
 public:
  explicit Heard(const BufferTable& table) : UseVisitor(table), table_(table) {}
  std::vector<std::string> of_rank_0;

 private:
  void use(const BufferUse& found) override {
    if (found.rank != 0) return;
    const std::string kind(name_of(table_.at(found.buffer).kind));
    of_rank_0.push_back(std::to_string(found.entry) + " " + kind + (found.received ? " sent" : ""));
  }

  const BufferTable& table_;
};

std::vector<std::string> uses_of(const std::string& text) {
  const auto checked = testing_support::check_text(text);
  CheckOptions options{.modules = modules_of_kinds({ModuleKind::Linear})};
  options.plan.kind = PlanKind::Safe;
  const Context context(checked.input, options);
  const PlanView& view = context.plan_view();
  Heard heard(view.table());
  run_course(view.table(), view.course_of(*context.wirings().back()), heard);
  return heard.of_rank_0;
}

TEST(Uses, ComeWorkByWork) {
  EXPECT_EQ(uses_of("[1, -1]"),
            (std::vector<std::string>{"0 static input", "0 activations", "0 output",
                                      "1 grad output", "1 grad input", "1 static input",
                                      "1 grad output", "1 activations", "1 output"}));
}

TEST(Uses, ASendUsesWhatItSends) {
  const auto uses = uses_of("capo 1\nplacement chain\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  EXPECT_EQ(std::count(uses.begin(), uses.end(), "0 output sent"), 1);
}

}  // namespace
}  // namespace capo
