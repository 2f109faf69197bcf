// Buffers of transfers: how many slots receives need and how many tensors wait to be sent, by hand
// and for every table of torch 2.15's passes; and that a slot taken too early is a hazard.

#include "tests/core/graph/order_text.h"
#include "tests/core/graph/torch_tables.h"
#include "tests/core/plan/happens_before.h"
#include "tests/core/plan/planned.h"
#include "tests/core/plan/sharing.h"
#include "tests/support/data.h"

#include "core/plan/uses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::all_of;
using testing_support::HappensBefore;
using testing_support::PlannedStep;
using testing_support::read_schedule;
using testing_support::Sharing;
using testing_support::sized_module;

Schedule two_ranks(const std::string& first, const std::string& second) {
  return read_schedule("ranks 2\nmicrobatches 2\nplacement chain\nrank 0: " + first +
                       "\nrank 1: " + second + "\n");
}

constexpr const char* kSender = "F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1";

std::vector<std::size_t> receives_of(const PlannedStep& step) {
  std::vector<std::size_t> slots;
  for (const RankMemory& memory : step.plan(PlanKind::Safe).ranks)
    slots.push_back(memory.transfers.receives);
  return slots;
}

std::vector<std::size_t> sends_of(const PlannedStep& step) {
  std::vector<std::size_t> sends;
  for (const RankMemory& memory : step.plan(PlanKind::Safe).ranks)
    sends.push_back(memory.transfers.sends);
  return sends;
}

using Numbers = std::vector<std::size_t>;

TEST(TransferBuffers, AreOneSlotIfEachReceiveFollowsTheReaderBefore) {
  const PlannedStep step(
      two_ranks(kSender, "recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 send-B1.0 B1.1 send-B1.1"));
  EXPECT_EQ(receives_of(step), (Numbers{1, 1}));
  EXPECT_EQ(sends_of(step), (Numbers{2, 2}));
}

TEST(TransferBuffers, AreTwoSlotsIfBothReceivesCanBeginBeforeTheFirstReader) {
  const PlannedStep step(
      two_ranks(kSender, "recv-F1.0 recv-F1.1 F1.0 B1.0 send-B1.0 F1.1 B1.1 send-B1.1"));
  EXPECT_EQ(receives_of(step), (Numbers{1, 2}));
}

// A written wait says that the send is over; else only what comes back does.
TEST(TransferBuffers, OfASendAreFreeBehindItsWait) {
  const std::string receiver = "recv-F1.0 recv-F1.1 F1.0 B1.0 send-B1.0 F1.1 B1.1 send-B1.1";
  const PlannedStep unwaited(two_ranks(kSender, receiver));
  const PlannedStep waited(two_ranks(
      "F1.0 send-F1.0 wait-send-F1.0 F1.1 send-F1.1 wait-send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1",
      receiver + " wait-send-B1.0 wait-send-B1.1"));
  EXPECT_EQ(sends_of(unwaited), (Numbers{2, 2}));
  EXPECT_EQ(sends_of(waited), (Numbers{1, 2}));
}

TEST(TransferBuffers, HaveTheBytesOfWhatIsCopied) {
  const PlannedStep step(
      two_ranks(kSender, "recv-F1.0 recv-F1.1 F1.0 B1.0 send-B1.0 F1.1 B1.1 send-B1.1"),
      all_of(sized_module()));
  const Plan plan = step.plan(PlanKind::Safe);
  EXPECT_EQ(plan.ranks[1].transfers,
            (TransferMemory{.receives = 2, .receive_bytes = 16, .sends = 2, .send_bytes = 16}));
  const Plan te = step.plan(PlanKind::Te);
  EXPECT_EQ(te.ranks[1].transfers, plan.ranks[1].transfers) << "TE's plan does not change them";
}

TEST(TransferBuffers, AreNoneWithoutRanksThatCommunicate) {
  const PlannedStep step(read_schedule("ranks 1\nmicrobatches 1\nrank 0: F1.0 B1.0\n"));
  EXPECT_EQ(step.plan(PlanKind::Safe).ranks[0].transfers, TransferMemory{});
}

