// Hazards on orders that one can follow by hand, in plans of TransformerEngine's and in plans made
// up here: who reads what has been taken over, by whom, and what is a race.

#include "core/plan/hazards.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using testing_support::all_of;
using testing_support::PlannedStep;
using testing_support::read_schedule;
using testing_support::sized_module;

using Lines = std::vector<std::string>;

constexpr Aliases kBoth{.input = true, .grad_output = true};

Schedule one_rank(const std::string& order, std::int32_t microbatches) {
  return read_schedule("ranks 1\nmicrobatches " + std::to_string(microbatches) +
                       "\nrank 0: " + order + "\n");
}

Layers list_of(std::vector<std::int64_t> values) {
  return {.form = Layers::Form::List, .values = std::move(values)};
}

// "static input of 1.0 by 2, read at 4": chunk and microbatch, and entries of the order.
Lines words_of(const std::vector<Hazard>& hazards) {
  Lines lines;
  for (const Hazard& hazard : hazards) {
    const Buffer& victim = hazard.victim;
    lines.push_back(fmt::format("{} of {}.{} by {}, {} at {}{}", name_of(victim.kind), victim.chunk,
                                victim.microbatch, hazard.writer.entry,
                                hazard.window ? "sent" : "read", hazard.reader.entry,
                                hazard.race ? ", a race" : ""));
  }
  return lines;
}

Lines te_hazards(const std::string& order, std::int32_t microbatches,
                 const Aliases& aliases = kBoth) {
  return words_of(
      PlannedStep(one_rank(order, microbatches), {}, {.aliases = aliases}).hazards(PlanKind::Te));
}

// --- lists ---------------------------------------------------------------------------------------

Hazard numbered(std::int32_t number) {
  const auto entry = static_cast<std::uint32_t>(number);
  return {.victim = {.rank = number,
                     .chunk = number + 1,
                     .layer = number + 2,
                     .microbatch = number + 3,
                     .kind = BufferKind::GradInput},
          .taker = entry + 4,
          .writer = {.rank = number, .entry = entry + 5, .kind = Kind::Backward},
          .reader = {.rank = number, .entry = entry + 6, .kind = Kind::SendBackward},
          .race = number % 2 == 0,
          .window = number % 3 == 0};
}

HazardList list_from(std::int32_t first, std::int32_t end) {
  HazardList list;
  for (std::int32_t number = first; number < end; ++number) list.push_back(numbered(number));
  return list;
}

TEST(HazardLists, GiveBackWhatTheyHoldInItsOrderAndWhenTheyAreJoined) {
  HazardList all;
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.begin(), all.end());
  all.append(list_from(0, 3));
  all.append(HazardList());
  all.append(list_from(3, 4));
  all.push_back(numbered(4));
  all.close();
  EXPECT_EQ(all.size(), 5U);
  std::int32_t number = 0;
  for (const Hazard& hazard : all) {
    EXPECT_EQ(hazard, numbered(number));
    EXPECT_EQ(hazard.victim, numbered(number).victim);
    ++number;
  }
  EXPECT_EQ(number, 5);
}

// --- TransformerEngine's plan --------------------------------------------------------------------

TEST(Hazards, AForwardTakesTheInputOfAWeightGradientThatIsStillToCome) {
  EXPECT_EQ(te_hazards("F1.0 B1.0 F1.1 W1.0 B1.1 W1.1", 2),
            Lines{"static input of 1.0 by 2, read at 3"});
  EXPECT_EQ(te_hazards("F1.0 B1.0 F2.0 W1.0 B2.0 W2.0", 1),
            Lines{"static input of 1.0 by 2, read at 3"});
}

TEST(Hazards, ABackwardTakesTheGradientOfAWeightGradientThatIsStillToCome) {
  EXPECT_EQ(te_hazards("F1.0 F2.0 B2.0 B1.0 W2.0 W1.0", 1),
            Lines{"grad output of 2.0 by 3, read at 4"});
}

