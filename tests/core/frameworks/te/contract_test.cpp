// The table cell by cell. TransformerEngine's 36 cells are written out here a second time, in the
// words of the sources they were read in (d0067d0da), and the sound ones from the contract's rules.

#include "core/frameworks/te/contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace capo::gradients {
namespace {

// What backward returns for the weight. "fresh": a tensor of its own.
constexpr std::array<std::array<std::string_view, 6>, 6> kReturnedByTe{{
    {"wgrad", "wgrad", "wgrad", "wgrad", "wgrad", "wgrad"},
    {"None", "None", "None", "uninitialised", "None", "None"},
    {"None", "None", "None", "None", "None", "None"},
    {"dummy", "dummy", "fresh dummy", "dummy", "dummy", "dummy"},
    {"None", "None", "None", "None", "None", "None"},
    {"dummy", "dummy", "fresh dummy", "dummy", "dummy", "dummy"},
}};
constexpr std::array<std::string_view, 6> kDestinationOfTe{
    "accumulated .grad", "assigned .grad", "main_grad", "main_grad", "main_grad", "main_grad"};
constexpr std::array<std::string_view, 6> kWrittenByTe{"dgrad", "wgrad", "dgrad",
                                                       "dgrad", "wgrad", "wgrad"};
constexpr std::array<std::string_view, 6> kFlagOfTe{"", "", "", "dgrad", "", "dgrad"};
constexpr std::array<std::array<std::string_view, 6>, 6> kDefectsOfTe{{
    {"", "", "", "", "", ""},
    {"a", "a", "a", "ab", "a", "a"},
    {"", "", "", "", "", ""},
    {"", "", "", "", "", ""},
    {"", "", "", "", "", ""},
    {"c", "c", "c", "c", "c", "c"},
}};

std::string_view returned(const Cell& cell) {
  switch (cell.returned) {
    case Returned::Gradient:
      return "wgrad";
    case Returned::Nothing:
      return "None";
    case Returned::Dummy:
      return "fresh dummy";
    case Returned::SharedDummy:
      return "dummy";
    case Returned::Uninitialised:
      return "uninitialised";
    default:
      return "none of the table's";
  }
}

std::string_view destination(const Cell& cell) {
  switch (cell.destination) {
    case Destination::AddsToGrad:
      return "accumulated .grad";
    case Destination::AssignsGrad:
      return "assigned .grad";
    case Destination::AddsToMainGrad:
      return "main_grad";
    default:
      return "none of the table's";
  }
}

std::string_view half(char action) {
  return action == 'B' ? "dgrad" : action == 'W' ? "wgrad" : "";
}

std::string marks(const Cell& cell) {
  std::string out;
  for (const Defect& defect : defects_of(cell)) out += defect.mark;
  return out;
}

struct OneCell {
  std::size_t row;
  std::size_t column;

  [[nodiscard]] Cell cell(Contract whose) const {
    return contract(kColumns.at(column), kGradientModes.at(row), whose).value();
  }
  [[nodiscard]] std::string name() const {
    return std::string(name_of(kColumns.at(column))) + " " +
           std::string(name_of(kGradientModes.at(row)));
  }
};

std::vector<OneCell> every_cell() {
  std::vector<OneCell> cells;
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t column = 0; column < 6; ++column) cells.push_back({row, column});
  }
  return cells;
}

TEST(Cells, OfTeAreThoseOfItsSources) {
  for (const OneCell& one : every_cell()) {
    SCOPED_TRACE(one.name());
    const Cell te = one.cell(Contract::Te);
    EXPECT_EQ(returned(te), kReturnedByTe.at(one.row).at(one.column));
    EXPECT_EQ(destination(te), kDestinationOfTe.at(one.row));
    EXPECT_EQ(half(name_of(te.written).front()), kWrittenByTe.at(one.row));
    EXPECT_EQ(half(name_of(te.flagged).front()), kFlagOfTe.at(one.row));
    EXPECT_EQ(marks(te), kDefectsOfTe.at(one.row).at(one.column));
  }
}

