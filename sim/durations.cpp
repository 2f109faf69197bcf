#include "sim/durations.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/order/fuse_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace capo {

std::string_view name_of(Links links) {
  constexpr std::array<std::string_view, 3> kNames{"ideal", "rendezvous", "buffered"};
  return kNames[as_index(links)];
}

namespace {

std::size_t index(std::int32_t number) {
  return as_index(number);
}

template <typename Predicate>
bool any_step(const StepList& steps, Predicate predicate) {
  return std::any_of(steps.begin(), steps.end(), predicate);
}

// The share of a layer's time that one of its parts takes.
double share(const TaskCosts& costs, Part part) {
  switch (part) {
    case Part::Whole:
      return 1;
    case Part::PreDispatch:
      return 1 - costs.experts;
    case Part::Experts:
      return costs.experts;
    case Part::PostProcess:
      return 0;
  }
  CAPO_UNREACHABLE();
}

// Calls visit(task, place in its call) for each weight gradient, from 0.
template <typename Visit>
void for_each_weight(const Subject& subject, Visit visit) {
  const TaskGraph& graph = subject.graph;
  std::int32_t place = 0;
  for (TaskId id = 0; id < graph.tasks.size(); ++id) {
    if (graph.tasks[id].kind != Kind::BackwardWeight) continue;
    const bool joins = id > 0 && graph.start(id) == graph.start(id - 1) &&
                       in_one_call(step_of(subject.lowered, graph.tasks[id - 1]),
                                   step_of(subject.lowered, graph.tasks[id]));
    place = joins && place + 1 < kMostFusedWeights ? place + 1 : 0;
    visit(id, place);
  }
}

}  // namespace

std::int32_t largest_call(const Subject& subject) {
  std::int32_t most = 0;
  for_each_weight(subject, [&](TaskId, std::int32_t place) { most = std::max(most, place + 1); });
  return most;
}

std::vector<bool> half_backwards(const StepList& steps, std::size_t chunks) {
  std::vector<bool> weight(chunks, false);
  std::vector<bool> mixed(chunks, false);
  for (const Step& step : steps) {
    const std::size_t chunk = index(step.chunk) - 1;
    if (step.kind == Kind::BackwardWeight) weight[chunk] = true;
    if (step.kind == Kind::BackwardInput) mixed[chunk] = true;
  }
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    weight[chunk] = weight[chunk] && !mixed[chunk];
  }
  return weight;
}

std::optional<std::string> misfit_of(const std::vector<CostSetting>& settings,
                                     const Schedule& schedule) {
  const std::size_t ranks = schedule.ranks.size();
  std::int32_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) chunks = std::max(chunks, rank.chunks);
  for (const CostSetting& setting : settings) {
    const CostScope& scope = setting.scope;
    const std::int32_t rank = std::max(scope.rank, scope.peer);
    if (rank >= static_cast<std::int32_t>(ranks)) {
      return fmt::format("speaks of rank {}, but there are {}", rank, ranks);
    }
    if (scope.chunk > chunks) {
      return fmt::format("speaks of chunk {}, but no rank has more than {}", scope.chunk, chunks);
    }
  }
  return std::nullopt;
}

Durations::Durations(const Subject& subject, const Costs& costs)
    : subject_(subject),
      costs_(costs),
      lagging_(subject.links == Links::Ideal ? EdgeKind::Data : EdgeKind::Message) {
  const auto layers = layer_counts(subject.schedule);
  for (std::size_t r = 0; r < layers.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const auto& steps = subject.lowered.ranks[r];
    exchanges_.push_back(any_step(steps, [](const Step& s) { return is_exchange(s.kind); }));
    apart_.push_back(any_step(steps, [](const Step& s) { return s.part != Part::Whole; }));
    halves_.push_back(half_backwards(steps, layers[r].size()));
    auto& chunks = chunks_.emplace_back();
    auto& apart = layers_.emplace_back();
    for (std::size_t c = 0; c < layers[r].size(); ++c) {
      const auto chunk = static_cast<std::int32_t>(c) + 1;
      const std::int32_t count = std::max(layers[r][c], 1);
      chunks.push_back(costs.of_chunk(rank, chunk, count));
      if (!apart_.back()) continue;
      auto& of_chunk = apart.emplace_back();
      for (std::int32_t layer = 0; layer < count; ++layer) {
        of_chunk.push_back(costs.of_layer(rank, chunk, layer, count));
      }
    }
  }
  alike_ = costs.uniform();
  common_link_ = costs.between(-1, -1);
  instant_ = (alike_ && common_link_.total() == 0) || subject.links == Links::Rendezvous;

  const TaskGraph& graph = subject.graph;
  for_each_weight(subject, [&](TaskId task, std::int32_t place) {
    if (place == 0) return;
    further_.resize(graph.tasks.size(), false);
    further_[task] = true;
  });
  if (!costs.alike) find_first_backwards();
}

void Durations::find_first_backwards() {
  const TaskGraph& graph = subject_.graph;
  for (std::size_t rank = 0; rank < chunks_.size(); ++rank) {
    const auto adds = [](const TaskCosts& costs) { return costs.autograd > 0; };
    if (std::none_of(chunks_[rank].begin(), chunks_[rank].end(), adds)) continue;
    first_.resize(graph.tasks.size(), false);
    std::set<std::pair<ChunkId, std::int32_t>> met;  // chunks, and layers if they are taken apart
    for (TaskId id = graph.first_of[rank]; id < graph.first_of[rank + 1]; ++id) {
      if (!is_backward(graph.tasks[id].kind)) continue;
      const Step step = step_of(subject_.lowered, graph.tasks[id]);
      const bool apart = step.part != Part::Whole;
      first_[id] = met.emplace(step.chunk, apart ? step.layer : 0).second;
    }
  }
}

