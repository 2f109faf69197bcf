// Cases come to what their makers say, line by line; and what does not is called a disagreement.

#include "testing/truth/judge.h"

#include "core/base/assert.h"
#include "core/input/load.h"
#include "run/host/host_engine.h"
#include "schedules/catalogue.h"
#include "testing/truth/cases.h"
#include "testing/truth/drawn_cases.h"
#include "testing/truth/drawn_modules.h"
#include "testing/truth/explained.h"
#include "testing/truth/tally.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

// In which an invariant of capo's own breaks as soon as something is to be run.
class BrokenEngine final : public run::Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "broken"; }
  [[nodiscard]] std::string device() const override { return "none"; }
  [[nodiscard]] std::byte* allocate(std::int64_t, std::string_view) override {
    throw InternalError("capo's own invariant does not hold");
  }
  void release(std::byte*) override {}
  void write(void*, const void*, std::int64_t) override {}
  void read(void*, const void*, std::int64_t) override {}
  void have_streams(std::uint32_t) override {}
  void launch(run::StreamId, const run::Call&) override {}
  [[nodiscard]] run::EventId record(run::StreamId) override { return 0; }
  void wait(run::StreamId, run::EventId) override {}
  void begin_capture(run::StreamId) override {}
  [[nodiscard]] run::GraphId end_capture() override { return 0; }
  void replay(run::GraphId, run::StreamId) override {}
  [[nodiscard]] std::vector<run::GraphNode> inspect(run::GraphId) override { return {}; }
  void synchronise() override {}
  [[nodiscard]] double between(run::EventId, run::EventId) override { return 0; }
  void forget_events() override {}
  void label(std::string_view) override {}
  [[nodiscard]] const std::optional<Error>& error() const override { return none_; }

 private:
  std::optional<Error> none_;
};

TruthLine judged(const TruthCase& of) {
  run::host::HostEngine engine;
  return judge_truth(of, engine).value();
}

// Numbers behind the fixed cases draw all sorts.
constexpr std::uint64_t kDrawn = 10'000;

TEST(Truth, CasesOfAllSortsAgree) {
  Tally tally;
  std::set<std::string> faults;
  for (std::uint64_t number = kDrawn; number < kDrawn + 200; ++number) {
    const TruthLine line = judged(truth_case(1, number));
    EXPECT_NE(line.came, Came::Disagrees) << to_text(line);
    EXPECT_EQ(line.number, number);
    EXPECT_EQ(line.verdict == "accepted", line.came == Came::Right) << to_text(line);
    tally.add(line);
  }
  EXPECT_GE(tally.accepted_right, 100U);
  EXPECT_EQ(tally.accepted_wrong, 0U);
  EXPECT_GT(tally.rejected_wrong, 60U);
  EXPECT_GT(tally.by_fault.size(), 6U);
}

// Early, missing and repeated reductions (G13 to G15) show where replicas have data of their own.
TEST(Truth, WrongReductionsOfReplicasAreSeen) {
  std::set<std::string> seen;
  for (std::uint64_t number = kDrawn + 1; seen.size() < 3 && number < kDrawn + 4'000; number += 2) {
    const TruthCase of = truth_case(1, number);
    if (!of.fault.starts_with("reduce-") || seen.contains(of.fault)) continue;
    const TruthLine line = judged(of);
    EXPECT_EQ(line.came, Came::Seen) << to_text(line);
    EXPECT_EQ(line.replicas, of.replicas);
    seen.insert(of.fault);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"reduce-early", "reduce-missing", "reduce-twice"}));
}

TEST(Truth, WhatTheVerifierCannotBeBlamedForStillDisagrees) {
  TruthCase of = truth_case(1, kDrawn);
  for (Module& module : of.declared.modules.list) {
    module.kind = ModuleKind::MoeLayer;
    module.shape.groups = 1;
    module.shape.top_k = 2;
  }
  const TruthLine line = judged(of);
  EXPECT_EQ(line.came, Came::Disagrees);
  EXPECT_FALSE(line.ran);
  EXPECT_FALSE(line.reason.empty());
}

