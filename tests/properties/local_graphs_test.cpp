// Megatron's local graphs: where each of their buffers lies, and whom a replay in another order
// hurts, is what counted references and a replay with tagged cells say, which share no code with
// capo; replayed as captured nobody is hurt.

#include "testing/oracle/local_graphs.h"
#include "testing/generators/sound_schedule.h"
#include "tests/core/plan/planned.h"
#include "tests/properties/drawn_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

using oracle::LocalTensor;
using testing_support::PlannedStep;

constexpr std::array kBufferKindOf{
    std::pair{BufferKind::StaticInput, LocalTensor::Input},
    std::pair{BufferKind::Activations, LocalTensor::Kept},
    std::pair{BufferKind::Output, LocalTensor::Output},
    std::pair{BufferKind::GradOutput, LocalTensor::GradOutput},
    std::pair{BufferKind::GradInput, LocalTensor::GradInput},
};

// Layers of one rank, whose tensors have few sizes, so that many have the same.
struct Layered {
  Layered() {
    const std::int32_t chunk_count = 1 + below(3);
    auto& of_rank = modules.layers.emplace_back();
    for (std::int32_t chunk = 0; chunk < chunk_count; ++chunk) {
      auto& layers = chunks.emplace_back();
      auto& of_chunk = of_rank.emplace_back();
      layers.resize(static_cast<std::size_t>(1 + below(3)));
      for (oracle::LocalLayer& layer : layers) {
        layer = {.input = 1 + below(3), .kept = below(4), .output = 1 + below(3)};
        of_chunk.push_back(static_cast<std::int32_t>(modules.list.size()));
        modules.list.push_back({.name = fmt::format("m{}", modules.list.size()),
                                .bytes = {.input = layer.input,
                                          .output = layer.output,
                                          .activations = layer.kept,
                                          .operands = 0}});
      }
    }
  }

  oracle::LocalChunks chunks;
  ModuleTable modules;
};

// An order in which each chunk runs each microbatch forward, and at some time later backward.
std::vector<oracle::LocalWork> any_order(std::size_t chunks, int microbatches) {
  std::vector<oracle::LocalWork> order;
  std::vector<std::pair<int, int>> open(chunks);  // how many of each chunk ran, by direction
  const auto possible = [&] {
    std::vector<oracle::LocalWork> next;
    for (std::size_t c = 0; c < chunks; ++c) {
      const auto& [forwards, backwards] = open[c];
      const auto chunk = static_cast<int>(c);
      if (forwards < microbatches) next.push_back({true, chunk, forwards});
      if (backwards < forwards) next.push_back({false, chunk, backwards});
    }
    return next;
  };
  for (auto next = possible(); !next.empty(); next = possible()) {
    const oracle::LocalWork work =
        next[static_cast<std::size_t>(below(static_cast<std::int32_t>(next.size())))];
    auto& [forwards, backwards] = open[static_cast<std::size_t>(work.chunk)];
    ++(work.forward ? forwards : backwards);
    order.push_back(work);
  }
  return order;
}

Schedule schedule_of(const Layered& of, const std::vector<oracle::LocalWork>& order,
                     std::int32_t microbatches) {
  Schedule schedule{.naming = Naming::Named, .microbatches = microbatches};
  RankOrder& rank = schedule.ranks.emplace_back();
  rank.chunks = static_cast<std::int32_t>(of.chunks.size());
  rank.delay.emplace(of.chunks.size(), Delay::Never);
  rank.layers = {.form = Layers::Form::List, .values = {}};
  for (const auto& layers : of.chunks)
    rank.layers.values.push_back(static_cast<std::int64_t>(layers.size()));
  for (const oracle::LocalWork& work : order) {
    rank.order.push_back({.chunk = work.chunk + 1,
                          .microbatch = work.microbatch,
                          .kind = work.forward ? Kind::Forward : Kind::Backward});
  }
  return schedule;
}

LocalTensor tensor_of(const Buffer& buffer) {
  const auto* const kind =
      std::find_if(kBufferKindOf.begin(), kBufferKindOf.end(),
                   [&](const auto& pair) { return pair.first == buffer.kind; });
  RC_ASSERT(kind != kBufferKindOf.end());
  return {buffer.chunk - 1, buffer.layer, buffer.microbatch, kind->second};
}

