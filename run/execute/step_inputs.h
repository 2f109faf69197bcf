// The inputs of a step, new for every replay: rows and incoming gradients that no stage makes,
// sizes of groups, probabilities, scales, and the permutations of the router.
//
// Numbers are drawn by seed, replay and place alone (kernels/draw.h), so that eager execution,
// every replay and the float64 reference are given the same ones, on whatever engine. Memory for
// them is allocated once, and filled before each replay: addresses stay. Rows and gradients are
// drawn by the engine, the rest is written. Rows beyond the sum of a
// microbatch's sizes are NaN, so that a kernel that reads them is found out; there are such rows if
// every layer is grouped, and as many in every layer of a microbatch.
//
// Tested by step_inputs_test.cpp.

#pragma once

#include "core/base/index.h"
#include "run/engine/engine.h"
#include "run/execute/program.h"
#include "run/kernels/stored.h"
#include "run/setup/group_sizes.h"
#include "run/setup/step_layers.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::run {

/// The numbers that a step is given.
struct StepValues {
  struct Side {
    std::vector<std::int64_t> sizes;  ///< empty if rows have no groups
    std::vector<float> probabilities;
    std::vector<float> scales;
  };
  std::vector<DrawnTensor> inputs;                ///< by cell: what its first layer reads
  std::vector<DrawnTensor> grad_outputs;          ///< by cell: what comes to its last layer
  std::vector<std::vector<Side>> sides;           ///< by layer, then microbatch
  std::vector<std::vector<std::int64_t>> routes;  ///< by exchange: a permutation of rows

  /// A row of the cell that is number `member` of those of one exchange.
  struct RowAt {
    std::size_t member;
    std::size_t row;
  };
  /// Cells whose layers are what experts do, and that exchange their rows with each other.
  struct Experts {
    std::vector<std::uint32_t> cells;
    /// For each of them the rows that it computes on, as they were before they went there.
    std::vector<std::vector<RowAt>> came;
  };
  std::vector<Experts> experts;
};

/// Rows of an exchange that crosses, which go from one member of its `among` to another.
struct RowBlock {
  std::int64_t begin = 0;  ///< among those of its own exchange
  std::int64_t rows = 0;
  std::int64_t lands = 0;  ///< among those that arrive
};

/// The rows that member `from` of an exchange sends to member `to`; `rows` has those of each.
[[nodiscard]] RowBlock block_between(const std::vector<std::int64_t>& rows, std::size_t from,
                                     std::size_t to);

/// The rows that an exchange takes from its rank.
struct RowForm {
  std::int64_t count = 0;
  std::int64_t columns = 0;
  DataType type = DataType::Fp32;

  friend bool operator==(const RowForm&, const RowForm&) = default;
};
[[nodiscard]] RowForm form_of_rows(const StepLayers& layers, const Cells& cells,
                                   const Exchange& exchange);

/// Draws everything that replay number `replay` of a step is given.
[[nodiscard]] StepValues draw_values(const PlannedStep& step, const StepLayers& layers,
                                     const Program& program, SizeKind sizes, std::uint64_t seed,
                                     std::uint32_t replay);

/// Draws the initial values of a parameter.
[[nodiscard]] DrawnTensor draw_parameter(const StepLayers& layers, std::uint32_t parameter,
                                         std::uint64_t seed);

/// The memory on an engine that the numbers are drawn or written to, at addresses that stay.
class StepInputs {
 public:
  StepInputs(Engine& engine, const PlannedStep& step, const StepLayers& layers,
             const Program& program);

  void write(const StepValues& values);

  /// Null unless the program reads it as given.
  [[nodiscard]] std::byte* input(std::uint32_t cell) const { return inputs_[cell]; }
  [[nodiscard]] std::byte* grad_output(std::uint32_t cell) const { return grad_outputs_[cell]; }
  /// Null unless a transfer brings something there.
  [[nodiscard]] std::byte* landing(std::uint32_t cell, Way way) const {
    return landings_[cell * 2 + as_index(way)].memory;
  }
  struct Route {
    std::byte* rows = nullptr;      ///< permuted
    std::byte* arrived = nullptr;   ///< of all ranks, as they are here; `rows` if none cross
    std::byte* back = nullptr;      ///< permuted, after they were there; `rows` if none cross and
                                    ///< no experts made others
    std::byte* returned = nullptr;  ///< permuted back
    const std::int64_t* index = nullptr;
    const std::int64_t* inverse = nullptr;
    std::int64_t row_count = 0;
    std::int64_t row_bytes = 0;
    std::int64_t row_bytes_back = 0;  ///< of what experts made; `row_bytes` if none did
    std::int64_t bytes_away = 0;      ///< of what arrives, if any rows cross
  };
  [[nodiscard]] const Route& route(std::uint32_t exchange) const { return routes_[exchange]; }
  /// The rows that member `from` of an exchange's `among` sends to member `to`.
  [[nodiscard]] RowBlock block(const Exchange& exchange, std::size_t from, std::size_t to) const;
  /// Fills all places that messages and exchanges bring something to with poison. Eager execution
  /// has left there what a replay should bring, which would hide that it does not come, or late.
  void spoil_arrivals() const;
  /// It has no gradients, which are outputs.
  [[nodiscard]] LayerSide side(std::size_t layer, std::int32_t microbatch) const {
    return sides_[layer][MicrobatchId(microbatch).index()];
  }

 private:
  struct Place {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
  };
  void make_routes(const BufferTable& table, const StepLayers& layers, const Program& program);
  void make_crossings(const Program& program);

  Engine& engine_;
  std::vector<std::byte*> inputs_;  // by cell, like the next one
  std::vector<std::byte*> grad_outputs_;
  std::vector<Place> landings_;  // two a cell, one for each Way
  std::vector<Route> routes_;
  std::vector<std::vector<LayerSide>> sides_;
};

}  // namespace capo::run
