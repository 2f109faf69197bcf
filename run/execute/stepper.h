// The driver: walks a program and launches it, eagerly, or as graphs that it captures and replays.
//
//   eager       every call by itself, on one stream, buffers freed at their last reader
//   per-action  one graph for each F, B and W, captured in the order of capture and replayed in
//               that of replay; between graphs run transfers, autograd's additions, probes, poison
//   per-step    everything of all ranks in one graph, forked from one stream and joined to it
//
// A piece of work launches the same calls in the same order in all three, on other addresses.
// Replays reduce gradients where the order says so, eager execution when all of them are made.
// LayerView and SavedTensors are what its kernels see. Its walk is in stepper.cpp, a layer's calls
// in launched_layers.cpp, what several ranks do together in meetings.cpp, and what is kept aside to
// be compared in kept_aside.cpp. Tested by named_schedules_test.cpp, saved_tensors_test.cpp,
// transport_test.cpp and, with graphs read back, by graphs_test.cpp.

#pragma once

#include "run/execute/buffer_memory.h"
#include "run/execute/loaded_step.h"
#include "run/execute/program.h"
#include "run/execute/step_outputs.h"
#include "run/modules/layer.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace capo::run {

/// The numbers that layers read and what their routers chose, kept by eager execution for each
/// layer and microbatch: the float64 reference goes on from them layer by layer, and probes of
/// replays compare with them.
class Expected {
 public:
  Expected(Engine& engine, const StepLayers& layers, std::int32_t microbatches);

  [[nodiscard]] std::byte* input(std::size_t layer, std::int32_t microbatch) const {
    return landings_[layer][MicrobatchId(microbatch).index()].input;
  }
  [[nodiscard]] std::byte* grad_output(std::size_t layer, std::int32_t microbatch) const {
    return landings_[layer][MicrobatchId(microbatch).index()].grad_output;
  }
  /// The groups that the tokens chose; null without a router.
  [[nodiscard]] std::byte* chosen(std::size_t layer, std::int32_t microbatch) const {
    return landings_[layer][MicrobatchId(microbatch).index()].chosen;
  }
  /// Null unless the layer has halves.
  [[nodiscard]] BetweenHalves between(std::size_t layer, std::int32_t microbatch) const {
    return landings_[layer][MicrobatchId(microbatch).index()].between;
  }

 private:
  struct Landing {
    std::byte* input;
    std::byte* grad_output;
    std::byte* chosen;
    BetweenHalves between;
  };
  std::vector<std::vector<Landing>> landings_;
};

[[nodiscard]] constexpr bool is_weight(const Work& work) {
  return work.kind == Kind::BackwardWeight;
}

/// A layer and microbatch of a step as its kernels see it: where its planned buffers lie, what goes
/// with it, its parameters, and where their gradients go.
class LayerView {
 public:
  LayerView(const LoadedStep& loaded, BufferMemory& memory, const StepOutputs& outputs,
            const Deposits& deposits)
      : loaded_(loaded), memory_(memory), outputs_(outputs), deposits_(deposits) {}

  [[nodiscard]] LayerPlaces places(std::int32_t rank, const Work& work, std::int32_t layer) const;
  [[nodiscard]] LayerSide side(const StepLayer& layer, const Work& work,
                               const LayerPlaces& places) const;
  [[nodiscard]] LayerParameters parameters(const StepLayer& layer) const;
  [[nodiscard]] LayerTargets targets(const StepLayer& layer, const Work& work) const;

 private:
  const LoadedStep& loaded_;
  BufferMemory& memory_;
  const StepOutputs& outputs_;
  const Deposits& deposits_;
};

/// A framework that offloads: backwards find every saved tensor as another object, at another
/// address.
///
/// A forward saves its input, what its module keeps, and the weights; a W finds a copy of what its
/// B left. Gradients must land in the original parameter all the same. Only eager execution can do
/// so, since a graph reads where its capture did.
class SavedTensors {
 public:
  explicit SavedTensors(LoadedStep& loaded) : loaded_(loaded) {}

  /// Leads a backward or weight gradient to copies; a forward saves what it has.
  void substitute(const StepLayer& layer, const Work& work, LayerPlaces& places,
                  LayerParameters& parameters);

 private:
  [[nodiscard]] std::byte* copy_of(std::byte* saved, std::int64_t bytes);
  [[nodiscard]] GroupedTensor copy_of(const StepLayer& layer, Role role);

  LoadedStep& loaded_;
  std::map<std::pair<std::size_t, std::int32_t>, LayerPlaces> left_;  // by layer and microbatch
};

/// The moment from which a replay's times count, on the clock that all processes of a machine share
/// (std::chrono::steady_clock). The event that marks it was recorded on an idle engine between two
/// looks at that clock, of several tries at the closest two.
struct Beginning {
  std::int64_t nanoseconds = 0;  ///< in the middle of the two looks
  double doubt = 0;              ///< microseconds that it may be off either way
};

/// When an op ran, in microseconds from the beginning.
struct Measured {
  std::uint32_t op = 0;
  double begin = 0;
  double end = 0;
};