TEST(Cells, OfTheSoundContractKeepItsRules) {
  for (const OneCell& one : every_cell()) {
    SCOPED_TRACE(one.name());
    const GradientMode mode = kGradientModes.at(one.row);
    const bool delays = mode == GradientMode::Delay || mode == GradientMode::DelayFuse ||
                        mode == GradientMode::DelayFuseAttr;
    const bool fuses = mode != GradientMode::Vanilla && mode != GradientMode::Delay;
    const bool flags = mode == GradientMode::FuseAttr || mode == GradientMode::DelayFuseAttr;
    const Cell sound = one.cell(Contract::Sound);
    EXPECT_EQ(sound.written, delays ? Written::WithW : Written::WithB);
    EXPECT_EQ(sound.destination, fuses ? Destination::AddsToMainGrad : Destination::AddsToGrad);
    EXPECT_EQ(sound.flagged, !flags ? Flagged::Never : delays ? Flagged::AtW : Flagged::AtB);
    EXPECT_EQ(sound.returned, flags             ? delays ? Returned::Zeros : Returned::Dummy
                              : fuses || delays ? Returned::Nothing
                                                : Returned::Gradient);
    EXPECT_EQ(marks(sound), "");
  }
}

// What differs beside a defect is the kind of dummy.
TEST(Cells, OfTeDifferFromTheSoundOnesExactlyWhereTheyAreDefective) {
  for (const OneCell& one : every_cell()) {
    SCOPED_TRACE(one.name());
    Cell te = one.cell(Contract::Te);
    const bool defective = !defects_of(te).empty();
    const Cell sound = one.cell(Contract::Sound);
    if (!defective && te.returned == Returned::SharedDummy) te.returned = Returned::Dummy;
    EXPECT_EQ(te == sound, !defective);
  }
}

TEST(Contract, ConfigurationsFollowFromTheFlags) {
  EXPECT_EQ(gradient_mode_of({}), GradientMode::Vanilla);
  EXPECT_EQ(gradient_mode_of({.delay_wgrad = true}), GradientMode::Delay);
  EXPECT_EQ(gradient_mode_of({.fuse_wgrad_accumulation = true}), GradientMode::Fuse);
  EXPECT_EQ(gradient_mode_of({.fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true}),
            GradientMode::FuseAttr);
  EXPECT_EQ(gradient_mode_of({.delay_wgrad = true, .fuse_wgrad_accumulation = true}),
            GradientMode::DelayFuse);
  EXPECT_EQ(
      gradient_mode_of(
          {.delay_wgrad = true, .fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true}),
      GradientMode::DelayFuseAttr);
  EXPECT_EQ(gradient_mode_of({.grad_added_to_main_grad = true}), GradientMode::Vanilla);
  EXPECT_EQ(gradient_mode_of({.delay_wgrad = true, .grad_added_to_main_grad = true}),
            GradientMode::Delay);
}

TEST(Contract, ATransformerLayerHasNoCellOfItsOwn) {
  for (const GradientMode mode : kGradientModes) {
    for (const Contract whose : {Contract::Sound, Contract::Te})
      EXPECT_FALSE(contract(ModuleKind::TransformerLayer, mode, whose));
  }
  EXPECT_FALSE(contract_under(ModuleKind::TransformerLayer, {}, Contract::Te));
  EXPECT_FALSE(bias_contract(ModuleKind::TransformerLayer, {.bias = true}, Contract::Te));
  EXPECT_FALSE(products(ModuleKind::TransformerLayer, {}, Contract::Te));
}

TEST(Contract, ABasicOperationIsTheGroupedOneWithoutDelay) {
  for (const GradientMode mode : kGradientModes) {
    const auto cell = contract(ModuleKind::BasicLinearOp, mode, Contract::Te);
    const auto grouped = contract(ModuleKind::GroupedLinearOp, mode, Contract::Te);
    if (name_of(mode).starts_with("delay")) {
      EXPECT_FALSE(cell);
    } else {
      EXPECT_EQ(cell, grouped);
    }
  }
}

// The flag is replaced by "accumulate" (PR 2871, ops/basic/basic_linear.py:1078-1114).
TEST(Contract, ABasicOperationThatOverwritesReturnsALiveView) {
  for (const bool attr : {false, true}) {
    const ModuleFlags flags{.fuse_wgrad_accumulation = true,
                            .overwrite_main_grad = true,
                            .grad_added_to_main_grad = attr};
    const auto cell = contract_under(ModuleKind::BasicLinearOp, flags, Contract::Te);
    EXPECT_EQ(cell, (Cell{Returned::LiveView, Destination::OverwritesMainGrad, Written::WithB,
                          Flagged::Never}));
    EXPECT_EQ(marks(*cell), "d");
    EXPECT_EQ(contract_under(ModuleKind::GroupedLinearOp, flags, Contract::Te)->returned,
              attr ? Returned::SharedDummy : Returned::Nothing);
  }
}

