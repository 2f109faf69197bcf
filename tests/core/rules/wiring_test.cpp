// What rules across ranks ask: which transfers a schedule has, whether it can be executed, and what
// would be so elsewhere.

#include "core/rules/wiring.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/graph/random_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::lines_of;
using testing_support::random_schedule;
using testing_support::read_schedule;

using Lines = std::vector<std::string>;

const std::string kPlain =
    "ranks 2\nmicrobatches 1\nchunks 1\nplacement chain\nrank 0: F1 B1\nrank 1: F1 B1\n";
const std::string kWritten =
    "ranks 2\nmicrobatches 1\nchunks 1\nplacement chain\n"
    "rank 0: F1 recv-B1 send-F1 B1\nrank 1: recv-F1 F1 B1 send-B1\n";

// A wiring with all that it refers to.
struct Subject {
  std::unique_ptr<Schedule> schedule;
  std::vector<CollectiveGroup> groups;
  std::unique_ptr<Wiring> wiring;

  [[nodiscard]] const Wiring* operator->() const { return wiring.get(); }
};

Subject subject_of(Schedule schedule, const Environment& environment = {},
                   std::vector<CollectiveGroup> groups = {}, bool replay = false) {
  Subject subject{.schedule = std::make_unique<Schedule>(std::move(schedule)),
                  .groups = std::move(groups),
                  .wiring = nullptr};
  subject.wiring = std::make_unique<Wiring>(*subject.schedule, environment, subject.groups,
                                            subject.schedule->microbatches.value(), replay);
  return subject;
}

Subject subject_of(const std::string& text, const Environment& environment = {},
                   std::vector<CollectiveGroup> groups = {}) {
  return subject_of(read_schedule(text), environment, std::move(groups));
}

CollectiveGroup experts(std::vector<std::int32_t> members) {
  return {.name = "experts",
          .members = std::move(members),
          .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                      Kind::CombineBackward},
          .streams = {}};
}

// --- which transfers -----------------------------------------------------------------------------

TEST(Wiring, TransfersAreAsWrittenOrAsMegatronCallsThemOrAsPyTorchAddsThem) {
  EXPECT_EQ(lines_of(subject_of(kPlain)->lowered()),
            (Lines{"F1.0 send-F1.0 recv-B1.0 B1.0", "recv-F1.0 F1.0 B1.0 send-B1.0"}));
  EXPECT_EQ(lines_of(subject_of(kPlain, {.p2p = MegatronCalls::Batch})->lowered()),
            (Lines{"F1.0 send-F1.0! recv-B1.0! B1.0", "recv-F1.0! F1.0 B1.0 send-B1.0!"}));
  // Written transfers stay, whatever calls are asked for.
  for (const auto calls : {std::optional<MegatronCalls>(), std::optional(MegatronCalls::Batch)}) {
    const auto subject = subject_of(kWritten, {.p2p = calls});
    EXPECT_FALSE(subject->by_megatron());
    EXPECT_EQ(lines_of(subject->lowered()),
              (Lines{"F1.0 recv-B1.0 send-F1.0 B1.0", "recv-F1.0 F1.0 B1.0 send-B1.0"}));
  }
}

TEST(Wiring, MegatronIsAskedOnlyAboutWiredChunksOfTwoRanksOrMore) {
  const Environment batch{.p2p = MegatronCalls::Batch};
  EXPECT_TRUE(subject_of(kPlain, batch)->by_megatron());
  EXPECT_FALSE(subject_of(kPlain)->by_megatron());
  EXPECT_FALSE(
      subject_of("ranks 2\nmicrobatches 1\nrank 0: F1 B1\nrank 1: F1 B1\n", batch)->by_megatron());
  EXPECT_FALSE(subject_of("microbatches 1\nrank 0: F1 F2 B2 B1\n", batch)->by_megatron());
}

bool goes_around(const std::string& statements) {
  return subject_of("microbatches 1\n" + statements)->megatron_placement();
}

