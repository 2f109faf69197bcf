#include "sim/memory.h"

#include "core/base/index.h"
#include "core/text/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace capo {

namespace {

struct Change {
  double time = 0;
  double by = 0;
  bool takes = false;  ///< true of a forward
  bool ends = false;   ///< nothing of its microbatch and chunk is held any more
  TaskId task = kNoTask;
};

class HeldByRank {
 public:
  HeldByRank(const Subject& subject, const TaskTimes& times, const MemoryChanges& changes,
             std::int32_t rank)
      : subject_(subject),
        times_(times),
        rank_(rank),
        changes_(changes[RankId(rank).index()]),
        halves_(half_backwards(subject.lowered.ranks[RankId(rank).index()],
                               as_index(subject.schedule.ranks[RankId(rank).index()].chunks))) {
    const auto r = RankId(rank).index();
    const StepList& steps = subject.lowered.ranks[r];
    const bool apart = std::any_of(steps.begin(), steps.end(),
                                   [](const Step& step) { return step.part != Part::Whole; });
    // They are counted for all ranks at once, and this is asked for each.
    if (apart) layers_ = layer_counts(subject.schedule)[r];
  }

  // Calls visit(MemoryStep) for each change, in the order of time.
  template <typename Visit>
  void for_each_step(Visit visit) const {
    std::vector<std::int32_t> open;  // by microbatch: forwards that nothing has ended
    double held = 0;
    std::int32_t microbatches = 0;
    const auto apply = [&](const Change& change) {
      held += change.by;
      const std::size_t microbatch = number_of(change.task);
      if (open.size() <= microbatch) open.resize(microbatch + 1, 0);
      if (change.takes && open[microbatch]++ == 0) ++microbatches;
      if (change.ends && --open[microbatch] == 0) --microbatches;
      visit(MemoryStep{
          .time = change.time, .held = held, .microbatches = microbatches, .task = change.task});
    };
    if (has_order_of_time()) return for_each_change(apply);
    std::vector<Change> changes;
    for_each_change([&](const Change& change) { changes.push_back(change); });
    // Changes at one time stay in the order of issue: on a stream what ends comes first.
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
    for (const Change& change : changes) apply(change);
  }

 private:
  // Whether changes come in the order of time as they are issued, as those of one stream do.
  [[nodiscard]] bool has_order_of_time() const {
    bool ordered = true;
    double latest = 0;
    for_each_change([&](const Change& change) {
      ordered = ordered && change.time >= latest;
      latest = change.time;
    });
    return ordered;
  }

  // Calls visit(Change) for each change, in the order of issue.
  template <typename Visit>
  void for_each_change(Visit visit) const {
    const std::vector<TaskId>& first_of = subject_.graph.first_of;
    const auto r = RankId(rank_).index();
    for (TaskId id = first_of[r]; id < first_of[r + 1]; ++id) {
      const auto change = change_of(id);
      if (!change) continue;
      if (const double again = made_again_by(id); again != 0) {
        visit(Change{.time = times_.start_of(subject_.graph, id), .by = again, .task = id});
      }
      visit(*change);
    }
  }

  // A backward takes so much when it begins. No layer of a chunk that recomputes is taken apart.
  [[nodiscard]] double made_again_by(TaskId id) const {
    const Task& task = subject_.graph.tasks[id];
    const bool backward = task.kind == Kind::Backward || task.kind == Kind::BackwardInput;
    return backward ? changes_[step_of(subject_.lowered, task).chunk.index()].again : 0;
  }

  // Microbatches of two pipelines share their numbers and are different ones.
  [[nodiscard]] std::size_t number_of(TaskId id) const {
    const Task& task = subject_.graph.tasks[id];
    const auto microbatch = as_index(std::max<std::int32_t>(task.microbatch, 0));
    if (subject_.schedule.topology != Topology::Bidirectional) return microbatch;
    const bool upwards = step_of(subject_.lowered, task).chunk % 2 == 0;
    return 2 * microbatch + (upwards ? 1 : 0);
  }

