// Does it finish? PyTorch's tables with their transfers, the same with every receive moved to its
// reader, and the mutated ones, whole through check().
//
// PyTorch's simulator buffers sends without end and pairs transfers by name; where it says that a
// table does not progress, so must capo with buffered sends.

#include "core/rules/check.h"
#include "tests/core/graph/torch_tables.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <ostream>
#include <set>
#include <string>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::read_data;
using testing_support::torch_table;

constexpr Communicators kLayouts[] = {Communicators::PerRank, Communicators::PerPair,
                                      Communicators::PerEdge};

CheckResult check_under(const Input& input, Communicators layout,
                        TransferMode mode = TransferMode::Rendezvous) {
  return check(input, {.environment = {.communicators = layout, .transfers = mode}});
}

std::set<std::string> rules_of(const CheckResult& result) {
  std::set<std::string> rules;
  for (const Diagnostic& finding : result.diagnostics.kept()) rules.emplace(finding.rule);
  return rules;
}

std::set<Family> families_of(const CheckResult& result) {
  std::set<Family> families;
  for (const Diagnostic& finding : result.diagnostics.kept()) families.insert(finding.family);
  return families;
}

bool reads(const Entry& reader, const Entry& receive) {
  const bool kind = receive.kind == Kind::ReceiveForward
                        ? reader.kind == Kind::Forward
                        : reader.kind == Kind::Backward || reader.kind == Kind::BackwardInput;
  return kind && reader.chunk == receive.chunk && reader.microbatch == receive.microbatch;
}

// Puts every receive right before the computation that reads it, or before the composite that does.
void defer_receives(std::vector<Entry>& order) {
  std::vector<Entry> receives;
  std::erase_if(order, [&](const Entry& entry) {
    const bool receive = entry.kind == Kind::ReceiveForward || entry.kind == Kind::ReceiveBackward;
    if (receive) receives.push_back(entry);
    return receive;
  });
  for (const Entry& receive : receives) {
    auto reader = std::find_if(order.begin(), order.end(),
                               [&](const Entry& entry) { return reads(entry, receive); });
    ASSERT_NE(reader, order.end());
    while (reader->group == Group::Continues) --reader;
    order.insert(reader, receive);
  }
}

struct Table {
  std::string id;
  Input input;
};

std::vector<Table> lowered_tables() {
  std::vector<Table> tables;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("rows")) {
    if (!row.contains("lowered")) continue;
    tables.push_back({row.at("id"), torch_table(row.at("lowered"), row.at("stage_to_rank"),
                                                row.at("M").get<std::int32_t>())});
  }
  return tables;
}

TEST(TorchCompletion, EveryLoweredTableFinishesUnderEveryCommunicatorLayout) {
  std::map<Communicators, std::size_t> accepted;
  for (const Table& table : lowered_tables()) {
    for (const Communicators layout : kLayouts) {
      const CheckResult result = check_under(table.input, layout);
      EXPECT_EQ(result.verdict, Verdict::Accepted) << table.id << " " << name_of(layout);
      EXPECT_EQ(result.finishes, true) << table.id << " " << name_of(layout);
      ++accepted[layout];
    }
  }
  for (const Communicators layout : kLayouts) {
    std::printf("as PyTorch lowers, %s: %zu of 63 finish\n", std::string(name_of(layout)).c_str(),
                accepted[layout]);
    EXPECT_EQ(accepted[layout], 63U);
  }
}

struct Deferred {
  Communicators layout;
  std::size_t accepted;  // of the 63 tables
  std::set<std::string> rules;
};

void PrintTo(const Deferred& deferred, std::ostream* out) {
  *out << name_of(deferred.layout);
}

class DeferredReceives : public ::testing::TestWithParam<Deferred> {};

// The patch that is tried first against receives that block: it takes away the one global order.
TEST_P(DeferredReceives, AtTheirReadersLetFewerTablesFinish) {
  std::size_t accepted = 0;
  std::map<std::string, std::size_t> tables_by_rule;
  std::set<std::string> rules;
  for (Table& table : lowered_tables()) {
    for (RankOrder& rank : table.input.schedule.ranks) defer_receives(rank.order);
    const CheckResult result = check_under(table.input, GetParam().layout);
    const bool only_mismatches = rules_of(result) == std::set<std::string>{"T08"};
    EXPECT_EQ(result.finishes, result.verdict == Verdict::Accepted || only_mismatches) << table.id;
    accepted += result.verdict == Verdict::Accepted ? 1 : 0;
    for (const std::string& rule : rules_of(result)) {
      ++tables_by_rule[rule];
      rules.insert(rule);
    }
  }
  std::printf("receives at their readers, %s: %zu of 63 accepted",
              std::string(name_of(GetParam().layout)).c_str(), accepted);
  for (const auto& [rule, tables] : tables_by_rule)
    std::printf(", %s in %zu", rule.c_str(), tables);
  std::printf("\n");
  EXPECT_EQ(accepted, GetParam().accepted);
  EXPECT_EQ(rules, GetParam().rules);
}