RC_GTEST_PROP(LocalGraphs, LieWhereCountedReferencesPutThem, ()) {
  const Layered of;
  const std::int32_t microbatches = 1 + below(4);
  const auto order = any_order(of.chunks.size(), microbatches);
  const oracle::LocalMemory expected = oracle::capture_locally(of.chunks, order);
  const PlannedStep step(schedule_of(of, order, microbatches), of.modules);
  const Plan plan = step.plan(PlanKind::McoreLocal);
  std::size_t made = 0;
  std::int64_t copies = 0;
  for (BufferId id = 0; id < step.table().size(); ++id) {
    if (plan.at(id) == kNowhere || plan.tensor_of(id) != id) continue;
    const bool copied = plan.made_at(id) != kNowhere;
    if (copied) RC_ASSERT(region_of(plan.at(id)) == Region::Copies);
    if (copied) copies = std::max(copies, offset_of(plan.at(id)) + step.table().bytes(id));
    const std::int64_t address = copied ? plan.made_at(id) : plan.at(id);
    RC_ASSERT(region_of(address) == Region::Pool);
    RC_ASSERT(offset_of(address) == expected.offset.at(tensor_of(step.table().at(id))));
    ++made;
  }
  RC_ASSERT(made == expected.offset.size());
  RC_ASSERT(plan.ranks.at(0).pool == expected.bytes + copies);
  RC_ASSERT(plan.ranks.at(0).peak() == plan.ranks.at(0).pool);
  RC_ASSERT(oracle::replay_locally(of.chunks, expected, order).empty());
  RC_ASSERT(step.hazards(plan).empty());
}

RC_GTEST_PROP(LocalGraphs, HurtInAnotherOrderWhomTheOracleSays, ()) {
  const Layered of;
  const std::int32_t microbatches = 1 + below(4);
  const auto order = any_order(of.chunks.size(), microbatches);
  const auto other = any_order(of.chunks.size(), microbatches);
  const auto expected =
      oracle::replay_locally(of.chunks, oracle::capture_locally(of.chunks, order), other);
  const PlannedStep capture(schedule_of(of, order, microbatches), of.modules);
  const PlannedStep replay(schedule_of(of, other, microbatches), of.modules);
  const Plan plan = assign(capture.table(), capture.course(), PlanKind::McoreLocal,
                           Granularity::PerAction, LowerBounds::Without, &replay.course());
  std::set<oracle::LocalMisread> found;
  const std::vector<Hazard> hazards = replay.hazards(plan);
  for (const Hazard& hazard : hazards)
    found.insert({tensor_of(hazard.victim), static_cast<int>(hazard.reader.entry)});
  RC_CLASSIFY(!found.empty());
  RC_ASSERT(std::vector(found.begin(), found.end()) == expected);
  RC_ASSERT(hazards.size() == found.size());
}

// Every backward makes its weight gradients itself.
void make_whole(RankOrder& rank) {
  std::erase_if(rank.order, [](const Entry& entry) { return entry.kind == Kind::BackwardWeight; });
  for (Entry& entry : rank.order) {
    if (entry.kind == Kind::BackwardInput) entry.kind = Kind::Backward;
  }
  rank.delay.emplace(static_cast<std::size_t>(rank.chunks), Delay::Never);
}

RC_GTEST_PROP(LocalGraphs, HurtNobodyWhenTheyAreReplayedAsCaptured, ()) {
  Schedule schedule = *sound_schedule();
  while (has_composites(schedule)) schedule = *sound_schedule();
  for (RankOrder& rank : schedule.ranks) make_whole(rank);
  const ModuleTable modules = any_modules(schedule);
  const PlannedStep step(schedule, modules, {.aliases = any_aliases()}, any_environment());
  RC_CLASSIFY(step.course().graph != nullptr);
  RC_ASSERT(step.hazards(PlanKind::McoreLocal).empty());
}

}  // namespace
}  // namespace capo::testing