TEST(Wiring, MegatronsStagesGoAroundTheRanksInALoop) {
  const std::string two = "rank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n";
  EXPECT_TRUE(goes_around("ranks 2\nplacement loop\n" + two));
  EXPECT_TRUE(
      goes_around("ranks 2\nplacement custom\nrank 0 stages 0,2\nrank 1 stages 1,3\n" + two));
  EXPECT_TRUE(goes_around("ranks 2\nplacement chain\nrank 0: F1 B1\nrank 1: F1 B1\n"));
  EXPECT_FALSE(goes_around("ranks 2\nplacement chain\n" + two));
  EXPECT_FALSE(goes_around("ranks 2\nplacement v\n" + two));
  EXPECT_FALSE(
      goes_around("ranks 2\nplacement custom\nrank 0 stages 2,0\nrank 1 stages 3,1\n" + two));
  EXPECT_FALSE(
      goes_around("ranks 2\nplacement custom\nrank 0 stages 0,2\nrank 1 stages 1\n"
                  "rank 0: F1 F2 B2 B1\nrank 1: F1 B1\n"));
}

// Where chunks of the order are layers, the turns are those of the model's chunks.
TEST(Wiring, InMegatronsLoopEachTurnTakesAllLayersOfAChunkOfTheModel) {
  const std::string two = "rank 0: F1 F2 B2 B1\nrank 1: F1 F2 B2 B1\n";
  const auto layered = [&](const std::string& stages) {
    return goes_around("ranks 2\nplacement custom\n" + stages + two);
  };
  EXPECT_TRUE(
      layered("rank 0 stages 0,1\nrank 0 model-chunks 2\n"
              "rank 1 stages 2,3\nrank 1 model-chunks 2\n"));
  EXPECT_FALSE(
      layered("rank 0 stages 0,1\nrank 0 model-chunks 2\n"
              "rank 1 stages 2,3\nrank 1 model-chunks 1,1\n"))
      << "rank 0 has no second chunk of the model for the turn between them";
  EXPECT_FALSE(
      layered("rank 0 stages 0,1\nrank 0 model-chunks 2\n"
              "rank 1 stages 2,2\nrank 1 model-chunks 2\n"))
      << "the second layer of rank 1 has no stage of its own";
}

TEST(Wiring, TransfersMatterWhereRanksAreWiredOrExchange) {
  EXPECT_TRUE(subject_of(kPlain)->transfers_matter());
  const std::string apart = "ranks 2\nmicrobatches 1\nrank 0: F1 B1\nrank 1: F1 B1\n";
  EXPECT_FALSE(subject_of(apart)->transfers_matter());
  EXPECT_TRUE(subject_of(apart, {}, {experts({0, 1})})->transfers_matter());
  EXPECT_TRUE(subject_of("ranks 1\nmicrobatches 1\nrank 0: F1 dispatch-F1 combine-F1 B1\n")
                  ->transfers_matter());
  const std::string alone = "ranks 1\nmicrobatches 1\nchunks 2\nplacement chain\nrank 0: ";
  EXPECT_FALSE(subject_of(alone + "F1 F2 B2 B1\n")->transfers_matter());
  EXPECT_TRUE(subject_of(alone + "F1 send-F1 F2 B2 B1\n")->transfers_matter());
  EXPECT_TRUE(subject_of(alone + "F1 dispatch-F1 combine-F1 F2 B2 B1\n")->transfers_matter());
}

std::vector<Environment> every_way_to_communicate() {
  std::vector<Environment> ways;
  for (const auto layout : {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge,
                            Communicators::PerDirection, Communicators::LazyHybrid}) {
    for (const auto mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      for (const bool apart : {false, true}) {
        ways.push_back({.communicators = layout, .transfers = mode, .weight_stream = apart});
      }
    }
  }
  return ways;
}

