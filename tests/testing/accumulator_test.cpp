// Every cell as what it does: what a reader holds after a step.

#include "testing/accumulator.h"

#include "core/base/assert.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo::gradients {
namespace {

ModuleFlags flags_of(GradientMode mode) {
  const std::string_view name = name_of(mode);
  return {
      .delay_wgrad = name.starts_with("delay"),
      .fuse_wgrad_accumulation = name.find("fuse") != std::string_view::npos,
      .grad_added_to_main_grad = name.ends_with("attr"),
  };
}

// {0, 1, ..., count - 1}, each once and nothing else.
Holding each_once(std::int32_t count) {
  Holding holding;
  for (std::int32_t m = 0; m < count; ++m) holding.times[m] = 1;
  return holding;
}

Holding only(std::int32_t microbatch) {
  return {.times = {{microbatch, 1}}};
}

using Events = std::vector<Event>;

Outcome te(ModuleKind kind, const ModuleFlags& flags, const Events& events) {
  return accumulate({.kind = kind, .flags = flags, .whose = Contract::Te}, events);
}

Outcome sound(ModuleKind kind, const ModuleFlags& flags, const Events& events) {
  return accumulate({.kind = kind, .flags = flags}, events);
}

const ModuleFlags kDelay{.delay_wgrad = true};
const ModuleFlags kFuse{.fuse_wgrad_accumulation = true};
const ModuleFlags kDelayFuse{.delay_wgrad = true, .fuse_wgrad_accumulation = true};
const ModuleFlags kDelayFuseAttr{
    .delay_wgrad = true, .fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true};

// Every W at once, and every W at the end; the second in another order than the Bs.
const Events kNext{backward(0),        weight_gradient(0), backward(1),
                   weight_gradient(1), backward(2),        weight_gradient(2)};
const Events kLast{backward(0),        backward(1),        backward(2),
                   weight_gradient(2), weight_gradient(0), weight_gradient(1)};

// The reader's hook comes behind each event.
Events collecting(const Events& events) {
  Events out;
  for (const Event& event : events) {
    out.push_back(event);
    out.push_back(kCollect);
  }
  return out;
}

struct OneCell {
  ModuleKind kind;
  GradientMode mode;

  [[nodiscard]] ModuleFlags flags() const { return flags_of(mode); }
  [[nodiscard]] bool delays() const { return flags().delay_wgrad; }
  [[nodiscard]] std::string name() const {
    return std::string(name_of(kind)) + " " + std::string(name_of(mode));
  }
};

std::vector<OneCell> every_cell() {
  std::vector<OneCell> cells;
  for (const GradientMode mode : kGradientModes) {
    for (const ModuleKind kind : kColumns) cells.push_back({kind, mode});
  }
  return cells;
}

// The cell under every choice of the flags that change it, eager and replayed.
std::vector<Setting> variants(const OneCell& cell) {
  std::vector<Setting> settings;
  for (unsigned code = 0; code < 16; ++code) {
    Setting setting{.kind = cell.kind, .flags = cell.flags()};
    setting.flags.zero_out_wgrad = (code & 1U) != 0;
    setting.flags.overwrite_main_grad = (code & 2U) != 0;
    setting.flags.is_first_microbatch = (code & 4U) != 0;
    setting.execution = (code & 8U) != 0 ? Execution::Replayed : Execution::Eager;
    settings.push_back(setting);
  }
  return settings;
}

TEST(EachCell, OfTheSoundContractGivesEveryMicrobatchOnce) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    for (const Setting& setting : variants(cell)) {
      for (const Events& events : {kNext, kLast, collecting(kNext), collecting(kLast)})
        EXPECT_EQ(accumulate(setting, events), (Outcome{.held = each_once(3)}));
    }
  }
}

TEST(EachCell, OfTheSoundContractGivesTheBiasOnceToo) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    Setting setting{.kind = cell.kind, .flags = cell.flags()};
    EXPECT_EQ(accumulate_bias(setting, kNext), Outcome{});
    setting.flags.bias = true;
    for (const Events& events : {kNext, kLast, collecting(kNext), collecting(kLast)})
      EXPECT_EQ(accumulate_bias(setting, events), (Outcome{.held = each_once(3)}));
  }
}

