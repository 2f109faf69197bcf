#include "run/setup/reductions.h"

#include "core/base/index.h"
#include "core/frameworks/te/contract.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo::run {

namespace {

bool reduces_any(const RankOrder& rank) {
  const std::vector<Entry>& entries = rank.replayed();
  return std::any_of(entries.begin(), entries.end(),
                     [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
}

bool any_reduction(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), reduces_any);
}

bool reduces_on_hooks(const Module& module) {
  return module.flags.delay_wgrad && module.flags.wgrad_hooks;
}

// The place in an order at which a chunk's reduction begins: behind its last gradient, and the
// composite that this is in; nullopt if it has none, or is reduced there already.
std::optional<std::size_t> place_of_reduction(const std::vector<Entry>& order, ChunkId chunk) {
  std::optional<std::size_t> place;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Entry& entry = order[at];
    if (entry.chunk == chunk && entry.kind == Kind::ReduceGradient) return std::nullopt;
    const bool is_gradient = is_backward(entry.kind) || entry.kind == Kind::BackwardWeight;
    if (entry.chunk == chunk && is_gradient) place = at + 1;
  }
  while (place && *place < order.size() && order[*place].group == Group::Continues) ++*place;
  return place;
}

// It is not in the text, so it stands at the end of what is.
void list_reduction(std::vector<Entry>& order, std::size_t place, ChunkId chunk) {
  Entry reduction{.chunk = chunk, .kind = Kind::ReduceGradient};
  reduction.offset = order[place - 1].offset + order[place - 1].length;
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), reduction);
}

void list_reduction(RankOrder& rank, ChunkId chunk) {
  const auto place = place_of_reduction(rank.order, chunk);
  const auto replayed = place_of_reduction(rank.replayed(), chunk);
  if (!place || !replayed) return;
  for (Reset& reset : rank.resets) {
    if (reset.behind > *replayed) ++reset.behind;
  }
  list_reduction(rank.order, *place, chunk);
  if (rank.replay) list_reduction(*rank.replay, *replayed, chunk);
}

std::string words(const Reduction& reduction) {
  return fmt::format("chunk {} of ranks {} is reduced over them", reduction.chunk,
                     fmt::join(reduction.ranks, ", "));
}

// How many stages of its pipeline come before a chunk.
std::int32_t stages_before(const StageMap& map, std::int32_t rank, std::int32_t chunk) {
  std::int32_t count = 0;
  for (StageId stage = map.before(map.stage_of(rank, chunk)); stage != kNoStage;
       stage = map.before(stage)) {
    ++count;
  }
  return count;
}

bool same_form(const ParameterForm& a, const ParameterForm& b) {
  return a.role == b.role && a.groups == b.groups && a.elements == b.elements &&
         a.columns == b.columns && a.type == b.type && a.fused == b.fused;
}

// Whether two layers have the same parameters.
bool same_parameters(const StepLayers& layers, const StepLayer& a, const StepLayer& b) {
  for (const Role role : kAllRoles) {
    const std::uint32_t of_a = a.parameter[as_index(role)];
    const std::uint32_t of_b = b.parameter[as_index(role)];
    if ((of_a == kNoParameter) != (of_b == kNoParameter)) return false;
    if (of_a == kNoParameter) continue;
    if (!same_form(layers.parameters()[of_a], layers.parameters()[of_b])) return false;
  }
  return true;
}

std::optional<std::string> refusal_of(const PlannedStep& step, const StepLayers& layers,
                                      const Reduction& reduction) {
  const BufferTable& table = step.view().table();
  const StageMap& map = *step.replayed().map;
  const std::int32_t first = reduction.ranks.front();
  const std::int32_t chunk = reduction.chunk;
  for (const std::int32_t rank : reduction.ranks) {
    if (static_cast<std::int32_t>(table.chunks(rank)) < chunk) {
      return fmt::format("{}, and rank {} has no such chunk", words(reduction), rank);
    }
    if (map.wired() && stages_before(map, rank, chunk) != stages_before(map, first, chunk)) {
      return fmt::format(
          "{}, and ranks {} and {} hold different stages: what a run sums are gradients of "
          "replicas (--replicas)",
          words(reduction), first, rank);
    }
    const std::int32_t count = table.layers(first, chunk);
    bool alike = table.layers(rank, chunk) == count;
    for (std::int32_t layer = 0; alike && layer < count; ++layer) {
      alike =
          same_parameters(layers, layers.at(first, chunk, layer), layers.at(rank, chunk, layer));
    }
    if (!alike) {
      return fmt::format("{}, and parameters of ranks {} and {} are not alike", words(reduction),
                         first, rank);
    }
  }
  return std::nullopt;
}

