// Who uses which buffer, written down a second time, and which buffers share memory although
// nothing orders their uses: what capo's own plan must never do.
//
// A use is a task; a use is over when its task is, of a send also when its data has arrived. Of two
// buffers that share memory, all uses of the one are over before any use of the other begins. The
// layers of one piece of work run one after another.

#pragma once

#include "tests/core/plan/happens_before.h"
#include "tests/core/plan/planned.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::testing_support {

class Sharing {
 public:
  explicit Sharing(const PlannedStep& step) : step_(step), users_(step.table().all()) {
    if (step.course().graph != nullptr) {
      add_tasks_of_the_graph();
      closure_.emplace(*step.course().graph);
    } else {
      add_work_of_the_orders();
    }
  }

  /// Pairs of buffers that share memory and are not ordered, in words.
  [[nodiscard]] std::vector<std::string> unordered(const Plan& plan) const {
    const BufferTable& table = step_.table();
    std::vector<std::string> found;
    for (BufferId a = 0; a < table.all(); ++a) {
      for (BufferId b = a + 1; b < table.all(); ++b) {
        if (!overlap(plan, a, b) || table.at(a).rank != table.at(b).rank || ordered(a, b) ||
            ordered(b, a))
          continue;
        found.push_back(fmt::format("{} and {}", words(a), words(b)));
      }
    }
    return found;
  }

  /// How many pairs share memory.
  [[nodiscard]] std::size_t shared(const Plan& plan) const {
    std::size_t pairs = 0;
    for (BufferId a = 0; a < step_.table().all(); ++a) {
      for (BufferId b = a + 1; b < step_.table().all(); ++b) {
        if (step_.table().at(a).rank == step_.table().at(b).rank) pairs += overlap(plan, a, b);
      }
    }
    return pairs;
  }

 private:
  struct Use {
    std::uint32_t begin = 0;  // vertex of the graph, or place in a rank's order
    std::uint32_t end = 0;
    std::uint32_t arrived = 0;
    std::uint32_t task = 0;  // of the graph, or index of the rank's work
    std::int32_t turn = 0;   // of the layer within it, from 1; 0: before all layers
  };

  [[nodiscard]] std::string words(BufferId id) const {
    const Buffer b = step_.table().at(id);
    return fmt::format("{} of rank {}, chunk {}, layer {}, microbatch {}", name_of(b.kind), b.rank,
                       b.chunk, b.layer, b.microbatch);
  }

  [[nodiscard]] bool overlap(const Plan& plan, BufferId a, BufferId b) const {
    const std::int64_t at_a = plan.at(a);
    const std::int64_t at_b = plan.at(b);
    if (at_a == kNowhere || at_b == kNowhere) return false;
    return at_a < at_b + step_.table().bytes(step_.table().at(b)) &&
           at_b < at_a + step_.table().bytes(step_.table().at(a));
  }