TEST(Hazards, OneWeightGradientCanLoseBoth) {
  EXPECT_EQ(te_hazards("F1.0 B1.0 F2.0 B2.0 W1.0 W2.0", 1),
            (Lines{"static input of 1.0 by 2, read at 4", "grad output of 1.0 by 3, read at 4"}));
}

TEST(Hazards, HurtOnlyTheOperandThatIsAliased) {
  const std::string order = "F1.0 B1.0 F2.0 B2.0 W1.0 W2.0";
  EXPECT_EQ(te_hazards(order, 1, {.input = true}), Lines{"static input of 1.0 by 2, read at 4"});
  EXPECT_EQ(te_hazards(order, 1, {.grad_output = true}),
            Lines{"grad output of 1.0 by 3, read at 4"});
  EXPECT_EQ(te_hazards(order, 1, {}), Lines{});
}

TEST(Hazards, AreNoneWhereEveryWeightGradientFollowsItsBackward) {
  EXPECT_EQ(te_hazards("F1.0 F2.0 B2.0 W2.0 B1.0 W1.0", 1), Lines{});
  EXPECT_EQ(te_hazards("F1.0 F1.1 B1.0 B1.1", 2), Lines{});
}

// The weight gradient of the last layer comes behind the backward of the first.
TEST(Hazards, LayersOfOneChunkTakeEachOthersGradient) {
  Schedule schedule = one_rank("F1.0 B1.0 W1.0", 1);
  schedule.ranks[0].layers = list_of({2});
  const PlannedStep step(schedule, {}, {.aliases = kBoth});
  const auto hazards = step.hazards(PlanKind::Te);
  ASSERT_EQ(words_of(hazards), Lines{"grad output of 1.0 by 1, read at 2"});
  EXPECT_EQ(hazards[0].victim.layer, 1);
  EXPECT_EQ(step.table().at(hazards[0].taker).layer, 0);
}

// Captured one way and replayed another: even what was copied lies in memory that is used again.
TEST(Hazards, OfAReplayInAnotherOrderAreFoundInThePlanOfTheCapture) {
  const PlannedStep capture(one_rank("F1.0 B1.0 W1.0 F1.1 B1.1 W1.1", 2), {},
                            {.aliases = Aliases{}});
  const PlannedStep replay(one_rank("F1.0 F1.1 B1.0 W1.0 B1.1 W1.1", 2), {},
                           {.aliases = Aliases{}});
  const Plan plan = capture.plan(PlanKind::Te);
  EXPECT_TRUE(capture.hazards(plan).empty());
  EXPECT_FALSE(replay.hazards(plan).empty());
}

// --- the send of a chunk of the model ------------------------------------------------------------

// Layers 1 | 2 3: the gradient of layer 2 leaves while the next backward of a chunk runs.
TEST(Hazards, AnInputGradientIsSentUntilTheNextChunkOfTheModelEnds) {
  const std::string order = "F1.0 F2.0 F3.0 F1.1 F2.1 F3.1 B3.0 B2.0 B3.1 B2.1 B1.0 B1.1";
  const PlannedStep step(one_rank(order, 2), {}, {.model_chunks = {1, 2}});
  const auto hazards = step.hazards(PlanKind::Te);
  for (const Hazard& hazard : hazards) {
    EXPECT_TRUE(hazard.window);
    EXPECT_FALSE(hazard.race) << "the send is over in the end";
    EXPECT_EQ(hazard.victim.kind, BufferKind::GradInput);
  }
  EXPECT_EQ(words_of(hazards), Lines{"grad input of 2.0 by 9, sent at 9"});
  EXPECT_EQ(words_of(PlannedStep(one_rank(order, 2)).hazards(PlanKind::Te)), Lines{})
      << "chunks of the model were not declared";
}