TEST(Contract, WhoOverwritesDependsOnWhoAndWhere) {
  const ModuleFlags overwrite{.fuse_wgrad_accumulation = true, .overwrite_main_grad = true};
  const ModuleFlags first{.fuse_wgrad_accumulation = true, .is_first_microbatch = true};
  for (const ModuleKind kind : kColumns) {
    EXPECT_EQ(contract_under(kind, overwrite, Contract::Te)->destination,
              Destination::OverwritesMainGrad);
    EXPECT_EQ(
        contract_under(kind, first, Contract::Te)->destination,
        is_operation(kind) ? Destination::AddsToMainGrad : Destination::FirstForwardOverwrites);
    for (const ModuleFlags& flags : {overwrite, first}) {
      EXPECT_EQ(contract_under(kind, flags, Contract::Sound)->destination,
                Destination::FirstWriteOverwrites);
    }
    ModuleFlags unfused = overwrite;
    unfused.fuse_wgrad_accumulation = false;
    for (const Contract whose : {Contract::Sound, Contract::Te})
      EXPECT_EQ(contract_under(kind, unfused, whose), contract(kind, GradientMode::Vanilla, whose));
  }
}

TEST(Contract, ZeroOutMakesDummiesZerosAndNothingElse) {
  for (const ModuleKind kind : kColumns) {
    for (const Contract whose : {Contract::Sound, Contract::Te}) {
      ModuleFlags flags{.fuse_wgrad_accumulation = true, .zero_out_wgrad = true};
      EXPECT_EQ(contract_under(kind, flags, whose)->returned, Returned::Nothing);
      flags.grad_added_to_main_grad = true;
      EXPECT_EQ(contract_under(kind, flags, whose)->returned, Returned::Zeros);
      flags.delay_wgrad = true;
      EXPECT_EQ(contract_under(kind, flags, whose)->returned, Returned::Zeros);
      EXPECT_EQ(contract_under(kind, {.zero_out_wgrad = true}, whose)->returned,
                Returned::Gradient);
    }
  }
}

TEST(Contract, AFrozenWeightGetsNothing) {
  for (const ModuleKind kind : kColumns) {
    for (const Contract whose : {Contract::Sound, Contract::Te}) {
      const auto cell = contract_under(kind, {.delay_wgrad = true, .frozen_weight = true}, whose);
      EXPECT_EQ(cell,
                (Cell{Returned::Nothing, Destination::Nowhere, Written::Never, Flagged::Never}));
    }
  }
}

TEST(Contract, ABiasComesWithWInModulesAndWithBInOperations) {
  for (const ModuleKind kind : kColumns) {
    for (const bool fuse : {false, true}) {
      const ModuleFlags flags{.delay_wgrad = true, .fuse_wgrad_accumulation = fuse, .bias = true};
      const auto te = bias_contract(kind, flags, Contract::Te);
      EXPECT_EQ(te->written, is_operation(kind) ? Written::WithB : Written::WithW);
      EXPECT_EQ(te->destination,
                is_operation(kind) ? Destination::AddsToGrad : Destination::AssignsGradIfNone);
      const auto sound = bias_contract(kind, flags, Contract::Sound);
      EXPECT_EQ(sound->written, Written::WithW);
      EXPECT_EQ(sound->destination, Destination::AddsToGrad);
    }
    EXPECT_EQ(bias_contract(kind, {.bias = true}, Contract::Te)->returned, Returned::Gradient);
    EXPECT_EQ(bias_contract(kind, {}, Contract::Te)->returned, Returned::Nothing);
  }
}

TEST(Contract, TheSoundOneComputesWhatSomebodyNeeds) {
  const ModuleFlags weight_only{.input_requires_grad = false};
  const ModuleFlags input_only{.frozen_weight = true};
  using enum ModuleKind;
  EXPECT_EQ(products(Linear, {}, Contract::Sound), (Products{true, true, false}));
  EXPECT_EQ(products(Linear, weight_only, Contract::Sound), (Products{false, true, false}));
  EXPECT_EQ(products(Linear, input_only, Contract::Sound), (Products{true, false, false}));
  EXPECT_EQ(products(GroupedLinearOp, weight_only, Contract::Sound),
            (Products{false, true, false}));
  EXPECT_EQ(products(LayerNormLinear, weight_only, Contract::Sound), (Products{true, true, false}));
  EXPECT_EQ(products(GroupedMlp, input_only, Contract::Sound), (Products{true, true, false}));
}

// Every choice of the flags that the fused grouped MLP's gradient helper looks at.
std::vector<ModuleFlags> choices_of_the_helper() {
  std::vector<ModuleFlags> all;
  for (unsigned code = 0; code < 64; ++code) {
    all.push_back({.delay_wgrad = (code & 1U) != 0,
                   .fuse_wgrad_accumulation = (code & 2U) != 0,
                   .overwrite_main_grad = (code & 4U) != 0,
                   .grad_added_to_main_grad = (code & 8U) != 0,
                   .zero_out_wgrad = (code & 16U) != 0,
                   .single_weight = (code & 32U) != 0});
  }
  return all;
}