// The second receive may write while F1.0 reads.
TEST(TransferBuffers, ThatAreTakenBeforeTheirReaderAreAHazard) {
  const PlannedStep step(
      two_ranks(kSender, "recv-F1.0 recv-F1.1 F1.0 B1.0 send-B1.0 F1.1 B1.1 send-B1.1"));
  Plan plan = step.plan(PlanKind::Safe);
  EXPECT_TRUE(step.hazards(plan).empty());
  const auto received = [&](std::int32_t m) {
    return step.table().received(1, 1, m, BufferKind::ReceivedActivation);
  };
  plan.address[received(1)] = plan.address[received(0)];
  const auto hazards = step.hazards(plan);
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_EQ(hazards[0].victim, step.table().at(received(0)));
  EXPECT_EQ(hazards[0].writer.kind, Kind::ReceiveForward);
  EXPECT_EQ(hazards[0].reader.kind, Kind::Forward);
  EXPECT_TRUE(hazards[0].race);
  EXPECT_EQ(Sharing(step).unordered(plan).size(), 1U);
}

// F1.1 waits for the second receive, which is so over before F1.0 reads the first.
TEST(TransferBuffers, ThatAreReadAfterASecondReceiveIsOverAreAnOrderedHazard) {
  const PlannedStep step(
      two_ranks(kSender, "recv-F1.0 recv-F1.1 F1.1 F1.0 B1.0 send-B1.0 B1.1 send-B1.1"));
  Plan plan = step.plan(PlanKind::Safe);
  plan.address[step.table().received(1, 1, 1, BufferKind::ReceivedActivation)] =
      plan.address[step.table().received(1, 1, 0, BufferKind::ReceivedActivation)];
  const auto hazards = step.hazards(plan);
  ASSERT_EQ(hazards.size(), 1U);
  EXPECT_FALSE(hazards[0].race);
}

TEST(TransferBuffers, HaveNumbersBehindThoseOfGraphs) {
  const PlannedStep step(two_ranks(kSender,
                                   "recv-F1.0 F1.0 B1.0 send-B1.0 recv-F1.1 F1.1 B1.1 "
                                   "send-B1.1"));
  const BufferTable& table = step.table();
  std::set<BufferId> seen;
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    for (std::int32_t m = 0; m < 2; ++m) {
      for (const BufferKind kind : {BufferKind::ReceivedActivation, BufferKind::ReceivedGradient}) {
        const BufferId id = table.received(rank, 1, m, kind);
        EXPECT_EQ(table.at(id),
                  (Buffer{.rank = rank, .chunk = 1, .layer = 0, .microbatch = m, .kind = kind}));
        EXPECT_EQ(table.bytes(id), table.bytes(table.at(id)));
        seen.insert(id);
      }
    }
  }
  EXPECT_EQ(*seen.begin(), table.size());
  EXPECT_EQ(*seen.rbegin() + 1, table.all());
  EXPECT_EQ(seen.size(), table.all() - table.size());
}

// --- torch's tables ------------------------------------------------------------------------------

// How many tensors that a rank has received are there at once, at the worst moment.
std::size_t receives_at_once(const PlannedStep& step, std::int32_t rank) {
  const TaskGraph& graph = *step.course().graph;
  const HappensBefore happens(graph);
  const auto reader_of = [&](const Task& receive) {
    for (TaskId id = graph.first_of[as_index(rank)]; id < graph.first_of[as_index(rank) + 1];
         ++id) {
      const Task& task = graph.tasks[id];
      const bool reads = receive.kind == Kind::ReceiveForward ? task.kind == Kind::Forward
                                                              : is_backward(task.kind);
      if (reads && task.stage == receive.stage && task.microbatch == receive.microbatch) return id;
    }
    return kNoTask;
  };
  std::vector<TaskId> receives;
  for (TaskId id = graph.first_of[as_index(rank)]; id < graph.first_of[as_index(rank) + 1]; ++id) {
    if (is_receive(graph.tasks[id].kind)) receives.push_back(id);
  }
  std::size_t most = 0;
  for (std::size_t k = 0; k < receives.size(); ++k) {
    std::size_t alive = 1;
    for (std::size_t before = 0; before < k; ++before)
      alive += happens.over(reader_of(graph.tasks[receives[before]]), receives[k]) ? 0 : 1;
    most = std::max(most, alive);
  }
  return most;
}

