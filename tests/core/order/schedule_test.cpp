// Questions that a schedule answers by itself: microbatches by counting, and equal meanings.

#include "core/order/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace capo {
namespace {

using Entries = std::vector<Entry>;

TEST(NumberMicrobatches, CountsEachKindOfAChunkThatThereIs) {
  Entries order{{.chunk = 1, .kind = Kind::Forward}, {.chunk = 2, .kind = Kind::Forward},
                {.chunk = 1, .kind = Kind::Forward}, {.chunk = 1, .kind = Kind::Backward},
                {.chunk = 0, .kind = Kind::Forward}, {.chunk = 3, .kind = Kind::Forward},
                {.chunk = 1, .kind = Kind::Unshard}, {.kind = Kind::Idle},
                {.chunk = 1, .kind = Kind::Backward}};
  number_microbatches(order, 2);
  std::vector<std::int32_t> numbers;
  for (const Entry& entry : order) numbers.push_back(entry.microbatch);
  constexpr std::int32_t kNone = kNoMicrobatch;
  EXPECT_EQ(numbers, (std::vector<std::int32_t>{0, 0, 1, 0, kNone, kNone, kNone, kNone, 1}));
}

Schedule two_ranks() {
  const Entries order{{.chunk = 1, .microbatch = 0, .kind = Kind::Forward},
                      {.chunk = 1, .microbatch = 0, .kind = Kind::Backward}};
  return {.naming = Naming::Named,
          .topology = Topology::Chain,
          .microbatches = 1,
          .ranks = {RankOrder{.order = order, .replay = order, .chunks = 1},
                    RankOrder{.order = order, .chunks = 1}}};
}

// Each of these alone makes another schedule of it.
TEST(SameMeaning, IsLostByAnyChange) {
  EXPECT_TRUE(same_meaning(two_ranks(), two_ranks()));
  const std::vector<void (*)(Schedule&)> changes{
      [](Schedule& of) { of.naming = Naming::Counted; },
      [](Schedule& of) { of.topology = Topology::Loop; },
      [](Schedule& of) { of.microbatches = 2; },
      [](Schedule& of) { of.stages = 3; },
      [](Schedule& of) { of.p2p = MegatronCalls::Batch; },
      [](Schedule& of) { of.replicas = 2; },
      [](Schedule& of) { of.ranks.pop_back(); },
      [](Schedule& of) { of.ranks[0].replay.reset(); },
      [](Schedule& of) { of.ranks[0].replay->pop_back(); },
      [](Schedule& of) { of.ranks[1].order[0].microbatch = 1; },
      [](Schedule& of) { of.ranks[1].order[0].group = Group::Opens; },
      [](Schedule& of) { of.ranks[1].chunks = 2; },
      [](Schedule& of) { of.ranks[1].layers.form = Layers::Form::List; },
      [](Schedule& of) { of.ranks[1].delay = {Delay::Always}; },
      [](Schedule& of) { of.ranks[1].stages = {1}; },
      [](Schedule& of) { of.ranks[1].model_chunks = {1}; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Schedule changed = two_ranks();
    changes[i](changed);
    EXPECT_FALSE(same_meaning(two_ranks(), changed)) << i;
  }
}

TEST(SameMeaning, IsNoMatterOfPlacesInTheText) {
  Schedule moved = two_ranks();
  moved.ranks[1].order[0].offset = 7;
  moved.ranks[1].delay = {Delay::Never};
  EXPECT_TRUE(same_meaning(two_ranks(), moved));
}

TEST(Schedule, KnowsWhetherAnythingIsExchangedOrRunsTogether) {
  Schedule schedule = two_ranks();
  EXPECT_FALSE(has_exchanges(schedule));
  EXPECT_FALSE(has_composites(schedule));
  schedule.ranks[1].order[0].group = Group::Opens;
  schedule.ranks[1].order[1].group = Group::Continues;
  schedule.ranks[1].order[1].kind = Kind::CombineBackward;
  EXPECT_TRUE(has_exchanges(schedule));
  EXPECT_TRUE(has_composites(schedule));
}

TEST(Schedule, HasRanksThatCommunicateIfThereAreSeveralOnKnownStages) {
  Schedule schedule = two_ranks();
  schedule.topology = Topology::Chain;
  EXPECT_TRUE(ranks_communicate(schedule));
  schedule.topology = Topology::Independent;
  EXPECT_FALSE(ranks_communicate(schedule));
  schedule.topology = Topology::Chain;
  schedule.ranks.pop_back();
  EXPECT_FALSE(ranks_communicate(schedule));
}

}  // namespace
}  // namespace capo
