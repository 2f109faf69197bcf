// The outputs of a step on an engine: gradients of parameters, the gradients that each chunk gives
// out, and those of probabilities and scales.
//
// Eager execution and replays have one each, of the same form, so that the two can be compared.
// Tested by contract_runs_test.cpp and bytes_test.cpp.

#pragma once

#include "run/engine/engine.h"
#include "run/setup/deposits.h"
#include "run/setup/parameters.h"
#include "run/setup/step_layers.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

/// Whether each weight gradient also gets a place of its own, so that a wrong one has a name.
enum class Attribution : std::uint8_t { Total, ByMicrobatch };

class StepOutputs {
 public:
  /// A parameter has only those tensors that some deposit uses.
  StepOutputs(Engine& engine, const BufferTable& table, const StepLayers& layers,
              const Deposits& deposits, Attribution attribution);

  /// Before a step: zeroes main_grad unless its first writer overwrites it, and makes all else NaN,
  /// so that a place that is not written shows.
  void reset(const Deposits& deposits);

  [[nodiscard]] const GradientMemory& gradients(std::uint32_t parameter) const {
    return gradients_[parameter];
  }
  /// The grad input that a cell gives out; null if the cell has no layers.
  [[nodiscard]] std::byte* collected(std::uint32_t cell) const { return collected_[cell].memory; }
  [[nodiscard]] std::int64_t collected_bytes(std::uint32_t cell) const {
    return collected_[cell].bytes;
  }
  struct SideGradients {
    float* probabilities = nullptr;
    float* scales = nullptr;
    std::int64_t count = 0;
  };
  [[nodiscard]] const SideGradients& side(std::size_t layer, std::int32_t microbatch) const {
    return sides_[layer][MicrobatchId(microbatch).index()];
  }

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
  };
  void fill(const GroupedTensor& tensor, std::uint8_t value);

  Engine& engine_;
  std::int32_t microbatches_;
  std::vector<GradientMemory> gradients_;          // by parameter
  std::vector<Block> collected_;                   // by cell
  std::vector<std::vector<SideGradients>> sides_;  // by layer, then microbatch
};

/// The byte that unused memory is filled with: four of them are a NaN in every type.
inline constexpr std::uint8_t kPoison = 0xff;

/// Adds up gradients as Python does after the product of an action, on its stream: autograd's
/// accumulation, as PyTorch's accumulator does it, and, if each weight gradient has a place of its
/// own, the sum that it is part of.
void accumulate(Engine& engine, StreamId stream, const GradientMemory& memory,
                const Deposit& deposit, std::int32_t microbatch);

/// Sums the gradients that replicas hold of one parameter: those behind the first are added to it
/// one after another, each sum rounded to its type, and all get what comes out. Nothing happens
/// where one of them holds none.
void sum_up(Engine& engine, StreamId stream, const std::vector<const GroupedTensor*>& replicas);

}  // namespace capo::run