Schedule lowered_of(const nlohmann::json& row) {
  // Of long tables only the digest is stored; capo puts their transfers in as torch does.
  nlohmann::json lines = row.contains("lines") ? nlohmann::json::array() : row.at("compute");
  if (row.contains("lines"))
    for (const auto& line : row.at("lowered").at("default"))
      lines.push_back(row.at("lines").at(line.get<std::size_t>()));
  return testing_support::torch_table(lines, row.at("stage_to_rank"),
                                      row.at("M").get<std::int32_t>())
      .schedule;
}

TEST(TransferBuffers, OfTorchsTablesAreAsManySlotsAsTensorsAtOnce) {
  const auto data = testing_support::read_data("torch215_lowered.json");
  std::size_t ranks = 0;
  std::map<std::size_t, std::size_t> with;
  for (const auto& row : data.at("rows")) {
    const auto p = row.at("P").get<std::int32_t>();
    if (p < 2 || p * row.at("M").get<std::int32_t>() > 64) continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    const PlannedStep step(lowered_of(row), {}, {}, {.communicators = Communicators::PerRank});
    const Plan plan = step.plan(PlanKind::Safe);
    for (std::int32_t r = 0; r < p; ++r) {
      EXPECT_EQ(plan.ranks[as_index(r)].transfers.receives, receives_at_once(step, r)) << r;
      ++with[plan.ranks[as_index(r)].transfers.receives];
      ++ranks;
    }
  }
  std::printf("%zu ranks have as many slots for receives as tensors at once:", ranks);
  for (const auto& [slots, times] : with) std::printf(" %zu with %zu,", times, slots);
  std::printf("\n");
  EXPECT_GT(ranks, 100U);
}

// First and last use of each buffer, on the stream of its rank's computations.
class Lives final : public UseVisitor {
 public:
  explicit Lives(const BufferTable& table) : UseVisitor(table), of(table.all(), {0, 0}) {}
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of;

 private:
  void use(const BufferUse& found) override {
    auto& [first, last] = of[found.buffer];
    if (first == 0) first = found.at.position;
    last = found.at.position;
  }
};

// What a stage keeps of a microbatch from its forward to its last backward: the static input, which
// a weight gradient reads itself.
std::size_t kept_at_once(const PlannedStep& step, std::int32_t rank) {
  const BufferTable& table = step.table();
  Lives lives(table);
  run_course(table, step.course(), lives);
  std::map<std::uint32_t, std::ptrdiff_t> change;
  for (BufferId id = 0; id < table.size(); ++id) {
    const Buffer of = table.at(id);
    if (of.rank != rank || of.kind != BufferKind::StaticInput) continue;
    ++change[lives.of[id].first];
    --change[lives.of[id].second + 1];
  }
  std::ptrdiff_t alive = 0;
  std::ptrdiff_t most = 0;
  for (const auto& [at, by] : change) most = std::max(most, alive += by);
  return static_cast<std::size_t>(most);
}

// torch colours intervals of one rank, capo lets memory go with the last reader: they agree on
// every table, composites included, in which a forward and a backward are alive together in both.
TEST(TransferBuffers, BesideThemCapoKeepsAsManyActivationsAsTorchHasSlots) {
  const auto tables = testing_support::read_data("torch215_lowered.json");
  const auto slots = testing_support::read_data("torch215_slots.json").at("rows");
  std::size_t ranks = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& row = tables.at("rows").at(i);
    ASSERT_EQ(row.at("id"), slots.at(i).at("id"));
    SCOPED_TRACE(row.at("id").get<std::string>());
    const PlannedStep step(lowered_of(row));
    for (std::int32_t r = 0; r < row.at("P").get<std::int32_t>(); ++r) {
      std::set<int> used;
      for (const auto& stage : slots.at(i).at("slots").at(std::to_string(r))) {
        for (const auto& slot : stage) used.insert(slot.get<int>());
      }
      EXPECT_EQ(kept_at_once(step, r), used.size()) << "rank " << r;
      ++ranks;
    }
  }
  std::printf("%zu ranks of %zu tables keep as many activations as torch has slots\n", ranks,
              slots.size());
  EXPECT_GT(ranks, 300U);
}

}  // namespace
}  // namespace capo
