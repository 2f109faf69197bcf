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
                                        ModuleKind::BasicLinearOp,   ModuleKind::Attention};

/// A module of that kind. Distribution: fp16 one in four, else bf16; 8, 16, 24 or 32 rows; 16, 24
/// or 32 columns, as many in as out; 1 to 8 groups with sizes on the device, of one tensor in one
/// of two; 1 or 2 kv heads with 1 to 3 heads each, of 8 or 16 columns, in sequences of 4 or 8 rows;
/// a bias in one of three; gradients go to main_grad, which the parameter says in one of two; a
/// recipe whose codes engines make in one of four.
[[nodiscard]] Module draw_truth_module(Dice& dice, ModuleKind kind);

/// The heads and the sequence of an attention whose rows are a multiple of 8.
void draw_heads(Dice& dice, ModuleShape& shape);

/// "linear bf16", "grouped-linear fp16 bias".
[[nodiscard]] std::string words_of(const Module& module);

}  // namespace capo::testing
