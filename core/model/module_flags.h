// The flags of a module by the names that model.json gives them, in one table for everybody who
// reads, writes or drops them.
//
//   {"delay_wgrad": true, "bias": true}
//
// It has a header of its own, since nvcc cannot compile a pointer to a member without a warning,
// and kernels include model.h. Tested by tests/core/text/model_reader_test.cpp.

#pragma once

#include "core/model/model.h"

#include <array>
#include <string_view>

namespace capo {

/// A flag of a module by the name that model.json gives it.
struct ModuleFlag {
  std::string_view key;
  bool ModuleFlags::*slot;
};

inline constexpr std::array<ModuleFlag, 25> kModuleFlags{{
    {"delay_wgrad", &ModuleFlags::delay_wgrad},
    {"fuse_wgrad_accumulation", &ModuleFlags::fuse_wgrad_accumulation},
    {"overwrite_main_grad", &ModuleFlags::overwrite_main_grad},
    {"grad_added_to_main_grad", &ModuleFlags::grad_added_to_main_grad},
    {"zero_out_wgrad", &ModuleFlags::zero_out_wgrad},
    {"is_first_microbatch", &ModuleFlags::is_first_microbatch},
    {"wgrad_hooks", &ModuleFlags::wgrad_hooks},
    {"frozen_weight", &ModuleFlags::frozen_weight},
    {"shared_weight", &ModuleFlags::shared_weight},
    {"bias", &ModuleFlags::bias},
    {"single_weight", &ModuleFlags::single_weight},
    {"single_bias", &ModuleFlags::single_bias},
    {"scale_bias", &ModuleFlags::scale_bias},
    {"sharded_weight", &ModuleFlags::sharded_weight},
    {"save_original_input", &ModuleFlags::save_original_input},
    {"high_precision_backward", &ModuleFlags::high_precision_backward},
    {"gathered_input", &ModuleFlags::gathered_input},
    {"gathered_grad_output", &ModuleFlags::gathered_grad_output},
    {"input_requires_grad", &ModuleFlags::input_requires_grad},
    {"contiguous_input", &ModuleFlags::contiguous_input},
    {"contiguous_output", &ModuleFlags::contiguous_output},
    {"clone_param_grads", &ModuleFlags::clone_param_grads},
    {"synchronises", &ModuleFlags::synchronises},
    {"unjoined_stream", &ModuleFlags::unjoined_stream},
    {"offloaded", &ModuleFlags::offloaded},
}};

}  // namespace capo
