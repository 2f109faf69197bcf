// Processes as threads: texts that are gathered, a step over two of them, and what becomes of it
// when a message goes lost.

#include "run/processes/processes.h"

#include "run/host/host_engine.h"
#include "run/processes/between_processes.h"
#include "run/processes/own_rank.h"
#include "run/report.h"
#include "run/run.h"
#include "tests/run/processes/thread_library.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTwo =
    "capo 1\nranks 2\nmicrobatches 3\nplacement chain\n"
    "rank 0: F1.0 F1.1 B1.0 F1.2 B1.1 B1.2\nrank 1: F1.0 B1.0 F1.1 B1.1 F1.2 B1.2\n";

TEST(GatheredTexts, AreByRankAtRankZero) {
  Post post(3);
  std::vector<std::optional<std::string>> at_zero;
  in_each(post, 60s, [&](Processes& processes) {
    const std::string own(static_cast<std::size_t>(processes.rank()) * 1000, 'x');
    const auto all = processes.gather(own);
    if (processes.rank() == 0) at_zero = all;
    if (processes.rank() != 0) {
      EXPECT_EQ(all.at(0), "");
    }
  });
  ASSERT_EQ(at_zero.size(), 3U);
  EXPECT_EQ(at_zero[0], "");
  EXPECT_EQ(at_zero[2]->size(), 2000U);
}

TEST(GatheredTexts, OfOneThatIsSilentAreNotThere) {
  Post post(2);
  in_each(post, 10ms, [&](Processes& processes) {
    if (processes.rank() != 0) return;
    EXPECT_EQ(processes.gather("mine").at(1), std::nullopt);
  });
}

TEST(Meetings, AreNotWaitedForLongerThanTheTimeout) {
  Post post(2);
  in_each(post, 10ms, [&](Processes& processes) {
    if (processes.rank() == 0) {
      EXPECT_FALSE(processes.meet());
    }
  });
  in_each(post, 60s, [&](Processes& processes) { EXPECT_TRUE(processes.meet()); });
}

VerifiedPlan two_ranks() {
  return verified(typed(kTwo), every_layer(small(ModuleKind::Linear)));
}

// The outcomes of a run over two threads, by rank.
std::vector<Result<RunReport, RunFailure>> run_over(Post& post, Processes::Duration timeout,
                                                    const RunOptions& options) {
  std::vector<Result<RunReport, RunFailure>> all(2, RunFailure{});
  in_each(post, timeout, [&](Processes& processes) {
    const VerifiedPlan plan = two_ranks();
    host::HostEngine engine;
    RunOptions own = options;
    own.processes = &processes;
    all[static_cast<std::size_t>(processes.rank())] = run(engine, plan, own);
  });
  return all;
}

TEST(StepOverProcesses, HasTheReportOfOneProcess) {
  for (const auto mode : {MessageLibrary::Mode::Rendezvous, MessageLibrary::Mode::Buffered}) {
    Post post(2);
    const auto all = run_over(post, 60s, {.sends = mode});
    ASSERT_TRUE(all[0]) << all[0].error().message;
    const VerifiedPlan plan = two_ranks();
    host::HostEngine engine;
    const auto alone = run(engine, plan, {});
    const RunReport& report = *all[0];
    EXPECT_TRUE(report.bit_equal);
    EXPECT_EQ(report.processes, 2);
    EXPECT_EQ(report.graphs, alone->graphs);
    EXPECT_EQ(report.nodes, alone->nodes);
    EXPECT_EQ(report.bytes.planned, alone->bytes.planned);
    EXPECT_EQ(report.bytes.allocated, alone->bytes.allocated);
    EXPECT_EQ(report.bytes.eager_peak, alone->bytes.eager_peak);
    EXPECT_EQ(report.worst_relative_error, alone->worst_relative_error);
    EXPECT_GT(report.timeline.size(), 12U);  // the works of both ranks, and messages
  }
}

// Landing places are poisoned, so a replay that brought nothing could not be equal by chance; here
// a rendezvous does not end.
TEST(StepOverProcesses, AMessageThatGoesLostIsNamedWithTheRanksThatWait) {
  Post post(2);
  post.tamper = [](const Sent& sent) {
    // Communicator 0 is that of texts.
    return sent.communicator > 0 && sent.from == 0 ? Fate::Lost : Fate::Arrives;
  };
  const auto all = run_over(post, 50ms, {.replays = 1});
  ASSERT_FALSE(all[0]);
  EXPECT_EQ(all[0].error().kind, RunFailure::Kind::Broken);
  const std::string& said = all[0].error().message;
  EXPECT_TRUE(
      said.starts_with("no message came for 0.05 s, and ranks are stuck:\n"
                       "  rank 0 waits for rank 1 to receive message 0 from rank 0 to rank 1, "
                       "which F of chunk 1, microbatch 0 of rank 1 reads\n"
                       "  rank 1 waits for rank 0 to send message 0 from rank 0 to rank 1, "))
      << said;
  EXPECT_TRUE(said.ends_with("\n  in a circle: rank 0 for rank 1, which waits for rank 0")) << said;
  ASSERT_FALSE(all[1]);
  EXPECT_EQ(all[1].error().message, "");  // rank 0 tells it
}

TEST(StepOverProcesses, OneGraphOfAStepIsRefused) {
  Post post(2);
  const auto all = run_over(post, 60s, {.graphs = Granularity::PerStep});
  ASSERT_FALSE(all[0]);
  EXPECT_EQ(all[0].error().kind, RunFailure::Kind::Refused);
  EXPECT_TRUE(all[0].error().message.starts_with("a host waits for what another process sends"));
}

