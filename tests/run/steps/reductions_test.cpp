// Gradients that ranks reduce: each sum is taken where the order says, in the order of the ranks,
// and eager execution takes it when all gradients are made.
//
// The tests work out what a reduction should leave, from what each rank makes by itself, in fp32
// and in the stated order. An early, a repeated and a missing reduction (G13, G15, G14) have to
// show, and to leave what these sums foretell.

#include "run/setup/reductions.h"
#include "run/setup/replicas.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

using Floats = std::vector<float>;
using Names = std::set<std::string>;

CheckOptions in_a_group(Module module, std::vector<std::int32_t> members) {
  CheckOptions options = every_layer(std::move(module));
  options.groups = {
      {.name = "dp", .members = std::move(members), .actions = {Kind::ReduceGradient}}};
  return options;
}

// An order that every rank has.
std::string on_ranks(int ranks, int microbatches, const std::string& actions) {
  std::string text = "capo 1\nranks " + std::to_string(ranks) + "\nmicrobatches " +
                     std::to_string(microbatches) + "\n";
  for (int rank = 0; rank < ranks; ++rank) {
    text += "rank " + std::to_string(rank) + ": " + actions + "\n";
  }
  return text;
}

// A replay left these: each parameter's gradient and, unchecked, that of each microbatch.
struct Left {
  RunReport report;
  std::map<std::string, Floats> gradients;
  std::map<std::string, std::vector<Floats>> own;
};

void read(const Inspection& at, Left& left) {
  for (std::uint32_t p = 0; p < at.layers.parameters().size(); ++p) {
    const ParameterForm& form = at.layers.parameters()[p];
    const GradientMemory& memory = at.outputs.gradients(p);
    left.gradients[form.name] = values_of(at.engine, form.fused ? memory.main_grad : memory.grad);
    auto& own = left.own[form.name] = {};
    for (const GroupedTensor& tensor : memory.own) own.push_back(values_of(at.engine, tensor));
  }
}

template <typename AnyPlan>
Left left_by(const AnyPlan& plan, RunOptions options = {}) {
  Left left;
  options.replays = 1;
  options.inspect = [&](const Inspection& at) { read(at, left); };
  left.report = report_of(plan, options);
  return left;
}

Floats sum(Floats a, const Floats& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b.at(i);
  return a;
}

std::string weight(int chunk, int rank) {
  return "layer 0 of chunk " + std::to_string(chunk) + " of rank " + std::to_string(rank) +
         ": weight";
}

Names differing(const RunReport& report) {
  Names names;
  for (const TensorReport& tensor : report.parameters) {
    if (tensor.difference) names.insert(tensor.name);
  }
  return names;
}

TEST(Reductions, AddRankByRankAndLeaveTheSumOnAll) {
  const CheckOptions declared = in_a_group(small(ModuleKind::Linear), {0, 1, 2});
  const Left apart = left_by(verified(typed(on_ranks(3, 2, "F1.0 F1.1 B1.0 B1.1")), declared));
  const auto of = [&](int rank) { return apart.gradients.at(weight(1, rank)); };
  const Floats should = sum(sum(of(0), of(1)), of(2));
  EXPECT_NE(of(0), of(1)) << "replicas have data of their own";
  EXPECT_NE(should, sum(sum(of(2), of(1)), of(0))) << "another order adds up to something else";
  for (const Granularity graphs : kGranularities) {
    const Left together =
        left_by(verified(typed(on_ranks(3, 2, "F1.0 F1.1 B1.0 B1.1 reduce1")), declared),
                {.graphs = graphs});
    EXPECT_TRUE(together.report.bit_equal);
    EXPECT_TRUE(together.report.within_bounds) << together.report.worst_relative_error;
    EXPECT_GT(together.report.worst_relative_error, 0);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(together.gradients.at(weight(1, rank)), should) << rank;
    }
    EXPECT_EQ(together.report.program.reductions,
              (std::vector<Reduction>{{.chunk = 1, .ranks = {0, 1, 2}}}));
  }
}