  // The first node of a layer that is taken apart takes the memory, and the last gives it up.
  [[nodiscard]] std::optional<Change> change_of(TaskId id) const {
    const Task& task = subject_.graph.tasks[id];
    if (!is_compute(task.kind)) return std::nullopt;
    const Step& step = step_of(subject_.lowered, task);
    if (step.part != Part::Whole && step.part != Part::PreDispatch) return std::nullopt;
    const auto chunk = step.chunk.index();
    const ChunkMemory& change = changes_[chunk];
    const double share = step.part == Part::Whole ? 1 : 1.0 / std::max(layers_[chunk], 1);
    const bool half =
        task.kind == Kind::BackwardInput || (task.kind == Kind::Backward && halves_[chunk]);
    Change found{.task = id};
    if (task.kind == Kind::Forward) {
      found.by = change.forward * share;
      found.takes = true;
    } else if (task.kind == Kind::BackwardWeight) {
      found.by = change.weight * share;
      found.ends = true;
    } else {
      found.by = (half ? change.backward : change.backward + change.weight) * share;
      found.ends = !half;
    }
    found.time =
        found.takes ? times_.start_of(subject_.graph, id) : times_.end_of(subject_.graph, id);
    return found;
  }

  const Subject& subject_;
  const TaskTimes& times_;
  std::int32_t rank_;
  const std::vector<ChunkMemory>& changes_;
  std::vector<std::int32_t> layers_;  // by chunk - 1; empty if no layer is taken apart
  std::vector<bool> halves_;
};

}  // namespace

std::vector<MemoryStep> memory_of(const Subject& subject, const TaskTimes& times,
                                  const MemoryChanges& changes, std::int32_t rank) {
  std::vector<MemoryStep> steps;
  HeldByRank(subject, times, changes, rank).for_each_step([&](const MemoryStep& step) {
    steps.push_back(step);
  });
  return steps;
}

MemoryPeak peak_of(const Subject& subject, const TaskTimes& times, const MemoryChanges& changes,
                   std::int32_t rank) {
  MemoryPeak peak;
  HeldByRank(subject, times, changes, rank).for_each_step([&](const MemoryStep& step) {
    if (step.held > peak.held) {
      peak.held = step.held;
      peak.time = step.time;
      peak.task = step.task;
    }
    peak.microbatches = std::max(peak.microbatches, step.microbatches);
  });
  return peak;
}

Result<MemoryChange, std::string> read_memory(std::string_view text) {
  MemoryChange change{.forward = 0, .backward = 0, .weight = 0};
  const std::array<std::pair<std::string_view, double*>, 4> keys{{{"f", &change.forward},
                                                                  {"b", &change.backward},
                                                                  {"w", &change.weight},
                                                                  {"keep", &change.keep}}};
  for (const NamedNumber& number : named_numbers(text)) {
    const auto* found = std::find_if(keys.begin(), keys.end(),
                                     [&](const auto& key) { return key.first == number.name; });
    if (found == keys.end() || !number.value || !std::isfinite(*number.value)) {
      return fmt::format(
          "`{}` is no change of memory; write all of f, b and w, as in "
          "f=1,b=-0.5,w=-0.5, and keep where chunks recompute",
          number.item);
    }
    *found->second = *number.value;
  }
  const double sum = change.forward + change.backward + change.weight;
  if (change.forward < 0 || std::abs(sum) > 1e-9 * std::max(1.0, change.forward)) {
    return fmt::format(
        "f, b and w add up to {:g}: what a forward takes, from 0, its backward and "
        "weight gradient give up",
        sum);
  }
  if (change.keep < 0 || change.keep > 1) {
    return fmt::format("keep={:g} is no share of f, from 0 to 1", change.keep);
  }
  return change;
}

std::vector<double> chunk_shares(const Schedule& schedule) {
  std::vector<double> shares;
  // A microbatch is in one of two pipelines, and passes only the chunks of that one.
  const double pipelines = schedule.topology == Topology::Bidirectional ? 2 : 1;
  for (const RankOrder& rank : schedule.ranks) {
    shares.push_back(rank.chunks > 0 ? pipelines / rank.chunks : 0);
  }
  return shares;
}

MemoryChanges same_for_all(const Schedule& schedule, const MemoryChange& change,
                           const Recomputed& recomputed) {
  MemoryChanges changes;
  const std::vector<double> shares = chunk_shares(schedule);
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    changes.emplace_back(as_index(std::max(schedule.ranks[rank].chunks, 0)),
                         ChunkMemory{.forward = change.forward * shares[rank],
                                     .backward = change.backward * shares[rank],
                                     .weight = change.weight * shares[rank]});
    for (std::size_t chunk = 0; chunk < changes[rank].size(); ++chunk) {
      const auto number = static_cast<std::int32_t>(chunk) + 1;
      if (!recomputed.has(static_cast<std::int32_t>(rank), number)) continue;
      ChunkMemory& of = changes[rank][chunk];
      of.again = of.forward * (1 - change.keep);
      of.forward *= change.keep;
    }
  }
  return changes;
}

}  // namespace capo
