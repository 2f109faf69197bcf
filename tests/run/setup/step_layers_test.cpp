// Layers of a step: their shapes, their parameters in order, and what the contract says of each.
//
// Refusals are tested by step_layers_refusals_test.cpp.

#include "run/setup/step_layers.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using gradients::Cell;
using gradients::Contract;
using gradients::Destination;
using gradients::Flagged;
using gradients::Returned;
using gradients::Written;
using Words = std::vector<std::string>;

StepLayers layers_of(const std::string& order, const CheckOptions& declared) {
  const UncheckedPlan plan = admitted(typed(order), declared);
  auto layers = StepLayers::of(plan.step());
  if (!layers) throw std::invalid_argument(layers.error());
  return *std::move(layers);
}

StepLayers layers_of(const std::string& order, const Module& module) {
  return layers_of(order, every_layer(module));
}

Words names(const StepLayers& layers) {
  Words all;
  for (const ParameterForm& form : layers.parameters()) all.push_back(form.name);
  return all;
}

TEST(StepLayers, ParametersAreNumberedRankByRankChunkByChunkLayerByLayer) {
  Module module = small(ModuleKind::Linear);
  module.flags.bias = true;
  const StepLayers layers = layers_of(
      "capo 1\nranks 2\nmicrobatches 1\nrank 0 layers 2\nrank 0: F1.0 B1.0\nrank 1: F1.0 F2.0 "
      "B2.0 B1.0\n",
      module);
  EXPECT_EQ(names(layers),
            (Words{"layer 0 of chunk 1 of rank 0: weight", "layer 0 of chunk 1 of rank 0: bias",
                   "layer 1 of chunk 1 of rank 0: weight", "layer 1 of chunk 1 of rank 0: bias",
                   "layer 0 of chunk 1 of rank 1: weight", "layer 0 of chunk 1 of rank 1: bias",
                   "layer 0 of chunk 2 of rank 1: weight", "layer 0 of chunk 2 of rank 1: bias"}));
  ASSERT_EQ(layers.all().size(), 4U);
  EXPECT_EQ(layers.number(0, 1, 1), 1U);
  EXPECT_EQ(layers.number(1, 1, 0), 2U);
  EXPECT_EQ(layers.number(1, 2, 0), 3U);
  const StepLayer& last = layers.at(1, 2, 0);
  EXPECT_EQ(last.rank, 1);
  EXPECT_EQ(last.chunk, 2);
  EXPECT_EQ(last.layer, 0);
  EXPECT_EQ(last.parameter[static_cast<std::size_t>(Role::First)], 6U);
  EXPECT_EQ(last.parameter[static_cast<std::size_t>(Role::FirstBias)], 7U);
  EXPECT_EQ(last.parameter[static_cast<std::size_t>(Role::Second)], kNoParameter);
  EXPECT_EQ(last.parameter[static_cast<std::size_t>(Role::NormWeight)], kNoParameter);
  EXPECT_EQ(&layers.layer_of(7), &last);
  EXPECT_EQ(&layers.layer_of(2), &layers.at(0, 1, 1));
}

TEST(StepLayers, AnMlpsParametersHaveItsWords) {
  Module module = small(ModuleKind::LayerNormMlp);
  module.flags.bias = true;
  EXPECT_EQ(
      names(layers_of("[1, -1]", module)),
      (Words{"layer 0 of chunk 1 of rank 0: norm weight", "layer 0 of chunk 1 of rank 0: norm bias",
             "layer 0 of chunk 1 of rank 0: fc1 weight", "layer 0 of chunk 1 of rank 0: fc1 bias",
             "layer 0 of chunk 1 of rank 0: fc2 weight",
             "layer 0 of chunk 1 of rank 0: fc2 bias"}));
}

TEST(StepLayers, AShapeIsWhatTheModuleSays) {
  Module module = small(ModuleKind::GroupedLinearOp);
  module.shape = {.tokens = 6, .hidden = 10, .ffn = 14, .groups = 5};
  module.dtype = DataType::Fp16;
  module.flags.bias = true;
  module.flags.scale_bias = true;
  const StepLayers layers = layers_of("[1, -1]", module);
  EXPECT_EQ(layers.at(0, 1, 0).shape, (LayerShape{.kind = ModuleKind::GroupedLinearOp,
                                                  .type = DataType::Fp16,
                                                  .tokens = 6,
                                                  .hidden = 10,
                                                  .ffn = 14,
                                                  .groups = 5,
                                                  .grouped = true,
                                                  .bias = true,
                                                  .scale_bias = true}));
}

// A linear has no use for `groups`.
TEST(StepLayers, OnlyGroupedKindsHaveGroups) {
  Module module = small(ModuleKind::Linear);
  module.shape.groups = 7;
  const LayerShape shape = layers_of("[1, -1]", module).at(0, 1, 0).shape;
  EXPECT_EQ(shape.groups, 1);
  EXPECT_FALSE(shape.grouped);
}

