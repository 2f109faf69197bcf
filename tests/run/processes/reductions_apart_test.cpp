// Reductions and exchanges whose members are in several processes: what each process leaves of its
// own ranks is what one process leaves of them, to the bit, and what does not come is named.

#include "run/host/host_engine.h"
#include "run/processes/own_rank.h"
#include "run/setup/replicas.h"
#include "tests/run/processes/thread_library.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

using namespace std::chrono_literals;

using Gradients = std::map<std::string, std::vector<float>>;  // by parameter

// An order that every rank has, whose ranks reduce together.
std::string of_ranks(int ranks, const std::string& actions) {
  std::string text = "capo 1\nranks " + std::to_string(ranks) + "\nmicrobatches 2\n";
  for (int rank = 0; rank < ranks; ++rank) {
    text += "rank " + std::to_string(rank) + ": " + actions + "\n";
  }
  return text;
}

CheckOptions reduced_over(Module module, std::vector<std::int32_t> members) {
  CheckOptions options = every_layer(std::move(module));
  options.groups = {
      {.name = "dp", .members = std::move(members), .actions = {Kind::ReduceGradient}}};
  return options;
}

// The gradients of the parameters of some ranks.
void read(const Inspection& at, const RankRange& ranks, Gradients& all) {
  for (std::uint32_t p = 0; p < at.layers.parameters().size(); ++p) {
    const ParameterForm& form = at.layers.parameters()[p];
    const GradientMemory& memory = at.outputs.gradients(p);
    for (std::int32_t rank = ranks.first; rank < ranks.end; ++rank) {
      if (form.name.find(" of rank " + std::to_string(rank) + ":") == std::string::npos) continue;
      all[form.name] = values_of(at.engine, form.fused ? memory.main_grad : memory.grad);
    }
  }
}

// A run's options, over processes or in one.
struct Setting {
  int processes = 1;
  std::int32_t ranks_per_process = 1;
  MessageLibrary::Mode sends = MessageLibrary::Mode::Rendezvous;
};

constexpr std::uint32_t kReplays = 2;

// This is left by all processes together, with the report of the first.
struct Left {
  Gradients gradients;
  std::optional<Result<RunReport, RunFailure>> report;
};

template <typename MakePlan, typename RunPlan>
Left left_over(Post& post, Processes::Duration timeout, const MakePlan& make, const RunPlan& run_it,
               const Setting& setting, std::int32_t ranks) {
  Left left;
  std::mutex mutex;
  in_each(post, timeout, [&](Processes& processes) {
    host::HostEngine engine;
    const Division division{.ranks = ranks, .per_process = setting.ranks_per_process};
    RunOptions options{.replays = kReplays};
    options.processes = &processes;
    options.ranks_per_process = setting.ranks_per_process;
    options.sends = setting.sends;
    options.inspect = [&](const Inspection& at) {
      const std::scoped_lock lock(mutex);
      read(at, division.of(processes.rank()), left.gradients);
    };
    auto report = run_it(engine, make(), options);
    const std::scoped_lock lock(mutex);
    if (processes.rank() == 0) left.report = std::move(report);
  });
  return left;
}

template <typename MakePlan, typename RunPlan>
Left left_in_one(const MakePlan& make, const RunPlan& run_it, std::int32_t ranks) {
  Left left;
  host::HostEngine engine;
  RunOptions options{.replays = kReplays};
  options.inspect = [&](const Inspection& at) { read(at, {0, ranks}, left.gradients); };
  left.report = run_it(engine, make(), options);
  return left;
}

const auto kChecked = [](Engine& engine, const VerifiedPlan& plan, const RunOptions& options) {
  return run(engine, plan, options);
};
const auto kUnchecked = [](Engine& engine, const UncheckedPlan& plan, const RunOptions& options) {
  return run_unchecked(engine, plan, options);
};