TEST(OwnRank, HasItsOpsInTheirOrderAndItsOwnWaits) {
  const VerifiedPlan plan = two_ranks();
  const Program whole = with_ends_apart(
      *program_of(plan.step().view().table(), plan.step().replayed()), {.ranks = 2});
  std::size_t ops = 0;
  for (const std::int32_t rank : {0, 1}) {
    const OwnProgram own = program_of_ranks(whole, {rank, rank + 1});
    ops += own.program.ops.size();
    for (std::uint32_t op = 0; op < own.program.ops.size(); ++op) {
      EXPECT_EQ(whole.rank_of_stream[own.program.ops[op].stream], rank);
      if (op > 0) {
        EXPECT_LT(own.op_of[op - 1], own.op_of[op]);
      }
      for (const std::uint32_t before : own.program.waits[op]) EXPECT_LT(before, op);
    }
    for (const OpPart& part : own.program.parts) {
      if (part.kind == OpPart::Kind::Deliver) {
        EXPECT_EQ(part.end, End::Send);
      }
      if (part.kind == OpPart::Kind::Delivered) {
        EXPECT_EQ(part.end, End::Receive);
      }
    }
  }
  EXPECT_EQ(ops, whole.ops.size());
}

TEST(OwnRank, ManyOfOneProcessKeepTheirWaitsForEachOther) {
  const VerifiedPlan plan = two_ranks();
  const Division together{.ranks = 2, .per_process = 2};
  const Program whole = *program_of(plan.step().view().table(), plan.step().replayed());
  const OwnProgram own = program_of_ranks(with_ends_apart(whole, together), together.of(0));
  EXPECT_EQ(own.program.waits, whole.waits);
  EXPECT_EQ(own.program.ops.size(), whole.ops.size());
  for (std::size_t part = 0; part < whole.parts.size(); ++part) {
    EXPECT_EQ(own.program.parts[part].kind, whole.parts[part].kind);
  }
}

TEST(Divisions, TheLastProcessMayHaveFewerRanks) {
  const Division division{.ranks = 5, .per_process = 2};
  EXPECT_EQ(division.processes(), 3);
  EXPECT_EQ(division.home(3), 1);
  EXPECT_EQ(division.of(2).first, 4);
  EXPECT_EQ(division.of(2).end, 5);
  EXPECT_FALSE(division.of(2).contains(5));
}

constexpr const char* kFourRanks =
    "capo 1\nranks 4\nmicrobatches 2\nplacement chain\nrank 0: F1.0 F1.1 B1.0 B1.1\n"
    "rank 1: F1.0 F1.1 B1.0 B1.1\nrank 2: F1.0 F1.1 B1.0 B1.1\nrank 3: F1.0 B1.0 F1.1 B1.1\n";

TEST(StepOverProcesses, SeveralRanksOfAProcessReportWhatAllDo) {
  const auto plan = [] {
    return verified(typed(kFourRanks), every_layer(small(ModuleKind::Linear)));
  };
  host::HostEngine engine;
  const auto alone = run(engine, plan(), {.replays = 2});
  ASSERT_TRUE(alone);
  Post post(2);
  in_each(post, 60s, [&](Processes& processes) {
    host::HostEngine own;
    const auto report =
        run(own, plan(), {.replays = 2, .processes = &processes, .ranks_per_process = 2});
    ASSERT_TRUE(report) << report.error().message;
    if (processes.rank() != 0) return;
    EXPECT_TRUE(report->bit_equal);
    EXPECT_EQ(report->graphs, alone->graphs);
    EXPECT_EQ(report->bytes.planned, alone->bytes.planned);
    EXPECT_EQ(report->timeline.size(), alone->timeline.size());
    EXPECT_EQ(report->division.per_process, 2);
  });
}

// The error of a transport that expects a message of this number between the first rank and the
// last one.
std::optional<Error> error_of_number(Post& post, std::uint32_t number, const Division& division) {
  std::optional<Error> error;
  in_each(post, 60s, [&](Processes& processes) {
    host::HostEngine engine;
    const auto transport = between_processes(
        engine, {.processes = processes, .division = division, .words = [](const Message&) {
                   return std::string("which nobody reads");
                 }});
    std::byte place{};
    transport->expect(
        {.channel = {.sender = 0, .receiver = division.ranks - 1}, .number = number, .bytes = 1},
        &place);
    transport->prepare();
    if (processes.rank() == 0) error = transport->error();
  });
  return error;
}

// Each holds the number of a message and both ranks' numbers within their processes.
TEST(Tags, ThatALibraryDoesNotHaveAreRefusedWithTheFlag) {
  const Division division{.ranks = 1000, .per_process = 500};
  Post post(2);
  EXPECT_FALSE(error_of_number(post, 8'589, division));
  const auto error = error_of_number(post, 8'590, division);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "message 8590 from rank 0 to rank 999, which nobody reads, would have the tag "
            "2147500499, and the library of threads has none above 2147483647");
  EXPECT_EQ(error->help, "tags number the ranks of a process: give a smaller --ranks-per-device");
}

// An MPI may have fewer than an int has room for.
TEST(Tags, GoAsFarAsTheLibrarySays) {
  const Division division{.ranks = 2};
  Post post(2);
  post.largest_tag = 32'767;
  EXPECT_FALSE(error_of_number(post, 32'767, division));
  const auto error = error_of_number(post, 32'768, division);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "message 32768 from rank 0 to rank 1, which nobody reads, would have the tag 32768, "
            "and the library of threads has none above 32767");
  EXPECT_EQ(error->help,
            "tags number the messages of two ranks: give an order of fewer "
            "microbatches");
}

}  // namespace
}  // namespace capo::run
