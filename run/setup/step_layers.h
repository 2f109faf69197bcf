// The layers of a planned step as kernels need them: shapes complete, parameters numbered.
//
// Tested by step_layers_test.cpp and step_layers_refusals_test.cpp.

#pragma once

#include "core/base/index.h"
#include "core/base/result.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/verify.h"
#include "run/modules/layer.h"
#include "run/setup/parameters.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::run {

constexpr std::uint32_t kNoParameter = 0xffffffff;

[[nodiscard]] constexpr std::array<std::uint32_t, kRoles> no_parameters() {
  std::array<std::uint32_t, kRoles> none{};
  for (std::uint32_t& parameter : none) parameter = kNoParameter;
  return none;
}

struct StepLayer {
  std::int32_t rank = 0;
  std::int32_t chunk = 0;
  std::int32_t layer = 0;
  LayerShape shape;
  ModuleFlags flags;
  bool quantizes_each_time = false;  ///< each forward makes codes of the weights for itself
  /// Whether a replay's first microbatch makes the codes of the weights anew for all others, as
  /// those of plan `te` do with a number on the device, or none does, since a capture baked in
  /// that they are there; nullopt: they are those of the step.
  std::optional<WeightCache> codes_age;
  bool bias_with_backward = false;  ///< B makes the bias gradient, even if W is delayed
  bool sizes_in_input = false;      ///< group sizes are in the static input, after its rows
  std::array<std::uint32_t, kRoles> parameter = no_parameters();  ///< by role
};

class StepLayers {
 public:
  /// An error names the module that cannot be run, or two layers that do not fit together.
  [[nodiscard]] static Result<StepLayers, std::string> of(const PlannedStep& step);

  [[nodiscard]] const StepLayer& at(std::int32_t rank, std::int32_t chunk,
                                    std::int32_t layer) const {
    return layers_[number(rank, chunk, layer)];
  }
  [[nodiscard]] std::size_t number(std::int32_t rank, std::int32_t chunk,
                                   std::int32_t layer) const {
    return first_[RankId(rank).index()][ChunkId(chunk).index()] + as_index(layer);
  }
  [[nodiscard]] const std::vector<StepLayer>& all() const { return layers_; }
  [[nodiscard]] const std::vector<ParameterForm>& parameters() const { return parameters_; }
  /// The layer that a parameter is of.
  [[nodiscard]] const StepLayer& layer_of(std::uint32_t parameter) const {
    return layers_[owner_[parameter]];
  }
  /// True if all layers have groups, so that there may be rows beyond the sum of their sizes.
  [[nodiscard]] bool all_grouped() const { return all_grouped_; }

 private:
  /// Adds a layer with its parameters. Returns why it cannot be run.
  [[nodiscard]] std::optional<std::string> add(const PlannedStep& step, std::int32_t rank,
                                               std::int32_t chunk, std::int32_t at);
  /// Numbers the parameters of a layer that comes next.
  void add_parameters(StepLayer& layer);
  /// Says which stage does not fit the one before it; nullopt if all do.
  [[nodiscard]] std::optional<std::string> misfit_of_stages(const BufferTable& table,
                                                            const StageMap& map) const;

  std::vector<StepLayer> layers_;
  std::vector<std::vector<std::size_t>> first_;  // by rank and chunk
  std::vector<ParameterForm> parameters_;
  std::vector<std::size_t> owner_;  // by parameter
  bool all_grouped_ = true;
};

/// A sentence that says why a module cannot be run under any plan; nullopt if it can.
[[nodiscard]] std::optional<std::string> module_refusal(const Module& module);

/// The cells of the contract for a parameter: of whole backwards and of delayed ones.
struct ParameterCells {
  gradients::Cell whole;
  gradients::Cell delayed;
};
[[nodiscard]] ParameterCells cells_of(const StepLayer& layer, Role role, gradients::Contract whose);
/// The cell as a replay keeps it: nothing assigns what Python would, and flags of a call are
/// ignored.
[[nodiscard]] gradients::Cell replayed(gradients::Cell cell, gradients::Contract whose);

}  // namespace capo::run