// The graph agrees that there is no doubt: nothing is at fault, and everything runs.
TEST(Wiring, TransfersThatAreAddedFitAndFinishByTheWayTheyAreAdded) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const Schedule schedule =
        random_schedule({.ranks = 2 + round % 4,
                         .chunks = 1 + round % 3,
                         .microbatches = 2 + round % 3,
                         .topology = static_cast<Topology>(1 + round % 3),
                         .delay = round % 2 == 0 ? Delay::Always : Delay::Never},
                        random);
    for (const Environment& way : every_way_to_communicate()) {
      const Subject subject = subject_of(schedule, way);
      EXPECT_FALSE(subject->transfers_in_doubt());
      EXPECT_TRUE(subject->transfers().faults.empty());
      EXPECT_TRUE(subject->finishes()) << round << " " << name_of(way.layout());
    }
  }
}

TEST(Wiring, TransfersAreInDoubtWhereMoreThanAddingThemDecides) {
  EXPECT_FALSE(subject_of(kPlain)->transfers_in_doubt());
  EXPECT_TRUE(subject_of(kWritten)->transfers_in_doubt());
  EXPECT_TRUE(subject_of(kPlain, {.p2p = MegatronCalls::Batch})->transfers_in_doubt());
  EXPECT_TRUE(subject_of(kPlain, {.comm_init = CommInit::Lazy})->transfers_in_doubt());
  EXPECT_TRUE(subject_of(kPlain, {}, {experts({0, 1})})->transfers_in_doubt());
  const std::string wired = "ranks 2\nmicrobatches 1\nplacement chain\nrank 0: F1 B1\nrank 1: ";
  EXPECT_TRUE(subject_of(wired + "F1 dispatch-F1 combine-F1 B1\n")->transfers_in_doubt());
  EXPECT_TRUE(subject_of(wired + "F1 B1 wait-send-B1\n")->transfers_in_doubt());
  EXPECT_TRUE(subject_of(wired + "F1 B1 reduce1 wait-reduce1\n")->transfers_in_doubt());
  const std::string stuck =
      "ranks 2\nmicrobatches 1\nplacement chain\nrank 0: B1 F1\nrank 1: F1 B1\n";
  EXPECT_TRUE(subject_of(stuck)->transfers_in_doubt());
  const std::string apart = "ranks 2\nmicrobatches 1\nrank 0: F1 B1\nrank 1: F1 B1\n";
  EXPECT_FALSE(subject_of(apart)->transfers_in_doubt()) << "there are none";
  EXPECT_TRUE(subject_of(apart, {.weight_stream = true})->transfers_in_doubt());
}

TEST(Wiring, TransfersOfAnActionOnAStrayRankAreInDoubt) {
  Schedule strayed = read_schedule(kPlain);
  strayed.ranks[1].strays = 1;
  EXPECT_TRUE(subject_of(strayed)->transfers_in_doubt());
}

// Without stages there is no send that a wait could be for.
TEST(Wiring, WaitsForSendsWhereAnOrderOfWiredRanksWritesThem) {
  const std::string waits = "microbatches 1\nrank 0: F1 wait-send-F1 B1\nrank 1: F1 B1\n";
  EXPECT_TRUE(subject_of("placement chain\n" + waits)->waits_for_sends());
  EXPECT_FALSE(subject_of(waits)->waits_for_sends());
  EXPECT_FALSE(subject_of(kPlain)->waits_for_sends());
}

TEST(Wiring, EachGraphHasTheOrdersThatItWasMadeOf) {
  const auto subject = subject_of(kWritten);
  EXPECT_EQ(&subject->lowered_for(subject->transfers().graph), &subject->lowered());
  const auto plain = subject_of(kPlain);
  EXPECT_NE(&plain->lowered_for(plain->direct()), &plain->lowered());
}

// --- layers taken apart --------------------------------------------------------------------------

const std::string kLayered =
    "ranks 1\nmicrobatches 1\nchunks 2\nplacement loop\nlayers 2,1\nrank 0: F1 F2 B2 B1\n";

