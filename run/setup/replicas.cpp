#include "run/setup/replicas.h"

#include "core/base/index.h"
#include "run/setup/reductions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

template <typename T>
void repeat(std::vector<T>& all, std::int32_t count) {
  const std::size_t one = all.size();
  all.reserve(one * as_index(count));
  for (std::size_t i = one; i < one * as_index(count); ++i) all.push_back(T(all[i - one]));
}

void repeat_ranks(Schedule& schedule, std::int32_t count) {
  const std::size_t ranks = schedule.ranks.size();
  std::int32_t stages = 0;
  for (const RankOrder& rank : schedule.ranks)
    stages += static_cast<std::int32_t>(std::ssize(rank.stages));
  repeat(schedule.ranks, count);
  schedule.replicas = count;
  if (schedule.topology == Topology::Independent) return;
  // A copy of two pipelines has two, which stay what they are.
  if (schedule.topology != Topology::Bidirectional) schedule.topology = Topology::Custom;
  if (schedule.stages) schedule.stages = *schedule.stages * count;
  for (std::size_t r = ranks; r < schedule.ranks.size(); ++r) {
    const auto replica = static_cast<std::int32_t>(r / ranks);
    for (std::int32_t& stage : schedule.ranks[r].stages) stage += replica * stages;
  }
}

// Whether both pipelines of an order that has two are of as many stages: each rank has as many
// chunks as the others, half of them in either.
bool as_long_as_each_other(const Schedule& schedule) {
  return std::all_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const RankOrder& rank) {
    return rank.chunks % 2 == 0 && rank.chunks == schedule.ranks.front().chunks;
  });
}

// A bare list has its numbers beside its schedule.
void repeat_lists(Input& input, std::int32_t count) {
  if (input.te_list.entries.empty()) return;
  if (input.te_begins.empty()) input.te_begins = {0};
  const std::size_t begins = input.te_begins.size();
  const auto entries = static_cast<std::uint32_t>(input.te_list.entries.size());
  repeat(input.te_begins, count);
  for (std::size_t at = begins; at < input.te_begins.size(); ++at) {
    input.te_begins[at] += static_cast<std::uint32_t>(at / begins) * entries;
  }
  repeat(input.te_list.entries, count);
}

CollectiveGroup moved(CollectiveGroup group, std::int32_t by) {
  for (std::int32_t& rank : group.members) rank += by;
  return group;
}

std::vector<CollectiveGroup> repeated(const std::vector<CollectiveGroup>& groups,
                                      std::int32_t ranks, std::int32_t count) {
  std::vector<CollectiveGroup> all;
  std::vector<bool> reduces_in_a_group(as_index(ranks), false);
  for (const CollectiveGroup& group : groups) {
    const bool reduces = group.performs(Kind::ReduceGradient);
    all.push_back(group);
    for (std::int32_t replica = 1; replica < count; ++replica) {
      CollectiveGroup copy = moved(group, replica * ranks);
      if (!reduces && !group.exchanges()) {
        all.push_back(std::move(copy));
        continue;
      }
      auto& members = all.back().members;
      members.insert(members.end(), copy.members.begin(), copy.members.end());
    }
    if (!reduces) continue;
    for (const std::int32_t rank : group.members) reduces_in_a_group[RankId(rank).index()] = true;
  }
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    if (reduces_in_a_group[RankId(rank).index()]) continue;
    CollectiveGroup copies{.name = fmt::format("replicas of rank {}", rank),
                           .actions = {Kind::ReduceGradient}};
    for (std::int32_t replica = 0; replica < count; ++replica) {
      copies.members.push_back(replica * ranks + rank);
    }
    all.push_back(std::move(copies));
  }
  return all;
}

}  // namespace

Result<Replicas, std::string> replicas_of(Input input, CheckOptions options, std::int32_t count) {
  if (count == 1) return Replicas{.input = std::move(input), .options = std::move(options)};
  if (input.schedule.topology == Topology::Bidirectional &&
      !as_long_as_each_other(input.schedule)) {
    return std::string(
        "an order whose two pipelines are not as long as each other has no replicas: give each "
        "rank as many chunks in either");
  }
  const Environment environment = environment_of(input.schedule, options.environment);
  if (ranks_communicate(input.schedule) && (environment.p2p || environment.ep_overlap)) {
    return std::string(
        "Megatron-LM's calls (p2p, ep_overlap) are those of one pipeline: replicas of "
        "it take the transfers that are put in");
  }
  if (options.given != nullptr) {
    return std::string("a plan that is given has memory for the ranks of one replica alone");
  }
  const auto ranks = static_cast<std::int32_t>(input.schedule.ranks.size());
  options.groups = repeated(options.groups, ranks, count);
  // One entry speaks for all ranks.
  if (options.modules.layers.size() > 1) repeat(options.modules.layers, count);
  repeat_lists(input, count);
  repeat_ranks(input.schedule, count);
  return Replicas{.input = std::move(input), .options = std::move(options)};
}

}  // namespace capo::run
