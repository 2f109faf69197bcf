// The driver: walks a program and launches it, eagerly, or as graphs that it captures and replays.
//
//   eager       every call by itself, on one stream, buffers freed at their last reader
//   per-action  one graph for each F, B and W, captured in the order of capture and replayed in
//               that of replay; between graphs run transfers, autograd's additions, probes, poison
//   per-step    everything of all ranks in one graph, forked from one stream and joined to it
//
// What a work launches does not depend on which of the three it is: the same calls in the same
// order, on other addresses. Tested through tests/run/, and graphs read back by
// tests/run/steps/graphs_test.cpp.

#pragma once

#include "run/execute/buffer_memory.h"
#include "run/execute/clocks.h"
#include "run/execute/execution.h"
#include "run/execute/late_reads.h"
#include "run/execute/layer_view.h"
#include "run/execute/saved_tensors.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace capo::run {

/// What layers read, kept by eager execution: for the float64 reference, which goes on from it
/// layer by layer, and for the probes of replays. By layer and microbatch.
class Expected {
 public:
  Expected(Engine& engine, const StepLayers& layers, std::int32_t microbatches);

  [[nodiscard]] std::byte* input(std::size_t layer, std::int32_t microbatch) const {
    return places_[layer][static_cast<std::size_t>(microbatch)].input;
  }
  [[nodiscard]] std::byte* grad_output(std::size_t layer, std::int32_t microbatch) const {
    return places_[layer][static_cast<std::size_t>(microbatch)].grad_output;
  }

 private:
  struct Places {
    std::byte* input;
    std::byte* grad_output;
  };
  std::vector<std::vector<Places>> places_;
};

/// When an op ran, in microseconds from the beginning.
struct Measured {
  std::uint32_t op = 0;
  double begin = 0;
  double end = 0;
};

class Stepper {
 public:
  /// `expected` is filled by eager execution. `late`: watches replays; null: nobody does. All of it
  /// outlives the stepper.
  Stepper(Stage& stage, const Program& program, BufferMemory& memory, const Outcome& outcome,
          const Deposits& deposits, const Expected& expected, LateReads* late);

  void run_eagerly();
  void capture_actions(const Program& capture);
  void replay_actions();
  void capture_step();
  void replay_step();

  /// A graph and the work that it holds; of a whole step none.
  struct Captured {
    GraphId graph = 0;
    std::int32_t rank = 0;
    std::optional<Work> work;
  };
  [[nodiscard]] const std::vector<Captured>& graphs() const { return graphs_; }
  /// Of the last replay of actions.
  [[nodiscard]] const std::vector<Measured>& timeline() const { return timeline_; }
  /// The parameter that was gone when its gradient came; nothing else is launched from there on.
  [[nodiscard]] const std::optional<std::string>& lost() const { return lost_; }

 private:
  enum class Mode : std::uint8_t { Eager, Actions, Step };
  // A buffer that was sent, and the two ops of which either's end tells that it has arrived.
  struct Sent {
    BufferId buffer;
    std::int32_t rank;
    std::uint32_t ends[2];
  };
  using WorkKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, Kind>;

  void walk(Mode mode);
  void label(const Act& act);
  void label(const Op& op);
  void run_act(const Act& act, Mode mode, StreamId stream);
  void run_work(const Act& act, Mode mode, StreamId stream);
  void launch_layer(const Act& act, std::int32_t layer, bool first, Mode mode, StreamId stream);
  void note_written(const Act& act, std::int32_t layer);
  void note_read(const Act& act, std::int32_t layer, StreamId stream);
  void drop(BufferId buffer, StreamId stream);
  void end_op(StreamId stream);
  void land(std::uint32_t op);
  void count_reads();

  [[nodiscard]] const std::byte* origin_of(const Act& act, const Origin& origin);
  void copy_in(const Act& act, std::int32_t layer, bool first, Mode mode, const LayerPlaces& places,
               StreamId stream);
  [[nodiscard]] BufferId input_of(const Act& act, std::int32_t layer) const;
  void keep_expected(const Act& act, std::int32_t layer, const LayerPlaces& places,
                     StreamId stream);
  void look_at_reads(const Act& act, StreamId stream);
  void keep_what_was_touched(const Act& act, StreamId stream);
  void settle_gradients(const Act& act, std::int32_t layer, StreamId stream);
  [[nodiscard]] bool parameters_alive(const Act& act, std::int32_t layer);
  void move_rows(const Act& act, StreamId stream);

  void launch(StreamId stream, const Call& call);
  [[nodiscard]] bool broken() const {
    return lost_.has_value() || stage_.engine.error().has_value();
  }

  Stage& stage_;
  const Program& program_;
  BufferMemory& memory_;
  const Outcome& outcome_;
  const Deposits& deposits_;
  const Expected& expected_;
  LateReads* late_;
  Cells cells_;
  std::vector<std::uint32_t> reads_;       // by buffer, in all
  std::vector<std::uint32_t> reads_left_;  // by buffer
  std::vector<BufferId> held_to_end_;      // of the op at hand
  std::uint32_t op_ = 0;                   // at hand
  std::vector<Sent> in_flight_;            // in eager execution
  std::optional<Clocks> clocks_;           // likewise
  LayerView view_;
  SavedTensors saved_;
  std::vector<Captured> graphs_;
  std::map<WorkKey, GraphId> graph_of_;
  std::map<std::pair<std::size_t, std::int32_t>, std::vector<ParameterHandle>> handles_;
  std::vector<Measured> timeline_;
  std::optional<std::string> lost_;
};

}  // namespace capo::run
