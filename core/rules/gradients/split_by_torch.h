// Whether PyTorch itself takes the backward of a module apart: its tables with I and W are run by
// torch.distributed.pipelining, whose W asks autograd for the weights' gradients and knows no
// queue.
//
// That is so for a table, as long as no plan says that somebody else captures its actions. Of
// interest for shared weights, which only shared_weight (G06) then judges. Tested by
// shared_weight_test.cpp.

#pragma once

#include "core/rules/context.h"

namespace capo::rules {

[[nodiscard]] inline bool split_by_torch(const Context& context, const Module& module) {
  const Form form = context.input().form;
  const bool table = form == Form::TorchCompute || form == Form::TorchComms;
  return table && !context.options().plan.kind && module.flags.shared_weight &&
         module.flags.delay_wgrad && !module.flags.fuse_wgrad_accumulation &&
         !module.flags.frozen_weight;
}

}  // namespace capo::rules
