#include "run/setup/reductions.h"

#include "core/base/index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo::run {

namespace {

bool any_reduction(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    const std::vector<Entry>& entries = rank.replayed();
    return std::any_of(entries.begin(), entries.end(),
                       [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
  });
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

}  // namespace

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
  return any_reduction(step.input().schedule) ? replicated_chunks(step) : std::vector<Reduction>();
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