const std::vector<Setting> kSettingsOfFour{
    {.processes = 4},
    {.processes = 4, .sends = MessageLibrary::Mode::Buffered},
    {.processes = 2, .ranks_per_process = 2},
    {.processes = 2, .ranks_per_process = 3},
};

// Four ranks leave the same, however they are divided.
template <typename MakePlan, typename RunPlan>
void expect_as_in_one(const MakePlan& make, const RunPlan& run_it, bool equal_to_eager) {
  const Left one = left_in_one(make, run_it, 4);
  ASSERT_TRUE(*one.report) << one.report->error().message;
  EXPECT_EQ((*one.report)->bit_equal, equal_to_eager);
  ASSERT_FALSE(one.gradients.empty());
  for (const Setting& setting : kSettingsOfFour) {
    SCOPED_TRACE(testing::Message()
                 << setting.processes << " processes of " << setting.ranks_per_process);
    Post post(setting.processes);
    const Left apart = left_over(post, 60s, make, run_it, setting, 4);
    ASSERT_TRUE(*apart.report) << apart.report->error().message;
    EXPECT_EQ((*apart.report)->bit_equal, equal_to_eager);
    EXPECT_EQ(apart.gradients, one.gradients);
  }
}

// A norm's gradients are not fused, so that .grad is reduced beside main_grad.
TEST(ReductionsApart, LeaveWhatTheyLeaveInOneProcess) {
  for (const ModuleKind kind : {ModuleKind::LayerNormMlp, ModuleKind::GroupedMlp}) {
    for (const char* actions :
         {"F1.0 F1.1 B1.0 B1.1 reduce1", "F1.0 F1.1 B1.0 W1.0 B1.1 W1.1 reduce1"}) {
      SCOPED_TRACE(std::string(name_of(kind)) + ", " + actions);
      expect_as_in_one(
          [&] {
            return verified(typed(of_ranks(4, actions)), reduced_over(small(kind), {0, 1, 2, 3}));
          },
          kChecked, true);
    }
  }
}

TEST(ReductionsApart, MayHaveSomeOfTheRanks) {
  expect_as_in_one(
      [] {
        return verified(typed(of_ranks(4, "F1.0 F1.1 B1.0 B1.1 reduce1")),
                        reduced_over(small(ModuleKind::Linear), {1, 2}));
      },
      kChecked, true);
}

TEST(ReductionsApart, AddRankByRankHoweverMembersAreDeclared) {
  const auto declared = [](const std::string& members) {
    return [members] {
      CheckOptions options = every_layer(small(ModuleKind::Linear));
      options.groups = groups_of_file(members);
      return verified(typed(of_ranks(4, "F1.0 F1.1 B1.0 B1.1 reduce1")), options);
    };
  };
  expect_as_in_one(declared("[3, 1, 0, 2]"), kChecked, true);
  EXPECT_EQ(left_in_one(declared("[3, 1, 0, 2]"), kChecked, 4).gradients,
            left_in_one(declared("[0, 1, 2, 3]"), kChecked, 4).gradients);
}

// Transfers of a pipeline and reductions of its replicas go between the same processes.
TEST(ReductionsApart, StandBesideTheTransfersOfReplicas) {
  constexpr const char* kPipeline =
      "capo 1\nranks 2\nmicrobatches 2\nplacement chain\n"
      "rank 0: F1.0 F1.1 B1.0 B1.1 reduce1\nrank 1: F1.0 B1.0 F1.1 B1.1 reduce1\n";
  expect_as_in_one(
      [] {
        auto replicas =
            replicas_of(typed(kPipeline), every_layer(small(ModuleKind::LayerNormLinear)), 2);
        if (!replicas) throw std::invalid_argument(replicas.error());
        return verified(std::move(replicas->input), replicas->options);
      },
      kChecked, true);
}

