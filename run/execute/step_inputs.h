// What a step is given, new for every replay: inputs and incoming gradients where no stage makes
// them, sizes of groups, probabilities, scales, and the router's permutations.
//
// Numbers are drawn by seed, replay and place alone (setup/draw.h), so that eager execution, every
// replay and the float64 reference are given the same ones, on whatever engine. Memory for them is
// allocated once, and written before each replay: addresses stay. Rows beyond the sum of a
// microbatch's sizes are NaN, so that whoever reads them is found out; there are such rows where
// every layer is grouped, and as many in every layer of a microbatch.
//
// Tested by tests/run/execute/step_inputs_test.cpp.

#pragma once

#include "run/engine/engine.h"
#include "run/execute/program.h"
#include "run/setup/step_layers.h"
#include "run/setup/values.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

/// As numbers: by cell, what its first layer reads and what comes to its last one; by layer and
/// microbatch what goes with it.
struct GivenValues {
  struct Side {
    std::vector<std::int64_t> sizes;  ///< empty where rows have no groups
    std::vector<float> probabilities;
    std::vector<float> scales;
  };
  std::vector<std::vector<float>> inputs;         ///< by cell
  std::vector<std::vector<float>> grad_outputs;   ///< by cell
  std::vector<std::vector<Side>> sides;           ///< by layer, then microbatch
  std::vector<std::vector<std::int64_t>> routes;  ///< by exchange: a permutation of rows
};

/// Of a step: everything that replay number `replay` is given.
[[nodiscard]] GivenValues draw_given(const PlannedStep& step, const StepLayers& layers,
                                     const Program& program, SizeKind sizes, std::uint64_t seed,
                                     std::uint32_t replay);

/// Initial values of a parameter.
[[nodiscard]] std::vector<float> draw_parameter(const StepLayers& layers, std::uint32_t parameter,
                                                std::uint64_t seed);

/// The same on an engine, at addresses that stay.
class Given {
 public:
  Given(Engine& engine, const PlannedStep& step, const StepLayers& layers, const Program& program);

  void write(const GivenValues& values);

  [[nodiscard]] std::byte* input(std::uint32_t cell) const { return inputs_[cell]; }
  [[nodiscard]] std::byte* grad_output(std::uint32_t cell) const { return grad_outputs_[cell]; }
  [[nodiscard]] std::byte* landing(std::uint32_t cell, Way way) const {
    return landings_[cell * 2 + static_cast<std::size_t>(way)];
  }
  struct Route {
    std::byte* rows = nullptr;
    std::byte* returned = nullptr;
    const std::int64_t* index = nullptr;
    const std::int64_t* inverse = nullptr;
    std::int64_t row_count = 0;
    std::int64_t row_bytes = 0;
  };
  [[nodiscard]] const Route& route(std::uint32_t exchange) const { return routes_[exchange]; }
  /// Without gradients, which are an outcome.
  [[nodiscard]] LayerSide side(std::size_t layer, std::int32_t microbatch) const {
    return sides_[layer][static_cast<std::size_t>(microbatch)];
  }

 private:
  Engine& engine_;
  std::vector<DataType> types_;  // by cell, as the next two
  std::vector<std::byte*> inputs_;
  std::vector<std::byte*> grad_outputs_;
  std::vector<std::byte*> landings_;
  std::vector<Route> routes_;
  std::vector<std::vector<LayerSide>> sides_;
};

}  // namespace capo::run
