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
                                        ModuleKind::BasicLinearOp};

/// A module of that kind. Distribution: fp16 one in four, else bf16; 8, 16, 24 or 32 rows; 16, 24
/// or 32 columns, as many in as out; 1 to 8 groups with sizes on the device, of one tensor in one
/// of two; a bias in one of three; gradients go to main_grad, which the parameter says in one of
/// two.
[[nodiscard]] Module draw_truth_module(Dice& dice, ModuleKind kind);

/// "linear bf16", "grouped-linear fp16 bias".
[[nodiscard]] std::string words_of(const Module& module);

}  // namespace capo::testing