// Whether some module of a chunk is as `asked`.
template <typename Asked>
bool any_module(const CheckOptions& options, std::int32_t rank, std::int32_t chunk, Asked asked) {
  const auto layers = static_cast<std::int32_t>(options.modules.layers_told_apart(rank, chunk));
  for (std::int32_t layer = 0; layer < layers; ++layer) {
    const Module* const module = options.modules.of(rank, chunk, layer);
    if (module != nullptr && asked(*module)) return true;
  }
  return false;
}

}  // namespace

void list_hooked_reductions(Schedule& schedule, const CheckOptions& options) {
  const bool is_frameworks = options.plan.kind && is_a_frameworks(*options.plan.kind);
  const auto runs_hooks = [&](const Module& module) {
    const bool is_lost = is_frameworks && module.kind && gradients::is_operation(*module.kind);
    return reduces_on_hooks(module) && !is_lost;
  };
  for (const CollectiveGroup& group : options.groups) {
    if (!group.performs(Kind::ReduceGradient) || group.members.size() < 2) continue;
    for (const std::int32_t rank : group.members) {
      RankOrder& order = schedule.ranks[RankId(rank).index()];
      for (std::int32_t chunk = 1; chunk <= order.chunks; ++chunk) {
        if (any_module(options, rank, chunk, runs_hooks)) list_reduction(order, ChunkId(chunk));
      }
    }
  }
}

std::vector<Reduction> replicated_chunks(const PlannedStep& step) {
  std::vector<Reduction> all;
  for (const CollectiveGroup& group : step.options().groups) {
    if (!group.performs(Kind::ReduceGradient) || group.members.size() < 2) continue;
    std::size_t chunks = 0;
    for (const std::int32_t rank : group.members) {
      chunks = std::max(chunks, step.view().table().chunks(rank));
    }
    for (std::int32_t chunk = 1; as_index(chunk) <= chunks; ++chunk) {
      all.push_back({.chunk = chunk, .ranks = group.members});
    }
  }
  return all;
}

std::vector<Reduction> reductions_due(const PlannedStep& step) {
  std::vector<Reduction> all = replicated_chunks(step);
  const bool reduces =
      any_reduction(step.input().schedule) ||
      std::any_of(all.begin(), all.end(), [&](const Reduction& of) {
        return any_module(step.options(), of.ranks.front(), of.chunk, reduces_on_hooks);
      });
  return reduces ? all : std::vector<Reduction>();
}

std::optional<std::string> refusal_of_replicas(const PlannedStep& step, const StepLayers& layers) {
  for (const Reduction& reduction : replicated_chunks(step)) {
    if (auto why = refusal_of(step, layers, reduction)) return why;
  }
  return std::nullopt;
}

std::vector<std::vector<std::uint32_t>> reduced_parameters(const StepLayers& layers,
                                                           const BufferTable& table,
                                                           const Reduction& reduction) {
  std::vector<std::vector<std::uint32_t>> all;
  const std::int32_t count = table.layers(reduction.ranks.front(), reduction.chunk);
  for (std::int32_t layer = 0; layer < count; ++layer) {
    for (const Role role : kAllRoles) {
      std::vector<std::uint32_t> of_ranks;
      for (const std::int32_t rank : reduction.ranks) {
        of_ranks.push_back(layers.at(rank, reduction.chunk, layer).parameter[as_index(role)]);
      }
      if (of_ranks.front() != kNoParameter) all.push_back(std::move(of_ranks));
    }
  }
  return all;
}

std::vector<std::uint32_t> drawn_as(const PlannedStep& step, const StepLayers& layers) {
  std::vector<std::uint32_t> as(layers.parameters().size());
  std::iota(as.begin(), as.end(), 0U);
  for (const Reduction& reduction : replicated_chunks(step)) {
    for (const auto& of_ranks : reduced_parameters(layers, step.view().table(), reduction)) {
      for (const std::uint32_t parameter : of_ranks) as[parameter] = of_ranks.front();
    }
  }
  return as;
}

}  // namespace capo::run