class Stepper {
 public:
  /// Eager execution fills `expected`, which is null if nobody compares with it. `late` watches
  /// replays, with what was expected; it is null if nothing does. All arguments outlive the
  /// stepper.
  Stepper(LoadedStep& loaded, const Program& program, BufferMemory& memory,
          const StepOutputs& outputs, const Deposits& deposits, const Expected* expected,
          LateReads* late);

  void run_eagerly();
  void capture_actions(const Program& capture);
  void replay_actions();
  void capture_step();
  void replay_step();

  /// A graph and the work that it holds, nullopt for the graph of a whole step.
  struct Captured {
    GraphId graph = 0;
    std::int32_t rank = 0;
    std::optional<Work> work;
  };
  [[nodiscard]] const std::vector<Captured>& graphs() const { return graphs_; }
  /// When the ops of the last replay of actions ran.
  [[nodiscard]] const std::vector<Measured>& timeline() const { return timeline_; }
  [[nodiscard]] const Beginning& beginning() const { return beginning_; }
  /// Names the parameter that was gone when its gradient came; nothing is launched after that.
  [[nodiscard]] const std::optional<std::string>& lost() const { return lost_; }

 private:
  enum class Mode : std::uint8_t { Eager, Actions, Step };
  void walk(Mode mode);
  [[nodiscard]] Transport& transport(Mode mode) const {
    return mode == Mode::Eager ? loaded_.eager_transport : loaded_.transport;
  }
  [[nodiscard]] EventId begin_times();
  [[nodiscard]] bool takes_time(const Op& op) const;
  void label(const Op& op);
  void run_part(const OpPart& part, Mode mode, StreamId stream);
  void run_work(const OpPart& part, Mode mode, StreamId stream);
  void deliver(const OpPart& part, Mode mode, StreamId stream);
  void launch_layer(const OpPart& part, std::int32_t layer, bool first, Mode mode, StreamId stream);
  void note_written(const OpPart& part, std::int32_t layer);
  void note_read(const OpPart& part, std::int32_t layer, StreamId stream);
  void drop(BufferId buffer, StreamId stream);
  void end_op(StreamId stream);
  void land(std::uint32_t op);
  void capture_part(const OpPart& part);
  [[nodiscard]] std::byte* lent_place(std::int32_t rank, const Work& work,
                                      std::int32_t layer) const;
  void take_lent_place(const OpPart& part, std::int32_t layer, LayerPlaces& places,
                       StreamId stream);
  void launch_weights(const OpPart& part, std::int32_t layer, Mode mode, const Sink& sink);
  void count_reads();

  [[nodiscard]] const std::byte* origin_of(const OpPart& part, const Origin& origin);
  void copy_in(const OpPart& part, std::int32_t layer, bool first, Mode mode,
               const LayerPlaces& places, StreamId stream);
  [[nodiscard]] BufferId input_of(const OpPart& part, std::int32_t layer) const;
  void keep_expected(const OpPart& part, std::int32_t layer, const LayerPlaces& places,
                     StreamId stream);
  void keep_decided(const OpPart& part, std::int32_t layer, const LayerPlaces& places,
                    StreamId stream);
  void look_at_reads(const OpPart& part, StreamId stream);
  void keep_what_was_touched(const OpPart& part, StreamId stream);
  void accumulate_gradients(const OpPart& part, const Work& work, std::int32_t layer,
                            StreamId stream);
  [[nodiscard]] bool parameters_alive(const OpPart& part, const Work& work, std::int32_t layer);
  void move_rows(const OpPart& part, StreamId stream);
  void bring_back(const OpPart& part, StreamId stream);
  [[nodiscard]] std::byte* made_by_experts(const Exchange& exchange) const;
  void bring_together(std::uint32_t reduction, StreamId stream);
  void reduce(const Reduction& reduction, StreamId stream);
  void cross(const std::vector<SentBlock>& blocks, Mode mode, StreamId stream);

  void launch(StreamId stream, const Call& call);
  [[nodiscard]] bool broken() const { return lost_.has_value() || loaded_.failed(); }

  LoadedStep& loaded_;
  const Program& program_;
  BufferMemory& memory_;
  const StepOutputs& outputs_;
  const Deposits& deposits_;
  const Expected* expected_;
  LateReads* late_;
  std::vector<std::uint32_t> reads_;       // by buffer: how often it is read in a step
  std::vector<std::uint32_t> reads_left_;  // by buffer: in the walk at hand
  std::vector<BufferId> held_to_end_;      // buffers in use until the op at hand is over
  std::vector<std::uint32_t> in_flight_;   // eager execution: transfers not known to have arrived
  std::optional<Clocks> clocks_;           // eager execution: made for its first walk
  LayerView view_;
  SavedTensors saved_;
  std::vector<std::string>
      labels_;  // by part of the program: an engine is told them at each launch
  std::vector<Captured> graphs_;
  std::map<WorkKey, GraphId> graph_of_;  // by the first work of a part
  std::map<std::pair<std::size_t, std::int32_t>, std::vector<ParameterHandle>> handles_;
  std::vector<Measured> timeline_;
  Beginning beginning_;
  std::optional<std::string> lost_;
};

}  // namespace capo::run