// ops/fused/grouped_mlp.py:782-905 of 2.20.2, branch by branch.
Returned returned_by_helper(const ModuleFlags& flags) {
  if (flags.fuse_wgrad_accumulation) {
    if (!flags.grad_added_to_main_grad) return Returned::Nothing;
    return flags.zero_out_wgrad ? Returned::Zeros : Returned::SharedDummy;
  }
  return flags.delay_wgrad ? Returned::Nothing : Returned::Gradient;
}

TEST(FusedGroupedMlp, AnswersAsItsHelperDoes) {
  for (const ModuleFlags& flags : choices_of_the_helper()) {
    const Cell cell = *contract_under(ModuleKind::GroupedMlp, flags, Contract::Te);
    EXPECT_EQ(cell.returned, returned_by_helper(flags));
    EXPECT_EQ(cell.flagged == Flagged::AtB,
              flags.fuse_wgrad_accumulation && flags.grad_added_to_main_grad);
    EXPECT_EQ(cell.written, flags.delay_wgrad ? Written::WithW : Written::WithB);
    EXPECT_EQ(cell.destination == Destination::OverwritesMainGrad,
              flags.fuse_wgrad_accumulation && flags.overwrite_main_grad);
    EXPECT_EQ(is_main_grad(cell.destination), flags.fuse_wgrad_accumulation);
  }
}

// ops/fused/backward_grouped_mlp.py of 4e57c218b's parent, which took the beta of its product for
// the wish to fuse. nullopt: the gradient goes where nobody looks.
std::optional<Returned> returned_before_2871(const ModuleFlags& flags) {
  const bool accumulates = flags.fuse_wgrad_accumulation && !flags.overwrite_main_grad;
  if (accumulates && flags.grad_added_to_main_grad)
    return flags.zero_out_wgrad ? Returned::Zeros : Returned::SharedDummy;
  if (flags.single_weight) {
    if (flags.delay_wgrad) return Returned::Nothing;
    return accumulates ? Returned::LiveView : Returned::Gradient;
  }
  if (flags.delay_wgrad) return accumulates ? Returned::LiveView : Returned::Nothing;
  return flags.fuse_wgrad_accumulation ? Returned::LiveView : Returned::Gradient;
}

// The defect has a mark of its own, and today's helper has none of it.
TEST(FusedGroupedMlp, HandedOutAViewOfMainGradBeforePullRequest2871) {
  int views = 0;
  for (const ModuleFlags& flags : choices_of_the_helper()) {
    const Cell today = *contract_under(ModuleKind::GroupedMlp, flags, Contract::Te);
    for (const Defect& defect : defects_of(today)) EXPECT_NE(defect.mark, 'd');
    if (returned_before_2871(flags) != Returned::LiveView) continue;
    ++views;
    EXPECT_TRUE(flags.fuse_wgrad_accumulation);
    Cell before = today;
    before.returned = Returned::LiveView;
    before.flagged = Flagged::Never;
    const std::vector<Defect> defects = defects_of(before);
    EXPECT_TRUE(std::any_of(defects.begin(), defects.end(),
                            [](const Defect& defect) { return defect.mark == 'd'; }));
  }
  // Several weights: without the flag, delayed or not, and under overwriting without a delay; one
  // weight: without the flag and without a delay. Each with the dummy zeroed or not.
  EXPECT_EQ(views, 2 * (2 + 2 + 1));
}

// ops: ctx.requires_grad; ops/fused/grouped_mlp.py:1083.
TEST(Contract, OperationsOfTeComputeMore) {
  const ModuleFlags weight_only{.input_requires_grad = false};
  const ModuleFlags input_only{.frozen_weight = true};
  using enum ModuleKind;
  for (const ModuleKind kind : {GroupedLinearOp, BasicLinearOp, GroupedMlp})
    EXPECT_TRUE(products(kind, weight_only, Contract::Te)->input) << name_of(kind);
  EXPECT_FALSE(products(Linear, weight_only, Contract::Te)->input);
  EXPECT_TRUE(products(LayerNormLinear, weight_only, Contract::Te)->input);
  EXPECT_EQ(products(GroupedMlp, input_only, Contract::Te), (Products{true, true, true}));
  EXPECT_EQ(products(LayerNormMlp, input_only, Contract::Te), (Products{true, true, false}));
  EXPECT_EQ(products(GroupedLinearOp, {.frozen_weight = true, .input_requires_grad = false},
                     Contract::Te),
            (Products{false, false, false}));
}