TEST(StepLayers, SizesAreNeededOnTheHostWhereTheyLieThereAndInFp32) {
  Module module = small(ModuleKind::GroupedLinear);
  EXPECT_FALSE(layers_of("[1, -1]", module).at(0, 1, 0).shape.split);
  module.dtype = DataType::Fp32;
  EXPECT_TRUE(layers_of("[1, -1]", module).at(0, 1, 0).shape.split);
  module.dtype = DataType::Bf16;
  module.splits = Splits::Host;
  EXPECT_TRUE(layers_of("[1, -1]", module).at(0, 1, 0).shape.split);
  Module linear = small(ModuleKind::Linear);
  linear.dtype = DataType::Fp32;
  EXPECT_FALSE(layers_of("[1, -1]", linear).at(0, 1, 0).shape.split);
}

TEST(StepLayers, SizesMayBePartOfTheInputOfGroupedKinds) {
  Module module = small(ModuleKind::GroupedLinear);
  EXPECT_FALSE(layers_of("[1, -1]", module).at(0, 1, 0).sizes_in_input);
  module.splits = Splits::Input;
  EXPECT_TRUE(layers_of("[1, -1]", module).at(0, 1, 0).sizes_in_input);
  Module linear = small(ModuleKind::Linear);
  linear.splits = Splits::Input;
  EXPECT_FALSE(layers_of("[1, -1]", linear).at(0, 1, 0).sizes_in_input);
}

TEST(StepLayers, WhatWReadsIsACopyWhereItIsNoAlias) {
  Module module = small(ModuleKind::Linear);
  module.flags.gathered_grad_output = true;
  const LayerShape shape = layers_of("[1, -1, -1.5]", module).at(0, 1, 0).shape;
  EXPECT_FALSE(shape.copies_input);
  EXPECT_TRUE(shape.copies_grad_output);
  Module norm = small(ModuleKind::LayerNormLinear);
  norm.flags.input_requires_grad = false;
  const LayerShape behind = layers_of("[1, -1, -1.5]", norm).at(0, 1, 0).shape;
  EXPECT_TRUE(behind.copies_input);
  EXPECT_FALSE(behind.copies_grad_output);
  EXPECT_FALSE(behind.needs_grad_input);
}

TEST(StepLayers, WeightsAreFusedAndNothingElseIs) {
  Module module = small(ModuleKind::LayerNormMlp);
  module.flags.bias = true;
  const StepLayers fusing = layers_of("[1, -1]", module);
  for (const ParameterForm& form : fusing.parameters()) {
    EXPECT_EQ(form.fused, form.role == Role::First || form.role == Role::Second) << form.name;
  }
  module.flags.fuse_wgrad_accumulation = false;
  module.flags.grad_added_to_main_grad = false;
  const StepLayers plain = layers_of("[1, -1]", module);
  for (const ParameterForm& form : plain.parameters()) {
    EXPECT_FALSE(form.fused) << form.name;
  }
}

TEST(StepLayers, WeightsAndBiasesAreSingleEachByItsOwnFlag) {
  Module module = small(ModuleKind::GroupedLinear);
  module.flags.bias = true;
  module.flags.single_bias = true;
  const StepLayers layers = layers_of("[1, -1]", module);
  EXPECT_FALSE(layers.parameters()[0].single);
  EXPECT_TRUE(layers.parameters()[1].single);
  module.flags.single_bias = false;
  module.flags.single_weight = true;
  const StepLayers others = layers_of("[1, -1]", module);
  EXPECT_TRUE(others.parameters()[0].single);
  EXPECT_FALSE(others.parameters()[1].single);
}

TEST(StepLayers, AllAreGroupedOnlyIfEachIs) {
  CheckOptions declared;
  declared.plan.kind = PlanKind::Safe;
  declared.modules.list = {small(ModuleKind::GroupedLinear), small(ModuleKind::Linear)};
  declared.modules.layers = {{{0}, {1}}};
  EXPECT_FALSE(layers_of("[1, 2, -2, -1]", declared).all_grouped());
  declared.modules.layers = {{{0}}};
  EXPECT_TRUE(layers_of("[1, 2, -2, -1]", declared).all_grouped());
}

// The layer that a module of these flags is.
StepLayer layer_of(ModuleKind kind, const ModuleFlags& flags) {
  return {.shape = {.kind = kind}, .flags = flags};
}

constexpr Cell kToAutograd{Returned::Gradient, Destination::AddsToGrad, Written::WithB,
                           Flagged::Never};
constexpr Cell kNowhere{Returned::Nothing, Destination::Nowhere, Written::Never, Flagged::Never};

