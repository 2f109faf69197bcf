#include "core/plan/uses.h"

#include "core/frameworks/assign.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "core/rules/wiring.h"
#include "tests/support/check_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace capo {
namespace {

using Lines = std::vector<std::string>;

// Hears "1 grad output of 2 by a transfer": the entry, and the buffer with its chunk.
class Heard final : public UseVisitor {
 public:
  explicit Heard(const BufferTable& table) : UseVisitor(table), table_(table) {}
  Lines of_rank_0;

 private:
  void use(const BufferUse& found) override {
    if (found.rank != 0) return;
    const Buffer buffer = table_.at(found.buffer);
    of_rank_0.push_back(fmt::format("{} {} of {}{}", found.entry, name_of(buffer.kind),
                                    buffer.chunk, found.received ? " by a transfer" : ""));
  }

  const BufferTable& table_;
};

Lines uses_of(const std::string& text) {
  const auto checked = testing_support::check_text(text);
  CheckOptions options{.modules = modules_of_kinds({ModuleKind::Linear})};
  options.plan.kind = PlanKind::Safe;
  const Context context(checked.input, options);
  const PlanView& view = context.plan_view();
  Heard heard(view.table());
  run_course(view.table(), view.course_of(*context.wirings().back()), heard);
  heard.end();
  return heard.of_rank_0;
}

TEST(Uses, ComeWorkByWork) {
  EXPECT_EQ(uses_of("[1, -1]"),
            (Lines{"0 static input of 1", "0 activations of 1", "0 output of 1",
                   "1 grad output of 1", "1 grad input of 1", "1 static input of 1",
                   "1 grad output of 1", "1 activations of 1", "1 output of 1"}));
}

TEST(Uses, ASendUsesWhatItSends) {
  const auto uses = uses_of("capo 1\nplacement chain\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  EXPECT_EQ(std::count(uses.begin(), uses.end(), "0 output of 1 by a transfer"), 1);
}

TEST(Uses, AComputationUsesWhatTheStageBeforeItMade) {
  const Lines uses = uses_of("capo 1\nplacement loop\nrank 0: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_EQ(std::count(uses.begin(), uses.end(), "1 output of 1"), 1);
  EXPECT_EQ(std::count(uses.begin(), uses.end(), "3 grad input of 2"), 1);
}

// The gradient of a chunk of the model is sent while the next backward runs.
TEST(Uses, ABackwardUsesTheGradientThatTheOneBeforeItHandsOn) {
  const std::string order = "rank 0: F1.0 F2.0 B2.0 B1.0\n";
  const Lines uses = uses_of("capo 1\nrank 0 model-chunks 1,1\n" + order);
  EXPECT_EQ(std::count(uses.begin(), uses.end(), "3 grad input of 2"), 1);
  const Lines undeclared = uses_of("capo 1\n" + order);
  EXPECT_EQ(std::count(undeclared.begin(), undeclared.end(), "3 grad input of 2"), 0);
}

// No backward comes behind the last one, so that its gradient is sent until the step ends.
TEST(Uses, TheLastWorkUsesTheGradientThatIsHandedOnLast) {
  const Lines uses =
      uses_of("capo 1\nrank 0 model-chunks 2\nrank 0: F1.0 B1.0 F2.0 B2.0 F2.1 F1.1 B1.1 B2.1\n");
  EXPECT_EQ(std::count(uses.begin(), uses.end(), "6 grad input of 1"), 2)
      << "what it writes, and the one before";
  ASSERT_FALSE(uses.empty());
  EXPECT_EQ(uses.back(), "7 grad input of 1");
}

// It receives all the same: what comes in goes through it to the chunk behind it.
TEST(Uses, AChunkWithoutLayersSendsNothing) {
  const Lines uses = uses_of(
      "capo 1\nplacement loop\nrank 0 layers 0,1\nrank 1 layers 1,0\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n");
  const Lines sent{"1 received activation of 2 by a transfer", "1 output of 2 by a transfer",
                   "2 received gradient of 2 by a transfer", "2 grad input of 2 by a transfer",
                   "3 received gradient of 1 by a transfer"};
  Lines found;
  std::copy_if(uses.begin(), uses.end(), std::back_inserter(found),
               [](const std::string& use) { return use.ends_with(" by a transfer"); });
  EXPECT_EQ(found, sent);
}

}  // namespace
}  // namespace capo