// Layer 1 is the first of a chunk of the model with three. Its gradient is let go when the backward
// of layer 2 is captured, and no later backward of layer 1 ends its send.
TEST(Hazards, TheInputGradientThatIsHandedOnLastIsSentUntilTheStepEnds) {
  const auto hazards = [](const std::string& order, const std::vector<std::int32_t>& chunks) {
    return words_of(PlannedStep(one_rank(order, 1), {}, {.aliases = kBoth, .model_chunks = chunks})
                        .hazards(PlanKind::Te));
  };
  const std::string in_turn = "F1.0 B1.0 F2.0 B2.0 F3.0 B3.0";
  EXPECT_EQ(hazards(in_turn, {3}), Lines{"grad input of 1.0 by 4, sent at 5"});
  EXPECT_EQ(hazards(in_turn, {1, 1, 1}), Lines{}) << "each send is over at the next backward";
  EXPECT_EQ(hazards("F1.0 F2.0 F3.0 B3.0 B2.0 B1.0", {3}), Lines{}) << "it is the last backward";
  EXPECT_EQ(hazards("F1.0 B1.0 F2.0 B2.0", {2}), Lines{}) << "let go, and nobody takes it";
  EXPECT_EQ(hazards("F1.0 B1.0 W1.0 F2.0 B2.0 W2.0 F3.0 B3.0 W3.0", {3}),
            Lines{"grad input of 1.0 by 6, sent at 8"});
}

TEST(Hazards, TheStepOfEachRankEndsBehindItsOwnWork) {
  Schedule schedule = read_schedule(
      "ranks 2\nmicrobatches 1\n"
      "rank 0: F1.0 B1.0 F2.0 B2.0 F3.0 B3.0\n"
      "rank 1: F3.0 F2.0 F1.0 B1.0 B2.0 B3.0\n");
  const PlannedStep step(schedule, {}, {.aliases = kBoth, .model_chunks = {3}});
  const auto hazards = step.hazards(PlanKind::Te);
  EXPECT_EQ(words_of(hazards),
            (Lines{"grad input of 1.0 by 4, sent at 5", "grad input of 1.0 by 5, sent at 5"}));
  EXPECT_EQ(hazards.front().victim.rank, 0);
  EXPECT_EQ(hazards.back().victim.rank, 1);
}

// W1.0 takes the memory on a stream of its own, and the step ends behind that as well.
TEST(Hazards, TheStepEndsBehindAllStreamsOfARank) {
  const PlannedStep step(one_rank("F1.0 F2.0 B1.0 B2.0 W1.0 W2.0", 1), {},
                         {.aliases = Aliases{}, .model_chunks = {2}}, {.weight_stream = true});
  const auto hazards = step.hazards(PlanKind::Te);
  ASSERT_EQ(words_of(hazards), Lines{"grad input of 1.0 by 4, sent at 5"});
  EXPECT_EQ(step.table().at(hazards[0].taker).kind, BufferKind::Scratch);
  EXPECT_EQ(hazards[0].reader.kind, Kind::BackwardWeight);
  EXPECT_EQ(words_of(step.hazards(PlanKind::Safe)), Lines{});
}

// --- made-up plans -------------------------------------------------------------------------------

// Everything apart, to be laid over each other by hand.
Plan apart(const BufferTable& table) {
  Plan plan{.kind = PlanKind::Safe, .address = std::vector<std::int64_t>(table.size())};
  for (BufferId id = 0; id < table.size(); ++id) plan.address[id] = 100 * std::int64_t{id};
  return plan;
}

TEST(Hazards, AreNoneWhereNothingIsShared) {
  const PlannedStep step(one_rank("F1.0 F1.1 (B1.0 B1.1) W1.0 W1.1", 2), all_of(sized_module()));
  EXPECT_EQ(words_of(step.hazards(apart(step.table()))), Lines{});
}

TEST(Hazards, OneByteInCommonIsEnough) {
  const PlannedStep step(one_rank("F1.0 F1.1 B1.0 B1.1", 2), all_of(sized_module()));
  const BufferTable& table = step.table();
  const BufferId first = table.id(0, 1, 0, 0, BufferKind::Output);
  const BufferId second = table.id(0, 1, 0, 1, BufferKind::Output);
  for (const std::int64_t shift : {-8, -7, -1, 0, 1, 7, 8}) {
    SCOPED_TRACE(shift);
    Plan plan = apart(table);
    plan.address[second] = plan.address[first] + shift;
    const Lines expected =
        shift == -8 || shift == 8 ? Lines{} : Lines{"output of 1.0 by 1, read at 2"};
    EXPECT_EQ(words_of(step.hazards(plan)), expected);
  }
}

