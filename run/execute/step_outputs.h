// What a step leaves behind on an engine: gradients of parameters, what each chunk gives out, and
// gradients of probabilities and scales.
//
// Eager execution and replays have one each, of the same form, so that the two can be compared.
// Tested through tests/run/.

#pragma once

#include "run/engine/engine.h"
#include "run/setup/parameters.h"
#include "run/setup/step_layers.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

class Deposits;

/// Whether each weight gradient also gets a place of its own, so that a wrong one has a name.
enum class Attribution : std::uint8_t { Total, ByMicrobatch };

class Outcome {
 public:
  Outcome(Engine& engine, const BufferTable& table, const StepLayers& layers,
          Attribution attribution);

  /// Before a step: main_grad is zeroed unless its first writer overwrites it, all else is made
  /// NaN, so that what nobody writes is seen.
  void reset(const Deposits& deposits);

  [[nodiscard]] const GradientMemory& gradients(std::uint32_t parameter) const {
    return gradients_[parameter];
  }
  /// The grad input that a cell gives out; null where it has no layers.
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
    return sides_[layer][static_cast<std::size_t>(microbatch)];
  }

 private:
  struct Block {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
  };
  void fill(const GroupedTensor& tensor, std::uint8_t value);

  Engine& engine_;
  std::int32_t microbatches_;
  std::vector<GradientMemory> gradients_;  // by parameter
  std::vector<Block> collected_;           // by cell
  std::vector<std::vector<SideGradients>> sides_;
};

/// The byte that unused memory is filled with: four of them are a NaN in every type.
inline constexpr std::uint8_t kPoison = 0xff;

}  // namespace capo::run