std::size_t dispatches_in(const std::string& text, const Environment& environment,
                          std::vector<CollectiveGroup> groups) {
  const auto subject = subject_of(text, environment, std::move(groups));
  std::size_t count = 0;
  for (const auto& steps : subject->lowered().ranks) {
    for (const Step& step : steps) count += step.kind == Kind::DispatchForward ? 1 : 0;
  }
  return count;
}

TEST(Wiring, LayersAreTakenApartWhereTheirExchangesAreDeclaredAndOverlap) {
  const Environment overlap{.ep_overlap = true};
  EXPECT_EQ(dispatches_in(kLayered, overlap, {experts({0})}), 3U) << "two layers and one";
  EXPECT_EQ(dispatches_in(kLayered, {}, {experts({0})}), 0U);
  EXPECT_EQ(dispatches_in(kLayered, overlap, {}), 0U);
  CollectiveGroup reductions = experts({0});
  reductions.actions = {Kind::ReduceGradient};
  EXPECT_EQ(dispatches_in(kLayered, overlap, {reductions}), 0U);
}

TEST(Wiring, AChunkHasOneLayerUnlessItIsDeclared) {
  const auto with_layers = [](const std::string& layers) {
    return "ranks 1\nmicrobatches 1\nchunks 2\nplacement loop\n" + layers + "rank 0: F1 F2 B2 B1\n";
  };
  const Environment overlap{.ep_overlap = true};
  EXPECT_EQ(dispatches_in(with_layers(""), overlap, {experts({0})}), 2U);
  EXPECT_EQ(dispatches_in(with_layers("layers none\n"), overlap, {experts({0})}), 2U);
  EXPECT_EQ(dispatches_in(with_layers("layers 3\n"), overlap, {experts({0})}), 6U);
}

// A forward of a listed layer shares its slots with the backward that stands next, though the list
// has no composite.
TEST(Wiring, LayersThatAreListedAreTakenApartSideBySide) {
  const std::string order =
      "ranks 1\nmicrobatches 2\nchunks 2\nplacement loop\n"
      "rank 0: F1.0 F2.0 F1.1 B2.0 F2.1 B1.0 B2.1 B1.1\n";
  const auto in_slots = [](const std::string& text) {
    const auto subject = subject_of(text, {.ep_overlap = true}, {experts({0})});
    const StepList& steps = subject->lowered().ranks.front();
    return std::count_if(steps.begin(), steps.end(), [](const Step& of) { return of.slot > 0; });
  };
  EXPECT_EQ(in_slots(order + "rank 0 model-chunks 2\n"), 2 * 8) << "two pairs of eight slots";
  EXPECT_EQ(in_slots(order), 0);
}

// Whoever times an order on links asks for its layers whether or not the ranks that exchange are
// declared.
TEST(Wiring, OnLinksLayersAreApartWhereExchangesOverlapUndeclared) {
  const Environment overlap{.ep_overlap = true};
  const auto undeclared = subject_of(kLayered, overlap);
  EXPECT_EQ(lines_of(undeclared->lowered()), Lines{"F1.0 F2.0 B2.0 B1.0"});
  const auto declared = subject_of(kLayered, overlap, {experts({0})});
  EXPECT_EQ(lines_of(undeclared->lowered_for_links()), lines_of(declared->lowered()));
  EXPECT_TRUE(execute(undeclared->graph_for_links()).finishes());
  EXPECT_EQ(&declared->lowered_for_links(), &declared->lowered());
  EXPECT_EQ(&declared->graph_for_links(), &declared->transfers().graph);
  const auto written = subject_of(
      "ranks 1\nmicrobatches 1\nplacement loop\nrank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n",
      overlap);
  EXPECT_EQ(&written->lowered_for_links(), &written->lowered()) << "they are apart already";
  const auto plain = subject_of(kLayered);
  EXPECT_EQ(&plain->lowered_for_links(), &plain->lowered());
}

TEST(Wiring, AnOrderThatWritesItsExchangesIsLeftAsItIs) {
  EXPECT_EQ(dispatches_in("ranks 1\nmicrobatches 1\nchunks 1\nplacement loop\nlayers 4\n"
                          "rank 0: F1 dispatch-F1 combine-F1 B1\n",
                          {.ep_overlap = true}, {experts({0})}),
            1U);
}