// A model file may name the members in any order.
TEST(Reductions, AddRankByRankHoweverMembersAreDeclared) {
  const auto left = [](const std::string& members) {
    CheckOptions declared = every_layer(small(ModuleKind::Linear));
    declared.groups = groups_of_file(members);
    return left_by(verified(typed(on_ranks(3, 2, "F1.0 F1.1 B1.0 B1.1 reduce1")), declared));
  };
  const Left ascending = left("[0, 1, 2]");
  const Left otherwise = left("[2, 0, 1]");
  EXPECT_TRUE(otherwise.report.bit_equal);
  EXPECT_TRUE(otherwise.report.within_bounds) << otherwise.report.worst_relative_error;
  EXPECT_EQ(otherwise.gradients, ascending.gradients);
  EXPECT_EQ(otherwise.report.program.reductions, ascending.report.program.reductions);
}

// Norms and biases are not fused, so that .grad is reduced beside main_grad.
TEST(Reductions, AreRightForEveryKindWholeAndDelayed) {
  for (const ModuleKind kind : kRunKinds) {
    for (const bool fused : {true, false}) {
      for (const char* actions :
           {"F1.0 F1.1 B1.0 B1.1 reduce1 wait-reduce1", "F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1"}) {
        SCOPED_TRACE(std::string(name_of(kind)) + ", " + actions);
        Module module = small(kind);
        module.flags.fuse_wgrad_accumulation = module.flags.grad_added_to_main_grad = fused;
        const VerifiedPlan plan =
            verified(typed(on_ranks(2, 2, actions)), in_a_group(module, {0, 1}));
        for (const Granularity graphs : kGranularities) {
          const Left left = left_by(plan, {.graphs = graphs});
          EXPECT_TRUE(left.report.bit_equal);
          EXPECT_TRUE(left.report.within_bounds) << left.report.worst_relative_error;
          for (const auto& [name, values] : left.gradients) {
            std::string other = name;
            const std::size_t at = other.find("rank 1");
            if (at == std::string::npos) continue;
            EXPECT_EQ(values, left.gradients.at(other.replace(at, 6, "rank 0"))) << name;
          }
        }
      }
    }
  }
}

// The last weight gradient of each rank is added to the sum of the others, on that rank only.
TEST(Reductions, BeforeTheLastGradientLeaveItOutOfTheSum) {
  const Input input = typed(on_ranks(2, 2, "F1.0 F1.1 B1.0 W1.0 B1.1 reduce1 W1.1"));
  const CheckOptions declared = in_a_group(small(ModuleKind::Linear), {0, 1});
  EXPECT_EQ(rules_broken(input, declared), (std::vector<std::string_view>{"G13"}));
  const UncheckedPlan plan = admitted(input, declared);
  for (const Granularity graphs : kGranularities) {
    const Left left = left_by(plan, {.graphs = graphs});
    EXPECT_FALSE(left.report.bit_equal);
    EXPECT_TRUE(left.report.within_bounds) << "eager execution reduces behind the last gradient";
    EXPECT_EQ(differing(left.report), (Names{weight(1, 0), weight(1, 1)}));
    const auto own = [&](int rank, std::size_t m) { return left.own.at(weight(1, rank)).at(m); };
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(left.gradients.at(weight(1, rank)), sum(sum(own(0, 0), own(1, 0)), own(rank, 1)));
    }
    EXPECT_NE(left.gradients.at(weight(1, 0)), left.gradients.at(weight(1, 1)));
    EXPECT_TRUE(left.report.wrong_gradients.empty()) << "each microbatch's own is right";
  }
}