// The replay overwrites what the first forward keeps. A run shows whom it hurts, unless what is
// kept are choices, which are addresses.
TEST(Truth, AnOrderThatSpoilsChoicesIsNotRun) {
  constexpr const char* kSpoilt =
      "capo 1\nrank 0: F1.0 B1.0 F1.1 B1.1\nrank 0 replay: F1.0 F1.1 B1.0 B1.1\n";
  const auto line_of = [&](ModuleKind kind) {
    Dice dice(rc::Random(1));
    TruthCase of{.words = kSpoilt};
    of.input = load(Source{.name = "case.order", .text = kSpoilt}, {}).value();
    Module module = draw_truth_module(dice, kind);
    module.recipe.reset();
    of.declared.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
    of.declared.plan.kind = PlanKind::Te;
    return judged(of);
  };
  const TruthLine routed = line_of(ModuleKind::MoeLayer);
  EXPECT_EQ(routed.came, Came::NotRun) << routed.reason;
  EXPECT_TRUE(routed.reason.starts_with("the choices of a router may be overwritten"));
  const TruthLine plain = line_of(ModuleKind::LayerNormLinear);
  EXPECT_EQ(plain.came, Came::Seen) << plain.reason;
}

TEST(Truth, AFalseAlarmIsADisagreement) {
  TruthCase of = truth_case(1, 1);  // the pull request's order with the wrong last backward
  of.made = Made::Sound;
  EXPECT_EQ(judged(of).reason, "rejected, though it was made to be sound");
}

TEST(Truth, AFaultThatAnotherRuleReportsIsADisagreement) {
  TruthCase of = truth_case(1, 3);
  of.rule = "Y01";
  EXPECT_EQ(judged(of).reason, "rejected, but not by Y01");
}

TEST(Truth, AFaultThatIsNotThereIsADisagreement) {
  TruthCase of = truth_case(1, kDrawn);
  of.made = Made::Faulty;
  EXPECT_EQ(judged(of).reason, "accepted, though it was put at fault");
}

TEST(Truth, AnOrderWithNothingToRunIsCountedApart) {
  const TruthLine line = judged(truth_case(1, 1));
  EXPECT_EQ(line.came, Came::NotRun) << to_text(line);
  EXPECT_EQ(line.order, "te2376/broken");
}

// The second layer of a chunk, whose input needs no gradient.
TEST(Truth, AChunkThatHandsNoGradientBackIsCountedApart) {
  Module front{.name = "front",
               .kind = ModuleKind::Linear,
               .flags = {.delay_wgrad = true, .fuse_wgrad_accumulation = true}};
  Module behind = front;
  behind.name = "behind";
  behind.flags.input_requires_grad = false;
  TruthCase of{.words = "[1, -1, -1.5]", .made = Made::Faulty, .rule = "C06"};
  TeDeclarations two_layers;
  two_layers.layers = {.form = Layers::Form::List, .values = {2}};
  of.input = load(Source{.name = "case.te", .text = of.words},
                  {.form = TextForm::TeList, .te = two_layers})
                 .value();
  of.declared.modules = {.list = {front, behind}, .layers = {{{0, 1}}}};
  of.declared.plan.kind = PlanKind::Te;
  const TruthLine line = judged(of);
  EXPECT_EQ(line.came, Came::NotRun) << to_text(line);
  EXPECT_NE(line.reason.find("computes no gradient of its input"), std::string::npos);
}

TEST(Truth, OfTwoEnginesOfOneSortVictimsAreTheSame) {
  run::host::HostEngine one;
  run::host::HostEngine other;
  const TruthLine line = judge_truth(truth_case(1, 3), one, other).value();
  EXPECT_EQ(line.came, Came::Seen) << to_text(line);
  ASSERT_TRUE(line.host_victims);
  EXPECT_EQ(*line.host_victims, line.victims);
}