TEST(Hazards, OneWriteCanTakeSeveralOver) {
  const PlannedStep step(one_rank("F1.0 F1.1 B1.0 B1.1", 2), all_of(sized_module()));
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  const std::int64_t at = plan.address[table.id(0, 1, 0, 1, BufferKind::Activations)];
  plan.address[table.id(0, 1, 0, 0, BufferKind::StaticInput)] = at - 4;
  plan.address[table.id(0, 1, 0, 0, BufferKind::Output)] = at + 33;
  EXPECT_EQ(words_of(step.hazards(plan)),
            (Lines{"static input of 1.0 by 1, read at 2", "output of 1.0 by 1, read at 2"}));
}

TEST(Hazards, NothingIsTakenOverByABufferWithoutBytes) {
  ModuleTable modules{.list = {sized_module(), sized_module()}, .layers = {{{0}, {1}}}};
  modules.list[0].bytes.input = 0;
  const PlannedStep step(one_rank("F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1", 2), modules);
  EXPECT_EQ(words_of(step.hazards(PlanKind::Te)), Lines{});
}

TEST(Hazards, EachReaderOfAVictimHasItsOwn) {
  const PlannedStep step(one_rank("F1.0 F1.1 B1.0 W1.0 B1.1 W1.1", 2), {}, {.aliases = Aliases{}});
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  plan.address[table.id(0, 1, 0, 1, BufferKind::Activations)] =
      plan.address[table.id(0, 1, 0, 0, BufferKind::Activations)];
  EXPECT_EQ(words_of(step.hazards(plan)),
            (Lines{"activations of 1.0 by 1, read at 2", "activations of 1.0 by 1, read at 3"}));
}

// --- races ---------------------------------------------------------------------------------------

TEST(Hazards, MembersOfACompositeRace) {
  const PlannedStep step(one_rank("F1.0 (B1.0 F1.1) B1.1", 2));
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  plan.address[table.id(0, 1, 0, 1, BufferKind::StaticInput)] =
      plan.address[table.id(0, 1, 0, 0, BufferKind::GradOutput)];
  EXPECT_EQ(words_of(step.hazards(plan)), (Lines{"grad output of 1.0 by 2, read at 1, a race",
                                                 "static input of 1.1 by 1, read at 2, a race"}));
}

TEST(Hazards, ABufferTakenOverInPartsRacesOnceWithItsReader) {
  const PlannedStep step(one_rank("F1.0 (B1.0 F1.1) B1.1", 2), all_of(sized_module()));
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  const std::int64_t at = plan.address[table.id(0, 1, 0, 0, BufferKind::GradOutput)];
  plan.address[table.id(0, 1, 0, 1, BufferKind::StaticInput)] = at - 4;
  plan.address[table.id(0, 1, 0, 1, BufferKind::Output)] = at + 4;
  EXPECT_EQ(words_of(step.hazards(plan)), (Lines{"grad output of 1.0 by 2, read at 1, a race",
                                                 "static input of 1.1 by 1, read at 2, a race",
                                                 "output of 1.1 by 1, read at 2, a race"}));
}

// W1.0 runs beside F1.1 on a stream of its own.
TEST(Hazards, AStreamOfWeightGradientsRacesWithWhatIsLaunchedBehindThem) {
  Schedule schedule = one_rank("F1.0 B1.0 W1.0 F1.1 B1.1 W1.1", 2);
  schedule.topology = Topology::Chain;
  place_stages(schedule);
  const PlannedStep beside(schedule, {}, {.aliases = kBoth}, {.weight_stream = true});
  const PlannedStep behind(schedule, {}, {.aliases = kBoth});
  EXPECT_EQ(words_of(behind.hazards(PlanKind::Te)), Lines{});
  const Lines hazards = words_of(beside.hazards(PlanKind::Te));
  EXPECT_EQ(hazards, (Lines{"static input of 1.0 by 3, read at 2, a race",
                            "grad output of 1.0 by 4, read at 2, a race"}));
  EXPECT_EQ(words_of(beside.hazards(PlanKind::Safe)), Lines{});
  EXPECT_FALSE(beside.hazards(behind.plan(PlanKind::Safe)).empty())
      << "a plan for one stream is none for two";
}