TEST(EachCell, OfTheSoundContractLeavesAFrozenWeightAlone) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    Setting setting{.kind = cell.kind, .flags = cell.flags()};
    setting.flags.frozen_weight = true;
    // In a layernorm-mlp the other weight is followed.
    const Outcome expected{.held =
                               cell.kind == ModuleKind::LayerNormMlp ? each_once(3) : Holding{}};
    EXPECT_EQ(accumulate(setting, kNext), expected);
    EXPECT_EQ(accumulate(setting, kLast), expected);
  }
}

TEST(EachCell, OfTheSoundContractNeverFlagsWhatIsOwed) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    const Outcome outcome =
        sound(cell.kind, cell.flags(),
              {backward(0), weight_gradient(0), backward(1), kReduce, weight_gradient(1)});
    EXPECT_EQ(outcome.held, cell.delays() ? only(0) : each_once(2));
    EXPECT_EQ(outcome.read_early, cell.delays());
    EXPECT_EQ(outcome.written_late, cell.delays());
    EXPECT_FALSE(outcome.flag_ahead);
  }
}

TEST(EachCell, OfTheSoundContractNamesAParameterThatIsGone) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    Setting setting{.kind = cell.kind, .flags = cell.flags(), .parameter = "layers.3.fc1.weight"};
    const std::string gone =
        "the parameter `layers.3.fc1.weight` is gone, and its gradient has nowhere to go";
    EXPECT_EQ(accumulate(setting, Events{kExpire, backward(0)}).refused, gone);
    const Outcome later = accumulate(setting, Events{backward(0), kExpire, weight_gradient(0)});
    EXPECT_EQ(later.refused, cell.delays() ? std::optional(gone) : std::nullopt);
  }
}

TEST(EachCell, OfTheSoundContractRefusesWhatComesTwice) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    EXPECT_EQ(sound(cell.kind, cell.flags(), {backward(0), backward(0)}).refused,
              "microbatch 0 of `weight` has had its backward");
    const Outcome twice =
        sound(cell.kind, cell.flags(), {backward(0), weight_gradient(0), weight_gradient(0)});
    EXPECT_EQ(twice.refused.has_value(), cell.delays());
  }
}

TEST(EachCell, OfTeGivesWhatItsDefectsLeave) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    const bool assigns = cell.mode == GradientMode::Delay;
    EXPECT_EQ(te(cell.kind, cell.flags(), kNext).held, assigns ? only(2) : each_once(3));
    // A queue is first in, first out, whatever order is meant.
    const Outcome last = te(cell.kind, cell.flags(), kLast);
    EXPECT_EQ(last.held, assigns ? only(2) : each_once(3));
    EXPECT_EQ(last.mixed_up, cell.delays());
    // A hook that takes .grad away after each W saves it, unless garbage comes with B.
    Holding expected = each_once(3);
    expected.garbage = assigns && cell.kind == ModuleKind::GroupedLinear;
    EXPECT_EQ(te(cell.kind, cell.flags(), collecting(kNext)).held, expected);
  }
}

TEST(EachCell, OfTeFlagsWhatIsOwed) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    const Outcome outcome =
        te(cell.kind, cell.flags(),
           {backward(0), weight_gradient(0), backward(1), kReduce, weight_gradient(1)});
    EXPECT_EQ(outcome.flag_ahead, cell.mode == GradientMode::DelayFuseAttr);
    EXPECT_EQ(outcome.read_early, cell.delays());
    EXPECT_EQ(outcome.held.times.contains(1), !cell.delays());
    EXPECT_EQ(outcome.written_late, cell.delays());
  }
}

TEST(EachCell, OfTeRefusesASecondBackward) {
  for (const OneCell& cell : every_cell()) {
    SCOPED_TRACE(cell.name());
    EXPECT_TRUE(te(cell.kind, cell.flags(), {backward(0), backward(0)})
                    .refused->starts_with("AttributeError"));
  }
}