TEST(ParameterCells, AWeightHasOneForEachReach) {
  const ModuleFlags flags{.fuse_wgrad_accumulation = true, .grad_added_to_main_grad = true};
  const auto [whole, delayed] =
      cells_of(layer_of(ModuleKind::Linear, flags), Role::First, Contract::Sound);
  EXPECT_EQ(whole,
            (Cell{Returned::Dummy, Destination::AddsToMainGrad, Written::WithB, Flagged::AtB}));
  EXPECT_EQ(delayed,
            (Cell{Returned::Zeros, Destination::AddsToMainGrad, Written::WithW, Flagged::AtW}));
}

// Whatever the module's flags say about delays.
TEST(ParameterCells, WhetherTheModuleDelaysDoesNotMatter) {
  for (const bool delays : {false, true}) {
    const auto cells =
        cells_of(layer_of(ModuleKind::Linear, {.delay_wgrad = delays}), Role::First, Contract::Te);
    EXPECT_EQ(cells.whole, kToAutograd);
    EXPECT_EQ(cells.delayed,
              (Cell{Returned::Nothing, Destination::AssignsGrad, Written::WithW, Flagged::Never}));
  }
}

TEST(ParameterCells, NormsGoToAutogradWithB) {
  const ModuleFlags flags{.fuse_wgrad_accumulation = true, .frozen_weight = true};
  for (const Role role : {Role::NormWeight, Role::NormBias}) {
    for (const Contract whose : {Contract::Sound, Contract::Te}) {
      const auto cells = cells_of(layer_of(ModuleKind::LayerNormLinear, flags), role, whose);
      EXPECT_EQ(cells.whole, kToAutograd);
      EXPECT_EQ(cells.delayed, kToAutograd);
    }
  }
}

TEST(ParameterCells, OfTwoWeightsTheFirstIsFrozen) {
  const StepLayer layer = layer_of(ModuleKind::LayerNormMlp, {.frozen_weight = true});
  EXPECT_EQ(cells_of(layer, Role::First, Contract::Sound).whole, kNowhere);
  EXPECT_EQ(cells_of(layer, Role::Second, Contract::Sound).whole, kToAutograd);
}

TEST(ParameterCells, ABiasNeverGoesToMainGrad) {
  const StepLayer layer =
      layer_of(ModuleKind::Linear, {.fuse_wgrad_accumulation = true, .bias = true});
  const auto sound = cells_of(layer, Role::FirstBias, Contract::Sound);
  EXPECT_EQ(sound.whole, kToAutograd);
  EXPECT_EQ(sound.delayed,
            (Cell{Returned::Nothing, Destination::AddsToGrad, Written::WithW, Flagged::Never}));
  EXPECT_EQ(
      cells_of(layer, Role::FirstBias, Contract::Te).delayed,
      (Cell{Returned::Nothing, Destination::AssignsGradIfNone, Written::WithW, Flagged::Never}));
}

// TransformerEngine has none, so a linear's is taken.
TEST(ParameterCells, ABasicOperationDelaysAsALinearDoes) {
  const ModuleFlags flags{.fuse_wgrad_accumulation = true};
  for (const Contract whose : {Contract::Sound, Contract::Te}) {
    EXPECT_EQ(cells_of(layer_of(ModuleKind::BasicLinearOp, flags), Role::First, whose).delayed,
              cells_of(layer_of(ModuleKind::Linear, flags), Role::First, whose).delayed);
  }
}

TEST(ReplayedCells, WhatPythonWouldAssignGoesToATemporary) {
  for (const Destination assigns : {Destination::AssignsGrad, Destination::AssignsGradIfNone}) {
    const Cell cell{Returned::Nothing, assigns, Written::WithW, Flagged::Never};
    Cell expected = cell;
    expected.destination = Destination::AssignsTemporary;
    EXPECT_EQ(replayed(cell, Contract::Te), expected);
    EXPECT_EQ(replayed(cell, Contract::Sound), cell);
  }
}

TEST(ReplayedCells, NobodyHearsThatAMicrobatchIsTheFirst) {
  const Cell cell{Returned::Nothing, Destination::FirstForwardOverwrites, Written::WithB,
                  Flagged::Never};
  EXPECT_EQ(replayed(cell, Contract::Te).destination, Destination::AddsToMainGrad);
  EXPECT_EQ(replayed(cell, Contract::Sound), cell);
}

TEST(ReplayedCells, WhatProductsDoStays) {
  for (const Destination stays :
       {Destination::AddsToGrad, Destination::AddsToMainGrad, Destination::OverwritesMainGrad,
        Destination::FirstWriteOverwrites, Destination::Nowhere}) {
    const Cell cell{Returned::Dummy, stays, Written::WithB, Flagged::AtB};
    EXPECT_EQ(replayed(cell, Contract::Te), cell);
  }
}

}  // namespace
}  // namespace capo::run
