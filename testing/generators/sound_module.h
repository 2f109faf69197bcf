// A module whose declarations harm nothing: TransformerEngine's captures keep every gradient of it.
//
// Distribution: of several values each is equally likely. Of any kind, but a delayed one is no
// basic-linear-op, which cannot be; of no dtype in one of three, else of any, where a grouped
// module is bf16 instead of fp32; of any recipe in one of three, where one that quantizes and has
// no dtype is bf16, and a grouped module is of current instead of delayed scales. A delayed module is fused, of the others one in two is. One in
// four each has a shared weight, saves its original input, gathers its input; and these are so in
// one of two, where they can be: the gradient added to main_grad (of fused ones, of which one in
// four has the dummy zeroed), reductions on the module's hooks (of delayed modules that are no
// operations), a bias (of delayed modules only where they are operations), a single weight (of
// grouped ones), no gradient of the input (where the gradient is added to main_grad), and gradients
// that are not copied (where that gradient is added, or nothing is returned: fused, without bias
// and norm). Other flags are not set. 1 to 3 buckets for gradients, of one made of modules 1; 1 or
// 2 calls, of a delayed module 1. Grouped modules alone have a shape: 1 to 8 columns in and out and
// 1 to 64 groups, whose sizes are on the device, or an input. With a single weight they have a
// contiguous main_grad, in three dimensions or in one, of a grouped-mlp in three.
//
// Tested by sound_module_test.cpp, and by sound_declared_test.cpp: what has such modules is
// accepted.

#pragma once

#include "core/model/model.h"
#include "core/order/schedule.h"
#include "testing/generators/dice.h"

#include <string>

namespace capo::testing {

/// Precondition: `delay` is Never or Always.
[[nodiscard]] Module draw_sound_module(Dice& dice, Delay delay, std::string name);

}  // namespace capo::testing