// A gradient that comes too late waits for the reduction, on whatever engine.
TEST(Reductions, AreOverBeforeAGradientThatIsListedBehindThem) {
  const UncheckedPlan plan =
      admitted(typed(on_ranks(2, 2, "F1.0 F1.1 B1.0 W1.0 B1.1 reduce1 W1.1")),
               in_a_group(small(ModuleKind::Linear), {0, 1}));
  const Program program = program_forcing(plan.step().view().table(), plan.step().replayed(), {});
  const auto op_of = [&](auto is) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
      for (std::uint32_t at = program.ops[op].first_part; at < program.ops[op].end_part; ++at) {
        if (is(program.parts[at])) found.push_back(op);
      }
    }
    return found;
  };
  const auto reductions =
      op_of([](const OpPart& part) { return part.kind == OpPart::Kind::Reduce; });
  const auto weights = [&](std::int32_t microbatch) {
    return op_of([&](const OpPart& part) {
      return part.kind == OpPart::Kind::Work && part.work.kind == Kind::BackwardWeight &&
             part.work.microbatch == microbatch;
    });
  };
  ASSERT_EQ(reductions.size(), 1U);
  const Clocks clocks(program);
  ASSERT_EQ(weights(0).size(), 2U);
  ASSERT_EQ(weights(1).size(), 2U);
  for (const std::uint32_t early : weights(0)) EXPECT_TRUE(clocks.before(early, reductions[0]));
  for (const std::uint32_t late : weights(1)) EXPECT_TRUE(clocks.before(reductions[0], late));
}

TEST(Reductions, OfOneChunkTwiceSumTheSums) {
  const Input input = typed(on_ranks(2, 1, "F1.0 B1.0 reduce1 reduce1"));
  const CheckOptions declared = in_a_group(small(ModuleKind::Linear), {0, 1});
  EXPECT_EQ(rules_broken(input, declared), (std::vector<std::string_view>{"G15"}));
  const Left left = left_by(admitted(input, declared));
  EXPECT_EQ(differing(left.report), (Names{weight(1, 0), weight(1, 1)}));
  const Floats once = sum(left.own.at(weight(1, 0)).at(0), left.own.at(weight(1, 1)).at(0));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(left.gradients.at(weight(1, rank)), sum(once, once));
  }
}

// The members of a composite reduce each a chunk of its own.
TEST(Reductions, OfACompositeAreThoseOfEachMember) {
  for (const Granularity graphs : kGranularities) {
    const RunReport report = run_verified(
        typed(on_ranks(2, 1, "F1.0 F2.0 B2.0 B1.0 (reduce1 reduce2)")),
        in_a_group(small(ModuleKind::Linear), {0, 1}), {.graphs = graphs, .replays = 2});
    EXPECT_TRUE(report.bit_equal);
    EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
    std::set<std::int32_t> chunks;
    for (const Reduction& reduction : report.program.reductions) chunks.insert(reduction.chunk);
    EXPECT_EQ(chunks, (std::set<std::int32_t>{1, 2}));
  }
}

TEST(Reductions, ThatAChunkLacksLeaveItsGradientsToEachRank) {
  const Input input = typed(on_ranks(2, 1, "F1.0 F2.0 B2.0 B1.0 reduce1"));
  const CheckOptions declared = in_a_group(small(ModuleKind::Linear), {0, 1});
  EXPECT_EQ(rules_broken(input, declared), (std::vector<std::string_view>{"G14"}));
  const Left left = left_by(admitted(input, declared));
  EXPECT_EQ(differing(left.report), (Names{weight(2, 0), weight(2, 1)}));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(left.gradients.at(weight(2, rank)), left.own.at(weight(2, rank)).at(0));
  }
}

// A rank that no group has reduces over itself.
TEST(Reductions, WithoutReplicasChangeNothing) {
  const Left with = left_by(
      verified(typed(on_ranks(2, 1, "F1.0 B1.0 reduce1")), every_layer(small(ModuleKind::Linear))));
  const Left without =
      left_by(verified(typed(on_ranks(2, 1, "F1.0 B1.0")), every_layer(small(ModuleKind::Linear))));
  EXPECT_EQ(with.gradients, without.gradients);
  EXPECT_TRUE(with.report.program.reductions.empty());
}