// G13, G15 and G14: what is left out, summed twice or not at all is so over processes as well.
TEST(ReductionsApart, ThatAreWrongAreWrongAlike) {
  for (const char* actions :
       {"F1.0 F1.1 B1.0 W1.0 B1.1 reduce1 W1.1", "F1.0 F1.1 B1.0 B1.1 reduce1 reduce1",
        "F1.0 F1.1 F2.0 F2.1 B2.0 B1.0 B2.1 B1.1 reduce1"}) {
    SCOPED_TRACE(actions);
    expect_as_in_one(
        [&] {
          return admitted(typed(of_ranks(4, actions)),
                          reduced_over(small(ModuleKind::Linear), {0, 1, 2, 3}));
        },
        kUnchecked, false);
  }
}

CheckOptions exchanged_between(Module module, std::vector<std::int32_t> members) {
  CheckOptions options = every_layer(std::move(module));
  options.groups = {{.name = "ep",
                     .members = std::move(members),
                     .actions = {Kind::DispatchForward, Kind::CombineForward,
                                 Kind::DispatchBackward, Kind::CombineBackward}}};
  return options;
}

constexpr const char* kExchanged =
    "F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 "
    "combine-B1.0 dispatch-B1.0 B1.0 combine-B1.1 dispatch-B1.1 B1.1";

// Three ranks do not divide eight rows evenly.
TEST(ExchangesApart, LeaveWhatTheyLeaveInOneProcess) {
  for (const ModuleKind kind : {ModuleKind::Linear, ModuleKind::GroupedMlp}) {
    for (const auto& members : {std::vector{0, 1, 2, 3}, {1, 2, 3}, {0, 2}}) {
      expect_as_in_one(
          [&] {
            return verified(typed(of_ranks(4, kExchanged)),
                            exchanged_between(small(kind), members));
          },
          kChecked, true);
    }
  }
}

TEST(ExchangesApart, AroundExpertsLeaveWhatTheyLeaveInOneProcess) {
  constexpr const char* kActions =
      "dispatch-F1.0 F1.0 combine-F1.0 dispatch-F1.1 F1.1 combine-F1.1 "
      "combine-B1.0 I1.0 dispatch-B1.0 combine-B1.1 I1.1 W1.0 dispatch-B1.1 W1.1";
  for (const auto& members : {std::vector{0, 1, 2, 3}, {1, 2, 3}}) {
    expect_as_in_one(
        [&] {
          return verified(typed(of_ranks(4, kActions)),
                          exchanged_between(small(ModuleKind::GroupedMlp), members));
        },
        kChecked, true);
  }
}

// The copies of a pipeline exchange, reduce and send between the same processes.
TEST(ExchangesApart, StandBesideTransfersAndReductions) {
  constexpr const char* kPipeline =
      "capo 1\nranks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0 reduce1\n"
      "rank 1: F1.0 combine-B1.0 dispatch-B1.0 B1.0 reduce1\n";
  expect_as_in_one(
      [] {
        CheckOptions options = exchanged_between(small(ModuleKind::LayerNormMlp), {0});
        options.groups.push_back(options.groups.front());
        options.groups.back().members = {1};
        auto replicas = replicas_of(typed(kPipeline), options, 2);
        if (!replicas) throw std::invalid_argument(replicas.error());
        return verified(std::move(replicas->input), replicas->options);
      },
      kChecked, true);
}

TEST(ExchangesApart, NameRowsThatDoNotCome) {
  Post post(2);
  post.tamper = [](const Sent& sent) {
    // Communicator 0 is that of texts.
    return sent.communicator > 0 && sent.from == 0 ? Fate::Lost : Fate::Arrives;
  };
  const Left left = left_over(
      post, 100ms,
      [] {
        return verified(typed(of_ranks(2, kExchanged)),
                        exchanged_between(small(ModuleKind::Linear), {0, 1}));
      },
      kChecked, {.processes = 2}, 2);
  ASSERT_FALSE(*left.report);
  EXPECT_EQ(left.report->error().kind, RunFailure::Kind::Broken);
  const std::string& said = left.report->error().message;
  EXPECT_TRUE(
      said.starts_with("no message came for 0.1 s, and ranks are stuck:\n"
                       "  rank 0 waits for rank 1 to receive message 0 from rank 0 to rank 1, "
                       "which takes tokens of F of chunk 1, microbatch 0 of rank 0 to their "
                       "experts\n"))
      << said;
}