double Durations::of(Vertex vertex) const {
  const TaskGraph& graph = subject_.graph;
  const TaskId first = graph.task_of[vertex];
  const Task task = graph.tasks[first];
  const Vertex end = task.start + (task.split ? 1 : 0);
  if (vertex != end) return 0;  // a start, or a meeting point, which stands behind the end
  if (!task.member) return of_task(first, task);
  double sum = 0;
  double longest = 0;
  std::size_t calls = 0;
  graph.for_each_task(vertex, [&](TaskId id) {
    const double takes = of_task(id);
    sum += takes;
    longest = std::max(longest, takes);
    if (!is_further(id)) ++calls;
  });
  // A composite's computations share the device, a fused group's transfers go side by side.
  const bool composite = calls > 1;
  if (!composite) return sum;
  return is_compute(task.kind) ? sum * costs_.overlap : longest;
}

double Durations::of_task(TaskId task) const {
  return of_task(task, subject_.graph.tasks[task]);
}

double Durations::of_task(TaskId id, const Task& task) const {
  return is_compute(task.kind) ? computation(id, task) : communication(task);
}

double Durations::backward(TaskId id, const TaskCosts& costs, bool whole) const {
  const bool hands = whole || costs_.halves_hand_dummies;
  const double time = whole   ? costs.backward + costs.weight + costs.more_of_whole
                      : hands ? costs.backward + costs.autograd
                              : costs.backward;
  if (first_.empty() || !first_[id]) return time;
  return hands ? time - less_without_grad(costs, time) : time + costs.autograd / 3;
}

bool Durations::is_further(TaskId task) const {
  return !further_.empty() && further_[task];
}

const TaskCosts& Durations::costs_of(RankId of, const Step& step) const {
  const std::size_t rank = of.index();
  const std::size_t chunk = index(step.chunk) - 1;
  const bool apart = step.part != Part::Whole;
  return apart ? layers_[rank][chunk][step.layer] : chunks_[rank][chunk];
}

double Durations::quantizing(TaskId task) const {
  const Task& of = subject_.graph.tasks[task];
  if (!is_compute(of.kind) || of.kind == Kind::BackwardWeight) return 0;
  const Step step = step_of(subject_.lowered, of);
  const TaskCosts& costs = costs_of(of.rank, step);
  const double part = share(costs, step.part);
  return part * (of.kind == Kind::Forward ? costs.quantize_forward : costs.quantize_backward);
}

double Durations::beside(TaskId task) const {
  const Task of = subject_.graph.tasks[task];
  return costs_of(of.rank, step_of(subject_.lowered, of)).beside;
}

double Durations::computation(TaskId id, const Task& task) const {
  const Step& step = step_of(subject_.lowered, task);
  const std::size_t rank = index(task.rank);
  const TaskCosts& costs = costs_of(task.rank, step);
  const double exchanged = exchanges_[rank] ? 0 : costs.dispatch + costs.combine;
  const double part = share(costs, step.part);
  switch (task.kind) {
    case Kind::Forward:
      return costs.forward * part + exchanged;
    case Kind::BackwardWeight:
      return costs.weight * part * (is_further(id) ? costs.fuse : 1);
    case Kind::BackwardInput:
      return backward(id, costs, false) * part + exchanged;
    default:
      return backward(id, costs, !halves_[rank][index(step.chunk) - 1]) * part + exchanged;
  }
}

RankId Durations::peer(const Task& transfer) const {
  return subject_.map.home(subject_.map.neighbour(transfer.kind, transfer.stage)).rank;
}

LinkCosts Durations::link_of(const Task& transfer) const {
  if (alike_) return common_link_;
  const RankId other = peer(transfer);
  return is_send(transfer.kind) ? costs_.between(transfer.rank, other)
                                : costs_.between(other, transfer.rank);
}

double Durations::ahead(const Task& transfer) const {
  LinkCosts link = link_of(transfer);
  link.bytes = std::min(link.bytes, costs_.ahead);
  return link.occupied();
}

double Durations::communication(const Task& task) const {
  if (is_transfer(task.kind)) {
    if (subject_.links == Links::Buffered && !is_send(task.kind)) return 0;
    const LinkCosts link = link_of(task);
    return subject_.links == Links::Buffered ? link.occupied() : link.total();
  }
  const Step& step = step_of(subject_.lowered, task);
  const std::size_t rank = index(task.rank);
  const std::size_t chunk = index(step.chunk) - 1;
  const bool apart = apart_[rank];
  const TaskCosts& costs = apart ? layers_[rank][chunk][step.layer] : chunks_[rank][chunk];
  switch (task.kind) {
    case Kind::DispatchForward:
    case Kind::DispatchBackward:
      return costs.dispatch;
    case Kind::CombineForward:
    case Kind::CombineBackward:
      return costs.combine;
    case Kind::Unshard:
      return chunks_[rank][chunk].unshard;
    case Kind::Reshard:
      return chunks_[rank][chunk].reshard;
    case Kind::ReduceGradient:
      return chunks_[rank][chunk].reduce;
    case Kind::WaitSendForward:
    case Kind::WaitSendBackward:
    case Kind::WaitReduceGradient:
      return 0;
    default:
      break;
  }
  CAPO_ASSERT(false, "every kind of task takes some time");
  return 0;
}

double Durations::lag_between(Vertex from, Vertex to) const {
  const TaskGraph& graph = subject_.graph;
  const std::int32_t sender = graph.tasks[graph.task_of[from]].rank;
  const std::int32_t receiver = graph.tasks[graph.task_of[to]].rank;
  if (sender == receiver) return 0;
  return alike_ ? common_link_.total() : costs_.between(sender, receiver).total();
}

}  // namespace capo