TEST(Reductions, AreShownOnAStreamOfTheirOwn) {
  const Input input = typed(on_ranks(2, 1, "F1.0 B1.0 reduce1"));
  const VerifiedPlan plan = verified(input, in_a_group(small(ModuleKind::Linear), {0, 1}));
  const RunReport report = report_of(plan, {.replays = 1});
  const Timeline timeline = timeline_of(report, input.schedule);
  std::size_t reductions = 0;
  for (const auto& task : timeline.tasks) {
    if (task.kind != Kind::ReduceGradient) continue;
    ++reductions;
    EXPECT_EQ(timeline.label(task.id), "reduce1");
    EXPECT_EQ(timeline.lanes[task.lane].name, "dp");
  }
  EXPECT_EQ(reductions, 1U);
  EXPECT_NE(text_report(report, plan.step(), {}).find("\n  reduced: chunk 1 over ranks 0, 1\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(json_report(report, plan.step()));
  EXPECT_EQ(json.at("reductions"), nlohmann::json::parse(R"([{"chunk": 1, "ranks": [0, 1]}])"));
}

Module hooked(ModuleKind kind) {
  Module module = small(kind);
  module.flags.delay_wgrad = true;
  module.flags.wgrad_hooks = true;
  return module;
}

TEST(HookedReductions, BeginBehindTheLastWeightGradientOfTheChunk) {
  Input input = typed(on_ranks(2, 2, "F1.0 F1.1 B1.0 W1.0 B1.1 W1.1"));
  const CheckOptions declared = in_a_group(hooked(ModuleKind::Linear), {0, 1});
  list_hooked_reductions(input.schedule, declared);
  const Left left = left_by(verified(input, declared));
  EXPECT_TRUE(left.report.bit_equal);
  EXPECT_EQ(left.report.program.reductions.size(), 1U);
  EXPECT_EQ(left.gradients.at(weight(1, 0)), left.gradients.at(weight(1, 1)));
  const Left listed =
      left_by(verified(typed(on_ranks(2, 2, "F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1")), declared));
  EXPECT_EQ(left.gradients, listed.gradients);
}

// Chunk 2 ends first, in a composite, and chunk 1 is not reduced on hooks.
TEST(HookedReductions, StandBehindACompositeAndLeaveOtherChunksAlone) {
  Schedule schedule = typed(on_ranks(2, 1, "F1.0 F2.0 (W2.0 B1.0) W1.0")).schedule;
  CheckOptions declared = in_a_group(hooked(ModuleKind::Linear), {0, 1});
  declared.modules.list.push_back(small(ModuleKind::Linear));
  declared.modules.list.back().name = "without hooks";
  declared.modules.layers = {{{1}, {0}}};
  list_hooked_reductions(schedule, declared);
  for (const RankOrder& rank : schedule.ranks) {
    ASSERT_EQ(rank.order.size(), 6U);
    EXPECT_EQ(rank.order[4].kind, Kind::ReduceGradient);
    EXPECT_EQ(rank.order[4].chunk, ChunkId(2));
    EXPECT_EQ(rank.order[4].group, Group::Alone);
  }
}

// The text does not have them, so that indices are those of the text.
TEST(HookedReductions, AreCalledByTheirNameAndCountedByNobody) {
  const auto finding = [](const std::string& rank_0, const std::string& rank_1) {
    Input input =
        typed("capo 1\nranks 2\nmicrobatches 1\nrank 0: " + rank_0 + "\nrank 1: " + rank_1 + "\n");
    const CheckOptions declared = in_a_group(hooked(ModuleKind::Linear), {0, 1});
    list_hooked_reductions(input.schedule, declared);
    const CheckResult result = check(input, completed(input, declared));
    const auto& kept = result.diagnostics.kept();
    return kept.empty() ? "" : std::string(kept.front().rule) + ": " + kept.front().message;
  };
  const std::string sound = "F1.0 F2.0 B1.0 W1.0 B2.0 W2.0";
  EXPECT_EQ(finding("F1.0 F2.0 B1.0 W1.0 W2.0 B2.0", sound),
            "D02: `W2.0` at index 4 of rank 0 runs before `B2.0`, which queues its operands");
  EXPECT_EQ(finding(sound, "F1.0 F2.0 B2.0 W2.0 B1.0 W1.0"),
            "T10: `reduce2` behind `W2.0` at index 3 of rank 1 meets `reduce1` of rank 0: the "
            "members of group dp do not perform the same collectives in the same order");
}

TEST(HookedReductions, AreNotListedTwiceNorWithoutReplicasOrDelay) {
  const std::string listed = on_ranks(2, 1, "F1.0 B1.0 W1.0 reduce1");
  const std::string plain = on_ranks(2, 1, "F1.0 B1.0 W1.0");
  const auto entries = [](const std::string& text, const CheckOptions& declared) {
    Schedule schedule = typed(text).schedule;
    list_hooked_reductions(schedule, declared);
    return schedule.ranks[0].order.size();
  };
  EXPECT_EQ(entries(listed, in_a_group(hooked(ModuleKind::Linear), {0, 1})), 4U);
  EXPECT_EQ(entries(plain, in_a_group(hooked(ModuleKind::Linear), {0, 1})), 4U);
  EXPECT_EQ(entries(plain, in_a_group(hooked(ModuleKind::Linear), {0})), 3U);
  EXPECT_EQ(entries(plain, every_layer(hooked(ModuleKind::Linear))), 3U);
  Module whole = hooked(ModuleKind::Linear);
  whole.flags.delay_wgrad = false;
  EXPECT_EQ(entries(plain, in_a_group(whole, {0, 1})), 3U);
}

TEST(HookedReductions, AreInTheOrdersOfCaptureAndOfReplay) {
  Schedule schedule = typed(
                          "capo 1\nranks 2\nmicrobatches 1\n"
                          "rank 0: F1.0 B1.0 W1.0\n"
                          "rank 1: F1.0 B1.0 W1.0\n")
                          .schedule;
  RankOrder& rank = schedule.ranks[0];
  rank.replay = rank.order;
  rank.resets = {{.behind = 2}, {.behind = 3}};
  list_hooked_reductions(schedule, in_a_group(hooked(ModuleKind::Linear), {0, 1}));
  EXPECT_EQ(rank.order.back().kind, Kind::ReduceGradient);
  EXPECT_EQ(rank.replay->back().kind, Kind::ReduceGradient);
  EXPECT_EQ(rank.resets[0].behind, 2U);
  EXPECT_EQ(rank.resets[1].behind, 3U);
}

// TransformerEngine runs no hooks of operations (G08): nobody reduces, and eager execution does.
TEST(HookedReductions, OfAnOperationNeverBeginUnderTransformerEngine) {
  Input input = typed(on_ranks(2, 1, "F1.0 B1.0 W1.0"));
  CheckOptions declared = in_a_group(hooked(ModuleKind::GroupedLinearOp), {0, 1});
  declared.plan.kind = PlanKind::Te;
  declared.plan.aliases = Aliases{};
  list_hooked_reductions(input.schedule, declared);
  EXPECT_EQ(input.schedule.ranks[0].order.size(), 3U);
  const auto broken = rules_broken(input, declared);
  EXPECT_NE(std::find(broken.begin(), broken.end(), "G08"), broken.end());
  const Left left = left_by(admitted(input, declared));
  EXPECT_EQ(differing(left.report), (Names{weight(1, 0), weight(1, 1)}));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(left.gradients.at(weight(1, rank)), left.own.at(weight(1, rank)).at(0));
  }
}

// Copies of a pipeline.
constexpr const char* kPipeline =
    "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 B1.1 reduce1\n"
    "rank 1: F1.0 B1.0 F1.1 B1.1 reduce1\n";

VerifiedPlan replicated(const std::string& text, const CheckOptions& declared, std::int32_t count) {
  auto replicas = replicas_of(typed(text), declared, count);
  if (!replicas) throw std::invalid_argument(replicas.error());
  return verified(std::move(replicas->input), replicas->options);
}

TEST(Reductions, OfReplicasOfAPipelineMeetStageByStage) {
  const VerifiedPlan plan = replicated(kPipeline, every_layer(small(ModuleKind::LayerNormMlp)), 3);
  for (const Granularity graphs : kGranularities) {
    const Left left = left_by(plan, {.graphs = graphs});
    EXPECT_TRUE(left.report.bit_equal);
    EXPECT_TRUE(left.report.within_bounds) << left.report.worst_relative_error;
    std::set<std::vector<std::int32_t>> members;
    for (const Reduction& reduction : left.report.program.reductions) {
      members.insert(reduction.ranks);
    }
    EXPECT_EQ(members, (std::set<std::vector<std::int32_t>>{{0, 2, 4}, {1, 3, 5}}));
    for (const Transfer& transfer : left.report.program.transfers) {
      EXPECT_EQ(transfer.channel.sender / 2, transfer.channel.receiver / 2) << "within a replica";
    }
    const auto of = [&](int rank) {
      return left.gradients.at("layer 0 of chunk 1 of rank " + std::to_string(rank) +
                               ": fc1 weight");
    };
    EXPECT_EQ(of(0), of(2));
    EXPECT_EQ(of(0), of(4));
    EXPECT_EQ(of(1), of(5));
    EXPECT_NE(of(0), of(1));
  }
}

// Each rank has a stage of either pipeline, and reduces both with its copies.
TEST(Reductions, OfReplicasOfTwoPipelinesMeetStageByStage) {
  constexpr const char* kTwoWays =
      "capo 1\nranks 2\nmicrobatches 2\nchunks 2\nplacement bidirectional\n"
      "rank 0: F1.0 F1.1 F2.0 B2.0 F2.1 B2.1 B1.0 B1.1 reduce1 reduce2\n"
      "rank 1: F2.0 F2.1 F1.0 B1.0 F1.1 B1.1 B2.0 B2.1 reduce1 reduce2\n";
  const VerifiedPlan plan = replicated(kTwoWays, every_layer(small(ModuleKind::Linear)), 2);
  for (const Granularity graphs : kGranularities) {
    const Left left = left_by(plan, {.graphs = graphs});
    EXPECT_TRUE(left.report.bit_equal);
    EXPECT_TRUE(left.report.within_bounds) << left.report.worst_relative_error;
    EXPECT_EQ(left.report.program.reductions.size(), 4U);
    for (const int chunk : {1, 2}) {
      const auto of = [&](int rank) { return left.gradients.at(weight(chunk, rank)); };
      EXPECT_EQ(of(0), of(2));
      EXPECT_EQ(of(1), of(3));
      EXPECT_NE(of(0), of(1));
    }
    for (const Transfer& transfer : left.report.program.transfers) {
      EXPECT_EQ(transfer.channel.sender / 2, transfer.channel.receiver / 2) << "within a replica";
    }
  }
}

std::string refusal_of(const std::string& text, const CheckOptions& declared,
                       const RunOptions& options = {}) {
  const auto report = attempt(verified(typed(text), declared), options);
  return report ? "" : report.error().message;
}

TEST(Reductions, AreRefusedOverRanksThatAreNoReplicas) {
  EXPECT_EQ(refusal_of(kPipeline, in_a_group(small(ModuleKind::Linear), {0, 1})),
            "chunk 1 of ranks 0, 1 is reduced over them, and ranks 0 and 1 hold different stages: "
            "what a run sums are gradients of replicas (--replicas)");
  CheckOptions unlike = in_a_group(small(ModuleKind::Linear), {0, 1});
  unlike.modules.list.push_back(small(ModuleKind::LayerNormLinear));
  unlike.modules.layers = {{{0}}, {{1}}};
  EXPECT_EQ(refusal_of(on_ranks(2, 1, "F1.0 B1.0 reduce1"), unlike),
            "chunk 1 of ranks 0, 1 is reduced over them, and parameters of ranks 0 and 1 are not "
            "alike");
}

TEST(Reductions, AreComparedWithFloat64AsAWhole) {
  const CheckOptions declared = in_a_group(small(ModuleKind::Linear), {0, 1});
  const std::string order = on_ranks(2, 1, "F1.0 B1.0 reduce1");
  EXPECT_EQ(refusal_of(order, declared, {.float64 = Float64::Sampled}),
            "gradients that ranks reduce are compared with float64 as a whole or not at all: leave "
            "it out (--float64 none) or compare all of a step (--float64 first)");
  EXPECT_EQ(refusal_of(order, declared, {.float64 = Float64::FirstReplay}), "");
  EXPECT_EQ(refusal_of(on_ranks(2, 1, "F1.0 B1.0"), declared, {.float64 = Float64::Sampled}), "");
}

}  // namespace
}  // namespace capo::run