// With one queue for each direction only the order of its own messages can be wrong.
INSTANTIATE_TEST_SUITE_P(Layouts, DeferredReceives,
                         ::testing::Values(Deferred{Communicators::PerRank, 16, {"T08", "T09"}},
                                           Deferred{Communicators::PerPair, 21, {"T08", "T09"}},
                                           Deferred{Communicators::PerEdge, 43, {"T08"}}));

// The family that a seeded change breaks.
Family broken_by(const std::string& kind) {
  if (kind == "w_early" || kind == "reverse_rank") return Family::Dependencies;
  if (kind == "move_rank") return Family::Placement;
  if (kind == "drop_send" || kind == "drop_recv" || kind == "dup_recv") return Family::Transfers;
  return Family::Shape;
}

Input mutated(const json& row) {
  return torch_table(row.at(row.contains("comms") ? "comms" : "order"), row.at("stage_to_rank"),
                     row.at("base").at(3).get<std::int32_t>());
}

TEST(TorchCompletion, EveryInvalidMutationIsRejectedByTheFamilyThatItBreaks) {
  std::map<std::string, std::size_t> rejected;
  std::size_t accepted = 0;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("mutations")) {
    if (row.at("by_construction") == "unknown") continue;
    SCOPED_TRACE(row.at("id").dump());
    const bool valid = row.at("by_construction") == "valid";
    for (const Communicators layout : kLayouts) {
      const CheckResult result = check_under(mutated(row), layout);
      EXPECT_EQ(result.verdict, valid ? Verdict::Accepted : Verdict::Rejected);
      if (valid) continue;
      EXPECT_TRUE(families_of(result).contains(broken_by(row.at("kind").get<std::string>())));
    }
    if (valid) {
      ++accepted;
    } else {
      ++rejected[row.at("kind")];
    }
  }
  std::size_t invalid = 0;
  for (const auto& [kind, tables] : rejected) {
    std::printf("%s: %zu rejected\n", kind.c_str(), tables);
    invalid += tables;
  }
  std::printf("%zu invalid mutations rejected, %zu valid ones accepted\n", invalid, accepted);
  EXPECT_EQ(invalid, 47U);
  EXPECT_EQ(accepted, 4U);
}

// A table with an error of shape or dependencies is not asked whether it finishes, nor is one with
// a transfer that is there twice; none of those tables is stuck in PyTorch's simulator. Actions on
// a rank that does not hold their stage are asked: they make nothing that another could use.
TEST(TorchCompletion, IsStuckExactlyWherePyTorchsSimulatorDoesNotProgress) {
  std::size_t finishing = 0;
  std::size_t stuck = 0;
  std::size_t unasked = 0;
  const json data = read_data("torch_schedules.json");
  for (const json& row : data.at("mutations")) {
    if (!row.contains("sim")) continue;
    SCOPED_TRACE(row.at("id").dump());
    const auto sim = row.at("sim").get<std::string>();
    const bool progresses = sim == "ok";
    EXPECT_TRUE(progresses || sim.find("not progressing") != std::string::npos ||
                sim == "IndexError: list index out of range")
        << sim;
    const CheckResult result =
        check_under(mutated(row), Communicators::PerRank, TransferMode::Buffered);
    if (result.finishes) {
      EXPECT_EQ(*result.finishes, progresses);
      ++(progresses ? finishing : stuck);
      continue;
    }
    EXPECT_EQ(result.verdict, Verdict::Rejected);
    EXPECT_EQ(families_of(result).contains(Family::Transfers), row.at("kind") == "dup_recv");
    EXPECT_TRUE(progresses);
    ++unasked;
  }
  std::printf(
      "%zu tables finish and %zu do not, as PyTorch's simulator has it; %zu have errors that come "
      "before, none of them stuck in the simulator\n",
      finishing, stuck, unasked);
  EXPECT_EQ(finishing, 13U);
  EXPECT_EQ(stuck, 24U);
  EXPECT_EQ(unasked, 20U);
}

}  // namespace
}  // namespace capo
