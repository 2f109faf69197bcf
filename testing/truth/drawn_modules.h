// The modules that the cases of the truth campaign are made of.
//
// Tested by tests/testing/truth/cases_test.cpp.

#pragma once

#include "core/model/model.h"
#include "testing/generators/dice.h"

#include <array>
#include <string>

namespace capo::testing {

/// Every kind that capo runs.
inline constexpr std::array kTruthKinds{ModuleKind::Linear,          ModuleKind::GroupedLinear,
                                        ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp,
                                        ModuleKind::GroupedMlp,      ModuleKind::GroupedLinearOp,
                                        ModuleKind::BasicLinearOp,   ModuleKind::Attention,
                                        ModuleKind::MoeLayer,        ModuleKind::TransformerLayer};

/// A module of that kind. Distribution: fp16 one in four, else bf16; 8, 16, 24 or 32 rows; 16, 24
/// or 32 columns, as many in as out; 1 to 8 groups with sizes on the device, of one tensor in one
/// of two; 1 or 2 kv heads with 1 to 3 heads each, of 8 or 16 columns, in sequences of 4 or 8 rows;
/// a router chooses 1 to 3 of 3 to 6 groups, and stands in one of two transformer layers; a bias
/// in one of three, but beside no router; gradients go to main_grad, which the parameter says in
/// one of two; a recipe whose codes engines make in one of four.
[[nodiscard]] Module draw_truth_module(Dice& dice, ModuleKind kind);

/// The sizes of a kind whose rows are a multiple of 8: heads and a sequence of an attention,
/// columns of a product or of the middle of an MLP, experts behind a router. Groups that no router
/// chooses are left out.
void draw_sizes(Dice& dice, ModuleKind kind, ModuleShape& shape);

/// "linear bf16", "grouped-linear fp16 bias", "transformer-layer experts bf16".
[[nodiscard]] std::string words_of(const Module& module);

}  // namespace capo::testing