// W1.0 writes its scratch beside F1.1, and still beside F1.2: either write may be the later one.
TEST(Hazards, OfTwoWritesThatNothingOrdersEitherHurtsTheOther) {
  const PlannedStep step(one_rank("F1.0 B1.0 W1.0 F1.1 B1.1 W1.1 F1.2 B1.2 W1.2", 3),
                         all_of(sized_module()), {.aliases = Aliases{}}, {.weight_stream = true});
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  const std::int64_t at = plan.address[table.id(0, 1, 0, 0, BufferKind::Scratch)];
  plan.address[table.id(0, 1, 0, 1, BufferKind::Output)] = at;
  EXPECT_EQ(words_of(step.hazards(plan)), (Lines{"scratch of 1.0 by 3, read at 2, a race",
                                                 "output of 1.1 by 2, read at 3, a race"}));
  plan.address[table.id(0, 1, 0, 2, BufferKind::Output)] = at;
  EXPECT_EQ(words_of(step.hazards(plan)), (Lines{"scratch of 1.0 by 3, read at 2, a race",
                                                 "output of 1.1 by 2, read at 3, a race",
                                                 "output of 1.2 by 2, read at 6, a race"}));
}

// B1.0 has written two of the buffers in the range of what F1.1 writes, and hurts it once.
TEST(Hazards, AWriteHasOneHazardForEachRival) {
  const PlannedStep step(one_rank("F1.0 (B1.0 F1.1) B1.1", 2), all_of(sized_module()));
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  const std::int64_t at = plan.address[table.id(0, 1, 0, 1, BufferKind::Activations)];
  plan.address[table.id(0, 1, 0, 0, BufferKind::GradOutput)] = at;
  plan.address[table.id(0, 1, 0, 0, BufferKind::GradInput)] = at + 8;
  EXPECT_EQ(words_of(step.hazards(plan)), (Lines{"grad output of 1.0 by 2, read at 1, a race",
                                                 "grad input of 1.0 by 2, read at 1, a race",
                                                 "activations of 1.1 by 1, read at 2, a race"}));
}

// Rank 0 sends its output, and its next forward writes over it.
TEST(Hazards, ASendRacesWithWhatIsLaunchedBehindIt) {
  const PlannedStep step(
      read_schedule("ranks 2\nmicrobatches 2\nplacement chain\n"
                    "rank 0: F1.0 F1.1 B1.0 B1.1\n"
                    "rank 1: F1.0 B1.0 F1.1 B1.1\n"));
  const BufferTable& table = step.table();
  Plan plan = apart(table);
  plan.address[table.id(0, 1, 0, 1, BufferKind::StaticInput)] =
      plan.address[table.id(0, 1, 0, 0, BufferKind::Output)];
  const auto hazards = step.hazards(plan);
  ASSERT_EQ(hazards.size(), 2U);
  EXPECT_EQ(words_of(hazards),
            (Lines{"output of 1.0 by 1, read at 0, a race", "output of 1.0 by 1, read at 2"}));
  EXPECT_EQ(hazards[0].reader.kind, Kind::SendForward);
  // By the backward's launch the send has arrived.
  plan = apart(table);
  plan.address[table.id(0, 1, 0, 0, BufferKind::GradInput)] =
      plan.address[table.id(0, 1, 0, 0, BufferKind::Output)];
  EXPECT_EQ(words_of(step.hazards(plan)), Lines{"output of 1.0 by 2, read at 2"});
}

}  // namespace
}  // namespace capo
