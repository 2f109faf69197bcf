// Product against definition on every way in which a few ranks can order their named actions: each
// microbatch forward before backward on every stage, and all else free.
//
//   rank 0: F0 B0 F1 B1         rank 0 wants microbatch 0 back before it sends 1,
//   rank 1: F1 F0 B0 B1         and rank 1 wants 1 before it works on 0
//
// The definition runs the ranks by turns: whoever has what its next action reads goes on, until all
// are done or nobody can. Where one rank by itself is at fault that is stage_order's finding, else
// dependency_cycle's.

#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace capo {
namespace {

struct Scope {
  const char* name;
  Topology topology;
  std::int32_t ranks;
  std::int32_t chunks;
  std::int32_t microbatches;
  std::uint64_t schedules;  ///< ((2 n)! / 2^n)^ranks, with n microbatches of chunks on a rank
};

void PrintTo(const Scope& scope, std::ostream* out) {
  *out << scope.name;
}

using Order = std::vector<Entry>;

// Every order of a rank in which each backward comes behind its forward.
std::vector<Order> orders_of_a_rank(const Scope& scope) {
  Order all;
  for (std::int32_t chunk = 1; chunk <= scope.chunks; ++chunk) {
    for (std::int32_t m = 0; m < scope.microbatches; ++m) {
      all.push_back({.chunk = chunk, .microbatch = m, .kind = Kind::Forward});
      all.push_back({.chunk = chunk, .microbatch = m, .kind = Kind::Backward});
    }
  }
  std::vector<std::size_t> at(all.size());  // the place of each action
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = i;
  std::vector<Order> orders;
  do {
    bool right = true;
    for (std::size_t i = 0; i < at.size(); i += 2) right = right && at[i] < at[i + 1];
    if (!right) continue;
    Order& order = orders.emplace_back(all.size());
    for (std::size_t i = 0; i < at.size(); ++i) order[at[i]] = all[i];
  } while (std::next_permutation(at.begin(), at.end()));
  return orders;
}

std::int32_t stage_of(const Scope& scope, std::int32_t rank, std::int32_t chunk) {
  if (scope.topology == Topology::Chain) return rank * scope.chunks + chunk - 1;
  const bool backwards = scope.topology == Topology::V && chunk == 2;
  return (chunk - 1) * scope.ranks + (backwards ? scope.ranks - 1 - rank : rank);
}

// Whether the ranks get through: a forward reads what the stage before it made, a backward what the
// stage behind it made.
bool runs(const Scope& scope, const std::vector<const Order*>& orders) {
  const std::int32_t last = scope.ranks * scope.chunks - 1;
  std::set<std::tuple<bool, std::int32_t, std::int32_t>> made;  // forward?, stage, microbatch
  std::vector<std::size_t> next(orders.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      while (next[r] < orders[r]->size()) {
        const Entry& entry = (*orders[r])[next[r]];
        const bool forward = entry.kind == Kind::Forward;
        const std::int32_t stage = stage_of(scope, static_cast<std::int32_t>(r), entry.chunk);
        const bool reads = stage != (forward ? 0 : last);
        const std::int32_t maker = forward ? stage - 1 : stage + 1;
        if (reads && !made.contains({forward, maker, entry.microbatch})) break;
        made.emplace(forward, stage, entry.microbatch);
        ++next[r];
        moved = true;
      }
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r) {
    if (next[r] < orders[r]->size()) return false;
  }
  return true;
}

std::string shown(const std::vector<const Order*>& orders) {
  std::string text;
  for (const Order* order : orders) {
    for (const Entry& entry : *order) {
      text += (entry.kind == Kind::Forward ? "F" : "B") + std::to_string(entry.chunk) + "." +
              std::to_string(entry.microbatch) + " ";
    }
    text += "\n";
  }
  return text;
}

bool of_dependencies(const CheckResult& result) {
  const auto& findings = result.diagnostics.kept();
  return std::all_of(findings.begin(), findings.end(), [](const Diagnostic& finding) {
    return finding.family == Family::Dependencies;
  });
}

class RankOrders : public ::testing::TestWithParam<Scope> {};

TEST_P(RankOrders, AreAcceptedExactlyWhereTheyRun) {
  const Scope& scope = GetParam();
  Input input{.form = Form::OrderFile};
  input.schedule = {.naming = Naming::Named,
                    .topology = scope.topology,
                    .microbatches = scope.microbatches,
                    .ranks = std::vector<RankOrder>(static_cast<std::size_t>(scope.ranks))};
  for (RankOrder& rank : input.schedule.ranks) {
    rank.chunks = scope.chunks;
    rank.chunks_declared = true;
    rank.delay = std::vector<Delay>(static_cast<std::size_t>(scope.chunks), Delay::Never);
  }
  place_stages(input.schedule);

  const std::vector<Order> choices = orders_of_a_rank(scope);
  std::vector<std::size_t> chosen(input.schedule.ranks.size(), 0);
  std::uint64_t schedules = 0;
  std::uint64_t run = 0;
  for (bool more = true; more;) {
    std::vector<const Order*> orders;
    for (std::size_t r = 0; r < chosen.size(); ++r) {
      input.schedule.ranks[r].order = choices[chosen[r]];
      orders.push_back(&choices[chosen[r]]);
    }
    const bool expected = runs(scope, orders);
    const CheckResult result = check(input);
    ASSERT_EQ(result.verdict == Verdict::Accepted, expected) << shown(orders);
    ASSERT_TRUE(of_dependencies(result)) << shown(orders);
    ++schedules;
    run += expected ? 1 : 0;
    more = false;
    for (std::size_t r = 0; r < chosen.size() && !more; ++r) {
      more = ++chosen[r] < choices.size();
      if (!more) chosen[r] = 0;
    }
  }
  std::printf("%s: %lu schedules, %lu run\n", scope.name, schedules, run);
  EXPECT_EQ(schedules, scope.schedules);
  EXPECT_GT(run, 0U);
}

INSTANTIATE_TEST_SUITE_P(Scopes, RankOrders,
                         ::testing::Values(Scope{"Chain2x3", Topology::Chain, 2, 1, 3, 90 * 90},
                                           Scope{"Chain3x2", Topology::Chain, 3, 1, 2, 216},
                                           Scope{"ChainOfTwoChunks", Topology::Chain, 2, 2, 1, 36},
                                           Scope{"LoopOfTwoChunks", Topology::Loop, 2, 2, 1, 36},
                                           Scope{"VOfTwoChunks", Topology::V, 2, 2, 1, 36}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace capo