// --- what runs -----------------------------------------------------------------------------------

// What the rules about one rank have seen to before any wiring is asked.
bool runs_each_in_turn(const std::vector<Entry>& order) {
  std::map<std::pair<std::int32_t, std::int32_t>, Kind> next;  // Forward, Backward, BackwardWeight
  return std::all_of(order.begin(), order.end(), [&](const Entry& entry) {
    Kind& kind = next[{entry.chunk, entry.microbatch}];
    if (entry.kind != kind) return false;
    kind = kind == Kind::Forward ? Kind::Backward : Kind::BackwardWeight;
    return true;
  });
}

// Putting the transfers in and running the computations on paper are two ways to the same answer.
TEST(Wiring, IsExecutableWhicheverWayItIsFoundOut) {
  std::mt19937 random(11);
  std::size_t executable = 0;
  std::size_t stuck = 0;
  for (int round = 0; round < 400; ++round) {
    Schedule schedule = random_schedule({.ranks = 1 + round % 4,
                                         .chunks = 1 + round % 3,
                                         .microbatches = 2 + round % 3,
                                         .topology = static_cast<Topology>(1 + round % 3),
                                         .delay = round % 2 == 0 ? Delay::Always : Delay::Never},
                                        random);
    for (RankOrder& rank : schedule.ranks) {
      Entry& one = rank.order[random() % rank.order.size()];
      Entry& other = rank.order[random() % rank.order.size()];
      if (one.kind != other.kind) continue;
      std::swap(one, other);
      if (!runs_each_in_turn(rank.order)) std::swap(one, other);
    }
    const Subject by_adding = subject_of(schedule);
    const Subject by_running = subject_of(schedule);
    const bool finishes = by_running->direct_execution().finishes();
    EXPECT_EQ(by_adding->executable(), finishes) << round;
    EXPECT_EQ(by_running->executable(), finishes) << round;
    const StageMap map(schedule);
    EXPECT_EQ(can_add_transfers(schedule, map, *schedule.microbatches),
              add_transfers(schedule, map, *schedule.microbatches).complete);
    ++(finishes ? executable : stuck);
  }
  std::printf("%zu random schedules executable, %zu not, either way\n", executable, stuck);
  EXPECT_GT(executable, 50U);
  EXPECT_GT(stuck, 50U);
}

// What is sent is what the last exchange brought back, and the first one reads what is received.
TEST(Wiring, TransfersArePutAroundExchanges) {
  const std::string text =
      "ranks 2\nmicrobatches 1\nchunks 1\nplacement loop\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 dispatch-B1.0 combine-B1.0 B1.0\n"
      "rank 1: F1.0 dispatch-F1.0 B1.0 combine-B1.0\n";
  EXPECT_EQ(
      lines_of(subject_of(text)->lowered()),
      (Lines{"F1.0 dispatch-F1.0 combine-F1.0 send-F1.0 recv-B1.0 dispatch-B1.0 combine-B1.0 B1.0",
             "recv-F1.0 F1.0 dispatch-F1.0 B1.0 combine-B1.0 send-B1.0"}));
  // Megatron waits for each call.
  EXPECT_EQ(lines_of(subject_of(text, {.p2p = MegatronCalls::Batch})->lowered()),
            (Lines{"F1.0 dispatch-F1.0 combine-F1.0 send-F1.0! recv-B1.0! dispatch-B1.0 "
                   "combine-B1.0 B1.0",
                   "recv-F1.0! F1.0 dispatch-F1.0 B1.0 combine-B1.0 send-B1.0!"}));
}