// What hands nobody a gradient cannot be captured.
TEST(Contract, ADummyABiasOrANormIsAGradientForSomebody) {
  using enum ModuleKind;
  ModuleFlags flags{.fuse_wgrad_accumulation = true, .input_requires_grad = false};
  EXPECT_FALSE(hands_a_gradient(Linear, flags, Contract::Te));
  EXPECT_TRUE(hands_a_gradient(LayerNormLinear, flags, Contract::Te));
  EXPECT_TRUE(hands_a_gradient(TransformerLayer, flags, Contract::Te));
  flags.bias = true;
  EXPECT_TRUE(hands_a_gradient(Linear, flags, Contract::Te));
  flags.delay_wgrad = true;
  EXPECT_FALSE(hands_a_gradient(Linear, flags, Contract::Te));
  EXPECT_TRUE(hands_a_gradient(GroupedLinearOp, flags, Contract::Te));
  flags.grad_added_to_main_grad = true;
  EXPECT_TRUE(hands_a_gradient(Linear, flags, Contract::Te));
  EXPECT_TRUE(hands_a_gradient(Linear, {.fuse_wgrad_accumulation = true}, Contract::Te));
  EXPECT_TRUE(hands_a_gradient(Linear, {.input_requires_grad = false}, Contract::Te));
  EXPECT_FALSE(hands_a_gradient(Linear, {.frozen_weight = true, .input_requires_grad = false},
                                Contract::Sound));
}

TEST(Contract, ModulesRaiseOnAnEmptyQueueAndGroupedOnesDoNot) {
  using enum ModuleKind;
  for (const ModuleKind kind : {Linear, LayerNormLinear, LayerNormMlp})
    EXPECT_TRUE(te_raises_on_empty_queue(kind)) << name_of(kind);
  for (const ModuleKind kind : {GroupedLinear, GroupedLinearOp, GroupedMlp})
    EXPECT_FALSE(te_raises_on_empty_queue(kind)) << name_of(kind);
}

TEST(Contract, DefectsSayWhatAndUnderWhat) {
  std::set<std::string_view> under;
  for (const ConditionalDefect& defect : conditional_defects()) {
    EXPECT_FALSE(defect.text.empty());
    EXPECT_TRUE(under.insert(defect.under).second) << defect.under;
  }
  EXPECT_GE(under.size(), 10U);
}

TEST(HandsAGradient, IsSaidOfAFrozenMlpAndOfABiasAlone) {
  ModuleFlags frozen{.frozen_weight = true, .input_requires_grad = false};
  EXPECT_TRUE(hands_a_gradient(ModuleKind::GroupedMlp, frozen, Contract::Te));
  EXPECT_FALSE(hands_a_gradient(ModuleKind::Linear, frozen, Contract::Te));
  frozen.bias = true;
  EXPECT_TRUE(hands_a_gradient(ModuleKind::Linear, frozen, Contract::Te));
}

TEST(HandsAGradient, IsNotSaidOfWhatDoesNotExist) {
  EXPECT_FALSE(hands_a_gradient(ModuleKind::BasicLinearOp,
                                {.delay_wgrad = true, .input_requires_grad = false}, Contract::Te));
}

TEST(Contract, EverythingItSaysHasItsWords) {
  std::set<std::string_view> returned;
  for (int i = 0; i <= static_cast<int>(Returned::LiveView); ++i)
    returned.insert(name_of(static_cast<Returned>(i)));
  EXPECT_EQ(returned,
            (std::set<std::string_view>{"the gradient", "nothing", "a dummy", "a shared dummy",
                                        "zeros", "uninitialised", "a view of main_grad"}));
  std::set<std::string_view> destinations;
  for (int i = 0; i <= static_cast<int>(Destination::FirstWriteOverwrites); ++i)
    destinations.insert(name_of(static_cast<Destination>(i)));
  EXPECT_EQ(destinations,
            (std::set<std::string_view>{"goes nowhere", "adds to .grad", "assigns .grad",
                                        "assigns .grad if none", "assigns a temporary's .grad",
                                        "adds to main_grad", "overwrites main_grad",
                                        "adds to main_grad, the first forward's overwrites",
                                        "adds to main_grad, the first written overwrites"}));
  EXPECT_EQ(name_of(Written::Never), "-");
  EXPECT_EQ(name_of(Written::WithB), "B");
  EXPECT_EQ(name_of(Written::WithW), "W");
}

}  // namespace
}  // namespace capo::gradients