  // Whether whoever uses the one is done before anybody uses the other.
  [[nodiscard]] bool ordered(BufferId first, BufferId second) const {
    for (const Use& use : users_[first]) {
      for (const Use& next : users_[second]) {
        const bool in_turn = use.task == next.task && use.turn < next.turn;
        if (!in_turn && !over(use.end, next.begin) && !over(use.arrived, next.begin)) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool over(std::uint32_t end, std::uint32_t begin) const {
    return closure_ ? closure_->reaches(end, begin) : end < begin;
  }

  void add(std::int32_t rank, std::int32_t chunk, std::int32_t layer, std::int32_t microbatch,
           BufferKind kind, const Use& use) {
    users_[step_.table().id(rank, chunk, layer, microbatch, kind)].push_back(use);
  }

  void add_layer(std::int32_t rank, const Work& work, std::int32_t layer, const Use& use) {
    const LayerFacts& facts = step_.table().facts(rank, work.chunk, layer);
    const auto uses = [&](BufferKind kind) {
      add(rank, work.chunk, layer, work.microbatch, kind, use);
    };
    if (work.kind == Kind::Forward) {
      uses(BufferKind::StaticInput);
      uses(BufferKind::Activations);
      if (facts.keeps_quantized_weight) uses(BufferKind::QuantizedWeight);
      uses(BufferKind::Output);
    } else if (work.kind == Kind::BackwardWeight) {
      uses(BufferKind::Scratch);
      uses(BufferKind::Operands);
      uses(facts.aliases.input ? BufferKind::StaticInput : BufferKind::Activations);
      if (facts.aliases.grad_output) uses(BufferKind::GradOutput);
    } else {
      uses(BufferKind::GradOutput);
      uses(BufferKind::GradInput);
      uses(BufferKind::StaticInput);
      uses(BufferKind::Activations);
      if (facts.keeps_quantized_weight) uses(BufferKind::QuantizedWeight);
      uses(BufferKind::Output);
      if (work.delayed) uses(BufferKind::Operands);
      if (layer + 1 < step_.table().layers(rank, work.chunk)) {
        add(rank, work.chunk, layer + 1, work.microbatch, BufferKind::GradInput, use);
      }
    }
  }

  void add_work(std::int32_t rank, const Work& work, const Use& use) {
    const std::int32_t layers = step_.table().layers(rank, work.chunk);
    for (std::int32_t layer = 0; layer < layers; ++layer) {
      if (work.layer != kAllLayers && work.layer != layer) continue;
      Use of_layer = use;
      of_layer.turn = work.kind == Kind::Forward ? layer + 1 : layers - layer;
      add_layer(rank, work, layer, of_layer);
    }
    const StageMap& map = step_.wiring().map();
    if (work.kind == Kind::BackwardWeight || !map.wired()) return;
    const bool forward = work.kind == Kind::Forward;
    const std::int32_t stage = map.stage_of(rank, work.chunk);
    const std::int32_t maker = forward ? map.before(stage) : map.after(stage);
    if (maker == kNoStage) return;
    if (map.home(maker).rank == rank) {
      add_outlet(rank, map.home(maker).chunk, work.microbatch, forward, use);
    } else if (work.layer == kAllLayers || work.layer == (forward ? 0 : layers - 1)) {
      add_inlet(rank, work.chunk, work.microbatch, forward, use);
    }
  }

  // What a chunk receives.
  void add_inlet(std::int32_t rank, std::int32_t chunk, std::int32_t microbatch, bool forward,
                 const Use& use) {
    users_[step_.table().received(
               rank, chunk, microbatch,
               forward ? BufferKind::ReceivedActivation : BufferKind::ReceivedGradient)]
        .push_back(use);
  }

  // What a chunk hands to its neighbour.
  void add_outlet(std::int32_t rank, std::int32_t chunk, std::int32_t microbatch, bool forward,
                  const Use& use) {
    const std::int32_t layers = step_.table().layers(rank, chunk);
    if (layers == 0) return;
    add(rank, chunk, forward ? layers - 1 : 0, microbatch,
        forward ? BufferKind::Output : BufferKind::GradInput, use);
  }

  void add_tasks_of_the_graph() {
    const TaskGraph& graph = *step_.course().graph;
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task& task = graph.tasks[id];
      const Step& made_of = step_of(*step_.course().lowered, task);
      Use use{.begin = graph.start(id), .end = graph.end(id), .arrived = graph.end(id), .task = id};
      if (is_work(made_of)) {
        const auto& delay = step_.delay()[static_cast<std::size_t>(task.rank)];
        add_work(task.rank, work_of(made_of, delay), use);
      } else if (is_send(task.kind)) {
        use.arrived = graph.end(receive_of(graph, task));
        add_outlet(task.rank, made_of.chunk, task.microbatch, task.kind == Kind::SendForward, use);
      } else if (is_receive(task.kind)) {
        add_inlet(task.rank, made_of.chunk, task.microbatch, task.kind == Kind::ReceiveForward,
                  use);
      }
    }
  }

  [[nodiscard]] TaskId receive_of(const TaskGraph& graph, const Task& send) const {
    const std::int32_t there = step_.wiring().map().neighbour(send.kind, send.stage);
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Task& task = graph.tasks[id];
      if (task.kind == other_end(send.kind) && task.stage == there &&
          task.microbatch == send.microbatch) {
        return id;
      }
    }
    return kNoTask;
  }

  void add_work_of_the_orders() {
    for (std::size_t r = 0; r < step_.course().work.size(); ++r) {
      std::uint32_t place = 0;
      std::uint32_t task = 0;
      for (const Work& work : step_.course().work[r]) {
        if (!work.joins) ++place;
        add_work(static_cast<std::int32_t>(r), work,
                 {.begin = place, .end = place, .arrived = place, .task = task++});
      }
    }
  }

  const PlannedStep& step_;
  std::vector<std::vector<Use>> users_;  // by buffer
  std::optional<HappensBefore> closure_;
};

}  // namespace capo::testing_support