TEST(TeAccumulates, GarbageWhereUninitialisedMemoryIsReadBeforeW) {
  const Outcome early =
      te(ModuleKind::GroupedLinear, kDelay, {backward(0), kReduce, weight_gradient(0)});
  EXPECT_EQ(early.held, (Holding{.garbage = true}));
  EXPECT_TRUE(early.read_early);
  EXPECT_EQ(te(ModuleKind::GroupedLinear, kDelay, {backward(0), weight_gradient(0)}).held, only(0));
  EXPECT_EQ(te(ModuleKind::Linear, kDelay, {backward(0), kReduce, weight_gradient(0)}).held,
            Holding{});
}

TEST(TeAccumulates, TwiceWhereABasicOperationOverwrites) {
  ModuleFlags flags = kFuse;
  flags.overwrite_main_grad = true;
  EXPECT_EQ(te(ModuleKind::BasicLinearOp, flags, {backward(0)}).held, (Holding{.times = {{0, 2}}}));
  EXPECT_EQ(te(ModuleKind::BasicLinearOp, flags, {backward(0), kCollect, backward(1)}).held,
            (Holding{.times = {{1, 2}}}));
  // Both views are main_grad: autograd adds it to itself, and then the reader does.
  EXPECT_EQ(te(ModuleKind::BasicLinearOp, flags, {backward(0), backward(1)}).held,
            (Holding{.times = {{1, 4}}}));
  EXPECT_EQ(sound(ModuleKind::BasicLinearOp, flags, {backward(0), backward(1)}).held, each_once(2));
}

TEST(TeAccumulates, OnlyTheLastWhereEveryMicrobatchOverwrites) {
  for (const GradientMode mode : {GradientMode::Fuse, GradientMode::FuseAttr,
                                  GradientMode::DelayFuse, GradientMode::DelayFuseAttr}) {
    ModuleFlags flags = flags_of(mode);
    flags.overwrite_main_grad = true;
    for (const ModuleKind kind : kColumns) EXPECT_EQ(te(kind, flags, kNext).held, only(2));
  }
}

TEST(TeAccumulates, FromTheFirstForwardOnWhereThatOverwrites) {
  ModuleFlags flags = kFuse;
  flags.is_first_microbatch = true;
  const Events in_order{backward(0), backward(1)};
  const Events reversed{backward(1), backward(0)};
  EXPECT_EQ(te(ModuleKind::Linear, flags, in_order).held, each_once(2));
  EXPECT_EQ(te(ModuleKind::Linear, flags, reversed).held, only(0));
  EXPECT_EQ(sound(ModuleKind::Linear, flags, reversed).held, each_once(2));
  // Operations do not look, nor does a graph: what the last step left stays.
  Holding stale = each_once(2);
  stale.stale = true;
  EXPECT_EQ(te(ModuleKind::GroupedLinearOp, flags, in_order).held, stale);
  EXPECT_EQ(accumulate({.flags = flags, .whose = Contract::Te, .execution = Execution::Replayed},
                       in_order)
                .held,
            stale);
}

TEST(TeAccumulates, NothingFromAReplayWithoutFuse) {
  const Setting replay{.flags = kDelay, .whose = Contract::Te, .execution = Execution::Replayed};
  EXPECT_EQ(accumulate(replay, kNext).held, Holding{});
  Setting bias = replay;
  bias.flags.bias = true;
  bias.flags.fuse_wgrad_accumulation = true;
  EXPECT_EQ(accumulate_bias(bias, kNext).held, Holding{});
  EXPECT_EQ(accumulate(bias, kNext).held, each_once(3));
}

TEST(TeAccumulates, OnlyTheFirstBiasOfModules) {
  for (const ModuleKind kind : kColumns) {
    Setting setting{.kind = kind, .flags = kDelayFuse, .whose = Contract::Te};
    setting.flags.bias = true;
    EXPECT_EQ(accumulate_bias(setting, kNext).held, is_operation(kind) ? each_once(3) : only(0));
    EXPECT_EQ(accumulate_bias(setting, collecting(kNext)).held, each_once(3));
  }
}

