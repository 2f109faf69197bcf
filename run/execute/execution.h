// All that a step is executed on: an engine, the step and its layers, the parameters, what the step
// is given, and what each action leaves of each gradient.
//
// Made once for a run; eager execution and replays differ only in where buffers lie and in the
// outcome that they write. Tested through tests/run/.

#pragma once

#include "core/rules/verify.h"
#include "run/engine/engine.h"
#include "run/execute/step_inputs.h"
#include "run/execute/step_outputs.h"
#include "run/execute/te_samples.h"
#include "run/execute/transport.h"
#include "run/setup/deposits.h"
#include "run/setup/parameters.h"
#include "run/setup/step_layers.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace capo::run {

/// For those who stand between the actions, as an offloading framework or a bug would.
struct Hooks {
  /// Before each act, in the order of launches.
  std::function<void(const Act&, ParameterRegistry&)> before;
  /// Whether backwards find every saved tensor, weights included, at another address.
  bool substitute_saved = false;
};

struct Stage {
  Engine& engine;
  const PlannedStep& step;
  const StepLayers& layers;
  const Given& given;
  Transport& transport;
  std::vector<GroupedTensor> parameters;
  ParameterRegistry registry;
  Hooks hooks;
  TeSamples samples;  ///< of replays

  [[nodiscard]] const BufferTable& table() const { return step.view().table(); }
};

/// "B of chunk 1, microbatch 0 of rank 2".
[[nodiscard]] std::string name_of(std::int32_t rank, const Work& work);

}  // namespace capo::run
