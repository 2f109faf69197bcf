// The passes before capture, on orders that one can follow by hand, take memory. The module's input
// has 1 byte, its output 10; it keeps 100 for the backward and leaves 1000 for the weight gradient.

#include "core/frameworks/te/reuse.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace capo {
namespace {

using testing_support::PlannedStep;
using testing_support::read_schedule;

ModuleTable modules() {
  Module module{.name = "m"};
  module.bytes = {.input = 1, .output = 10, .activations = 100, .operands = 1000};
  return {.list = {module}, .layers = {{{0}}}};
}

WarmUp passes(const std::string& order, bool keeps_outputs = false) {
  const PlannedStep step(read_schedule("ranks 1\nmicrobatches 2\nrank 0: " + order + "\n"),
                         modules(), {.aliases = Aliases{}});
  return warm_up_of(step.table(), 0, step.course().work.at(0), 2, keeps_outputs);
}

TEST(WarmUpPasses, HoldOutputsAndWhatIsKeptUntilTheBackward) {
  const WarmUp apart = passes("F1 B1 F1 B1");
  EXPECT_EQ(apart.most, 2 + 110 + 11);
  EXPECT_EQ(apart.entry, 1U);
  const WarmUp together = passes("F1 F1 B1 B1");
  EXPECT_EQ(together.most, 2 + 220 + 11);
  EXPECT_EQ(together.entry, 2U);
}

TEST(WarmUpPasses, HoldQuantizedWeightsUntilTheBackward) {
  ModuleTable quantizing = modules();
  quantizing.list[0].kind = ModuleKind::Linear;
  quantizing.list[0].recipe = Recipe::Block;
  quantizing.list[0].bytes.quantized_weight = 5000;
  const auto most = [&](const std::string& order) {
    const PlannedStep step(read_schedule("ranks 1\nmicrobatches 2\nrank 0: " + order + "\n"),
                           quantizing, {.aliases = Aliases{}});
    return warm_up_of(step.table(), 0, step.course().work.at(0), 2, false).most;
  };
  EXPECT_EQ(most("F1 B1 F1 B1"), 2 + 5110 + 11);
  EXPECT_EQ(most("F1 F1 B1 B1"), 2 + 2 * 5110 + 11);
}

TEST(WarmUpPasses, KeepOutputsToTheEndUpTo219) {
  const WarmUp apart = passes("F1 B1 F1 B1", true);
  EXPECT_EQ(apart.most, 2 + 120 + 11);
  EXPECT_EQ(apart.entry, 3U);
  EXPECT_EQ(passes("F1 F1 B1 B1", true).most, passes("F1 F1 B1 B1").most);
}

TEST(WarmUpPasses, RunAWeightGradientRightBehindItsBackward) {
  const WarmUp delayed = passes("F1 F1 B1 B1 W1 W1");
  EXPECT_EQ(delayed.most, 2 + 220 + 11 + 1000);
  EXPECT_EQ(delayed.entry, 2U);
}

TEST(WarmUpPasses, HaveTheirInputsFromTheBeginning) {
  const PlannedStep step(read_schedule("ranks 1\nmicrobatches 1\nrank 0: F1 B1\n"), modules(), {});
  EXPECT_EQ(warm_up_of(step.table(), 0, {}, 7, false).most, 7);
}

}  // namespace
}  // namespace capo