// The flag keeps dummies away, and zeros do no harm.
TEST(TeAccumulates, NoDummyWhileTheFlagIsSet) {
  ModuleFlags flags{.fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true};
  EXPECT_EQ(te(ModuleKind::Linear, flags, collecting(kNext)).held, each_once(3));
  flags.zero_out_wgrad = true;
  EXPECT_EQ(te(ModuleKind::Linear, flags, collecting(kNext)).held, each_once(3));
}

TEST(TeAccumulates, NothingOfAFrozenWeightAndRaisesAtW) {
  ModuleFlags flags = kDelay;
  flags.frozen_weight = true;
  for (const ModuleKind kind : {ModuleKind::Linear, ModuleKind::LayerNormLinear})
    EXPECT_EQ(te(kind, flags, kNext).refused, "RuntimeError: Pop empty queue");
  for (const ModuleKind kind :
       {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp})
    EXPECT_EQ(te(kind, flags, kNext), Outcome{});
  flags.delay_wgrad = false;
  EXPECT_EQ(te(ModuleKind::Linear, flags, kNext), Outcome{});
}

TEST(TeAccumulates, MixesUpAnMlpWithOneFrozenWeight) {
  ModuleFlags flags = kDelay;
  flags.frozen_weight = true;
  const Outcome alone = te(ModuleKind::LayerNormMlp, flags, {backward(0), weight_gradient(0)});
  EXPECT_EQ(alone.refused, "RuntimeError: Pop empty queue");
  EXPECT_TRUE(alone.mixed_up);
  const Outcome two =
      te(ModuleKind::LayerNormMlp, flags, {backward(0), backward(1), weight_gradient(0)});
  EXPECT_EQ(two.refused, std::nullopt);
  EXPECT_TRUE(two.mixed_up);
  EXPECT_EQ(two.held, only(1));
}

TEST(TeAccumulates, OnATemporaryWhereTheWeightIsConcatenated) {
  const Setting delay{
      .flags = kDelay, .whose = Contract::Te, .weight = Weight::OfSeveralParameters};
  EXPECT_EQ(accumulate(delay, kNext), Outcome{});
  const Setting fuse{.flags = kFuse, .whose = Contract::Te, .weight = Weight::OfSeveralParameters};
  EXPECT_TRUE(accumulate(fuse, kNext).refused->starts_with("AttributeError"));
  const Setting ours{.flags = kDelayFuse, .weight = Weight::OfSeveralParameters};
  EXPECT_EQ(accumulate(ours, kNext).held, each_once(3));
}

TEST(TeAccumulates, AfterAskingForTheParameterOnlyWhereModulesFuse) {
  const Events gone{kExpire, backward(0)};
  EXPECT_EQ(te(ModuleKind::Linear, kFuse, gone).refused,
            "AssertionError: weight was removed while fuse_wgrad_accumulation=True");
  EXPECT_EQ(te(ModuleKind::Linear, {}, gone).refused, std::nullopt);
  EXPECT_EQ(te(ModuleKind::GroupedLinearOp, kFuse, gone).refused, std::nullopt);
}

// A replay cannot set the flag, and nobody resets what capture has set.
TEST(TeAccumulates, ReplaysUnderAFlagThatIsAlwaysSet) {
  const Setting replay{
      .flags = kDelayFuseAttr, .whose = Contract::Te, .execution = Execution::Replayed};
  EXPECT_TRUE(accumulate(replay, Events{backward(0), kReduce}).flag_ahead);
  EXPECT_EQ(accumulate(replay, collecting(kNext)).held, each_once(3));
}

TEST(Accumulate, TheFirstReductionCounts) {
  const Outcome outcome =
      sound(ModuleKind::Linear, {}, {backward(0), kReduce, backward(1), kReduce});
  EXPECT_EQ(outcome.held, only(0));
  EXPECT_TRUE(outcome.written_late);
}

TEST(Accumulate, AModuleWithoutACellIsNotAsked) {
  EXPECT_THROW((void)sound(ModuleKind::TransformerLayer, {}, kNext), InternalError);
  EXPECT_THROW((void)te(ModuleKind::BasicLinearOp, kDelay, kNext), InternalError);
}

}  // namespace
}  // namespace capo::gradients