// The verdict may be right or wrong: without memory nothing of it was seen.
TEST(Truth, AnEngineThatGivesUpIsNoDisagreement) {
  run::host::HostEngine small(1);
  run::host::HostEngine large;
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{3}}) {
    const TruthCase of = truth_case(1, number);
    const auto judged = judge_truth(of, small);
    ASSERT_FALSE(judged) << to_text(*judged);
    EXPECT_EQ(judged.error().kind, ErrorKind::Environment);
    EXPECT_NE(judged.error().message.find("host engine"), std::string::npos);
    EXPECT_FALSE(judge_truth(of, small, large));
    EXPECT_FALSE(judge_truth(of, large, small));
  }
}

TEST(Truth, WhereAnInvariantOfCaposBreaksTheOrderIsNamed) {
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{3}}) {
    BrokenEngine engine;
    const TruthCase of = truth_case(1, number);
    const auto line = judge_truth(of, engine);
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(line->number, number);
    EXPECT_EQ(line->order, of.words);
    EXPECT_EQ(line->verdict, "no-verdict");
    EXPECT_EQ(line->came, Came::Disagrees);
    EXPECT_EQ(line->reason, "capo's own invariant does not hold");
    EXPECT_EQ(line->engine, "broken");
    EXPECT_FALSE(line->ran);
    EXPECT_EQ(read_truth_line(to_text(*line)), *line);
  }
}

TEST(Truth, WhereAnInvariantBreaksOnOneOfTwoEnginesItIsNamedToo) {
  run::host::HostEngine sound;
  BrokenEngine broken;
  const TruthCase of = truth_case(1, 0);
  EXPECT_EQ(judge_truth(of, broken, sound)->reason, "capo's own invariant does not hold");
  EXPECT_EQ(judge_truth(of, sound, broken)->reason,
            "on broken it came otherwise: capo's own invariant does not hold");
}

TruthCase of_several_ranks(PlanKind plan) {
  Dice dice(rc::Random(1));
  TruthCase of = draw_undeclared_case(dice);
  of.declared.plan.kind = plan;
  of.declared.environment = {};
  of.input.schedule =
      schedules::schedule_named({.name = "1f1b", .ranks = 4, .microbatches = 8}).value();
  return of;
}

TEST(Truth, AnOrderThatIsAcceptedWithoutDeclarationsIsRunUnderTheValuesThatWereDrawn) {
  TruthCase of = of_several_ranks(PlanKind::Safe);
  for (const Communicators layout :
       {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      of.layout = layout;
      of.mode = mode;
      const TruthLine line = judged(of);
      EXPECT_EQ(line.came, Came::Right) << to_text(line);
      EXPECT_EQ(line.across, fmt::format("{}, {}", capo::name_of(layout), capo::name_of(mode)));
    }
  }
}

// One communicator for each rank holds its sends back until they do no harm.
TEST(Truth, AnOrderThatIsRejectedWithoutDeclarationsIsShownUnderSomeValue) {
  TruthCase of = of_several_ranks(PlanKind::Te);
  of.layout = Communicators::PerRank;
  const TruthLine line = judged(of);
  EXPECT_EQ(line.verdict, "rejected");
  EXPECT_EQ(line.came, Came::Seen) << to_text(line);
  EXPECT_EQ(line.across, "per-pair, rendezvous");

  of.declared.environment.communicators = Communicators::PerRank;
  const TruthLine declared = judged(of);
  EXPECT_EQ(declared.verdict, "accepted");
  EXPECT_EQ(declared.came, Came::Right) << to_text(declared);
}

TEST(Truth, WhatIsExplainedIsOfRulesThatNoRunShows) {
  EXPECT_TRUE(why_not_shown("B01").empty());
  EXPECT_TRUE(why_not_shown("E01").empty());
  EXPECT_FALSE(why_not_shown("B07").empty());
  EXPECT_TRUE(why_not_shown("").empty());
}

}  // namespace
}  // namespace capo::testing