TEST(ReductionsApart, NameAGradientThatDoesNotCome) {
  Post post(2);
  post.tamper = [](const Sent& sent) {
    // Communicator 0 is that of texts.
    return sent.communicator > 0 && sent.from == 0 ? Fate::Lost : Fate::Arrives;
  };
  const Left left = left_over(
      post, 100ms,
      [] {
        return verified(typed(of_ranks(2, "F1.0 F1.1 B1.0 B1.1 reduce1")),
                        reduced_over(small(ModuleKind::Linear), {0, 1}));
      },
      kChecked, {.processes = 2}, 2);
  ASSERT_FALSE(*left.report);
  EXPECT_EQ(left.report->error().kind, RunFailure::Kind::Broken);
  const std::string& said = left.report->error().message;
  EXPECT_TRUE(
      said.starts_with("no message came for 0.1 s, and ranks are stuck:\n"
                       "  rank 0 waits for rank 1 to receive message 0 from rank 0 to rank "
                       "1, which reduce1 of rank 1 sums\n"
                       "  rank 1 waits for rank 0 to send message 0 from rank 0 to rank 1, "
                       "which reduce1 of rank 1 sums"))
      << said;
}

// A reduction is an op of each process that has members, behind all that its members add.
TEST(OwnRank, HasAnOpOfAReductionInEachProcess) {
  const VerifiedPlan plan = verified(typed(of_ranks(4, "F1.0 F1.1 B1.0 B1.1 reduce1")),
                                     reduced_over(small(ModuleKind::Linear), {0, 2, 3}));
  const Program whole = *program_of(plan.step().view().table(), plan.step().replayed());
  for (const std::int32_t per_process : {1, 2, 4}) {
    const Division division{.ranks = 4, .per_process = per_process};
    const Program apart = with_ends_apart(whole, division);
    for (std::int32_t process = 0; process < division.processes(); ++process) {
      const RankRange ranks = division.of(process);
      const OwnProgram own = program_of_ranks(apart, ranks);
      EXPECT_EQ(own.program.reductions, whole.reductions);
      const Clocks clocks(own.program);
      std::optional<std::uint32_t> reduces;
      for (std::uint32_t op = 0; op < own.program.ops.size(); ++op) {
        EXPECT_TRUE(ranks.contains(own.program.rank_of_stream[own.program.ops[op].stream]));
        for (std::uint32_t at = own.program.ops[op].first_part; at < own.program.ops[op].end_part;
             ++at) {
          if (own.program.parts[at].kind != OpPart::Kind::Reduce) continue;
          EXPECT_FALSE(reduces) << "one of each process";
          EXPECT_TRUE(ranks.contains(own.program.parts[at].rank));
          reduces = op;
        }
      }
      const bool has_members = ranks.contains(0) || ranks.contains(2) || ranks.contains(3);
      EXPECT_EQ(reduces.has_value(), has_members);
      for (std::uint32_t op = 0; reduces && op < own.program.ops.size(); ++op) {
        const OpPart* const part = own.program.ops[op].first_part < own.program.ops[op].end_part
                                       ? &own.program.parts[own.program.ops[op].first_part]
                                       : nullptr;
        if (part == nullptr || part->kind != OpPart::Kind::Work || part->rank == 1) continue;
        EXPECT_TRUE(clocks.before(op, *reduces)) << "on its rank or for another of the process";
      }
    }
  }
}

}  // namespace
}  // namespace capo::run