// Of a composite whose members read one another only adding the transfers knows; what has been
// asked before makes no difference.
TEST(Wiring, IsNotExecutableWhereAMemberOfACompositeReadsAnother) {
  for (const Environment& environment : {Environment{}, Environment{.p2p = MegatronCalls::Batch}}) {
    const auto subject = subject_of(
        "ranks 1\nmicrobatches 1\nchunks 2\nplacement chain\nrank 0: F1.0 F2.0 (B2.0 B1.0)\n",
        environment);
    EXPECT_FALSE(subject->executable());
    EXPECT_TRUE(subject->direct_execution().finishes());
    EXPECT_FALSE(subject->executable());
  }
}

TEST(Wiring, KnowsWhetherTheSameTransfersFinishElsewhere) {
  // Both send before they receive.
  const auto subject = subject_of(
      "ranks 2\nmicrobatches 2\nplacement chain\nchunks 1\n"
      "rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1\n"
      "rank 1: recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 send-B1.1\n");
  EXPECT_TRUE(subject->executable());
  EXPECT_FALSE(subject->execution().finishes());
  EXPECT_FALSE(subject->finishes_under({.communicators = Communicators::PerPair}));
  EXPECT_TRUE(subject->finishes_under({.communicators = Communicators::PerEdge}));
  EXPECT_TRUE(subject->finishes_under({.transfers = TransferMode::Buffered}));
}

// --- replay --------------------------------------------------------------------------------------

// Links that never queue take the transfers away, and leave what Megatron's calls make of a step.
TEST(Wiring, OverIdealLinksMegatronsStepsAreTakenApartAsWell) {
  const std::string text =
      "ranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n";
  const auto nodes = [&](const Environment& environment) {
    const Subject subject = subject_of(text, environment);
    EXPECT_TRUE(execute(subject->ideal().graph).finishes());
    return subject->ideal().graph.tasks.size();
  };
  EXPECT_EQ(nodes({}), 8U);
  EXPECT_EQ(nodes({.p2p = MegatronCalls::Batch}), 8U);
  EXPECT_EQ(nodes({.p2p = MegatronCalls::Batch, .ep_overlap = true}), 32U);
  EXPECT_EQ(nodes({.ep_overlap = true}), 32U);
  const Subject written = subject_of(
      "ranks 1\nmicrobatches 1\nplacement chain\nrank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n",
      {.ep_overlap = true});
  EXPECT_EQ(written->ideal().graph.tasks.size(), 4U) << "they are apart already";
}

TEST(Wiring, OfReplayTakesTheReplayOrderWhereThereIsOne) {
  const Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1 F1 B1 B1\nrank 0 replay: F1 B1 F1 B1\nrank 1: F1 B1 F1 B1\n");
  const auto captured = subject_of(schedule);
  const auto replayed = subject_of(schedule, {}, {}, true);
  EXPECT_FALSE(captured->replay());
  EXPECT_TRUE(replayed->replay());
  EXPECT_EQ(lines_of(as_written(captured->schedule())),
            (Lines{"F1.0 F1.1 B1.0 B1.1", "F1.0 B1.0 F1.1 B1.1"}));
  EXPECT_EQ(lines_of(as_written(replayed->schedule())),
            (Lines{"F1.0 B1.0 F1.1 B1.1", "F1.0 B1.0 F1.1 B1.1"}));
  for (const RankOrder& rank : replayed->schedule().ranks) EXPECT_FALSE(rank.replay);
}

// --- once ----------------------------------------------------------------------------------------

TEST(Wiring, MakesEachThingOnceAndKnowsWhatItWasMadeOf) {
  const auto subject = subject_of(kPlain);
  const Wiring& wiring = *subject.wiring;
  EXPECT_EQ(&wiring.direct(), &wiring.direct());
  EXPECT_EQ(&wiring.lowered(), &wiring.lowered());
  EXPECT_EQ(&wiring.transfers(), &wiring.transfers());
  EXPECT_EQ(&wiring.execution(), &wiring.execution());
  EXPECT_EQ(lines_of(wiring.lowered_for(wiring.direct())), (Lines{"F1.0 B1.0", "F1.0 B1.0"}));
  EXPECT_EQ(&wiring.lowered_for(wiring.transfers().graph), &wiring.lowered());
}

}  // namespace
}  // namespace capo
