#include "core/minimise/minimise.h"

#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/minimise/edits.h"
#include "core/minimise/size.h"
#include "core/text/order_text.h"
#include "testing/generators/draw_te_order.h"
#include "tests/support/check_text.h"
#include "tests/support/file_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <string>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::check_text;
using testing_support::Checked;

Minimised minimised(const std::string& text, std::string_view rule,
                    const MinimiseOptions& options = {}) {
  const Checked checked = check_text(text);
  auto result = minimise(checked.input, rule, {}, options);
  EXPECT_TRUE(result.has_value()) << "not broken: " << rule;
  return result.value_or(Minimised{});
}

std::string minimal(const std::string& text, std::string_view rule) {
  return print_order_file(minimised(text, rule).schedule);
}

TEST(Minimise, AMissingBackwardLeavesItsForward) {
  EXPECT_EQ(minimal("[1, 2, 1, -2, 2, -1, -2, 1, 2, -2, 1, -1, 2, -1, -2]", "S15"),
            "capo 1\nranks 1\nrank 0: F1\n");
}

TEST(Minimise, AWeightGradientAheadNeedsItsMicrobatchAlone) {
  EXPECT_EQ(minimal("[1, 1, -1, -1.5, -1.5, -1, 1, -1, -1.5]", "S24"),
            "capo 1\nranks 1\nrank 0: F1 W1 B1\n");
}

TEST(Minimise, WhoDelaysIsAFactThatALostWeightGradientDoesNotChange) {
  EXPECT_EQ(minimal("[1, 1, 1, -1, -1.5, -1, -1]", "S16"),
            "capo 1\nranks 1\nrank 0: F1 B1 W1 F1 B1\n");
}

TEST(Minimise, OfManyRanksTheTwoStayThatAreAtFault) {
  const std::string text = R"(capo 1
placement chain
rank 0: F1.0 send-F1.0 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1
rank 1: recv-F1.0 F1.0 recv-F1.1 F1.1 send-F1.0 send-F1.1 send-B1.0 recv-B1.0 B1.0 recv-B1.1 B1.1
  send-B1.1
rank 2: recv-F1.0 F1.0 recv-F1.1 F1.1 B1.0 send-B1.0 B1.1 send-B1.1
)";
  EXPECT_EQ(minimal(text, "T06"),
            "capo 1\nranks 2\nplacement chain\nrank 0: F1.0 B1.0\nrank 1: F1.0 send-B1.0 B1.0\n");
}

TEST(Minimise, CrossedTransfersKeepTheTwoMicrobatchesThatCross) {
  const std::string text = R"(capo 1
placement chain
rank 0: F1.0 send-F1.0 F1.2 send-F1.2 F1.1 send-F1.1 recv-B1.0 B1.0 recv-B1.1 B1.1 recv-B1.2 B1.2
rank 1: recv-F1.0 F1.0 recv-F1.1 recv-F1.2 F1.1 F1.2 B1.0 send-B1.0 B1.1 send-B1.1 B1.2 send-B1.2
)";
  EXPECT_EQ(minimal(text, "T08"),
            "capo 1\nranks 2\nplacement chain\nrank 0: F1.0 F1.1 send-F1.1 send-F1.0 B1.0 B1.1\n"
            "rank 1: recv-F1.0 F1.0 B1.0 recv-F1.1 F1.1 B1.1\n");
}

TEST(Minimise, WhatIsNotBrokenIsNotMinimised) {
  const Checked sound = check_text("[1, -1]");
  EXPECT_FALSE(minimise(sound.input, "S15", {}).has_value());
  const Checked broken = check_text("[1, 1, -1]");
  EXPECT_FALSE(minimise(broken.input, "S23", {}).has_value());
}

TEST(Minimise, WhatOrderTextCannotSayIsNotMinimised) {
  const Checked odd = check_text("[1, -1.25, -1]");
  ASSERT_EQ(odd.findings(), std::vector<std::string>{"S02@1"});
  EXPECT_FALSE(minimise(odd.input, "S02", {}).has_value());
}

TEST(Minimise, AtItsLimitItSaysSoAndGivesTheBestSoFar) {
  const std::string text = "[1, 2, 1, -2, 2, -1, -2, 1, 2, -2, 1, -1, 2, -1, -2]";
  const Minimised none = minimised(text, "S15", {.max_checks = 0});
  EXPECT_TRUE(none.at_limit);
  EXPECT_EQ(none.schedule.ranks.front().order.size(), 15u);
  const std::uint64_t needed = minimised(text, "S15").checks;
  EXPECT_FALSE(minimised(text, "S15", {.max_checks = needed}).at_limit);
  EXPECT_TRUE(minimised(text, "S15", {.max_checks = needed - 1}).at_limit);
}

TEST(Minimise, AFarChunkIsNotWalkedTo) {
  EXPECT_LT(minimised("[1, -1, 4000000]", "S12").checks, 100u);
}

TEST(Minimise, RanksThatAGroupNumbersStay) {
  const std::string text = R"(capo 1
rank 0: F1.0 B1.0 F1.1 B1.1
rank 1: F1.0 dispatch-F1.0 combine-F1.0 F1.1 dispatch-F1.1 combine-F1.1 B1.0 B1.1
rank 2: F1.0 dispatch-F1.0 combine-F1.0 F1.1 combine-F1.1 dispatch-F1.1 B1.0 B1.1
rank 3: F1.0 B1.0 F1.1 B1.1
)";
  const CheckOptions declared{.groups = {{.name = "ep",
                                          .members = {1, 2},
                                          .actions = {Kind::DispatchForward, Kind::CombineForward},
                                          .streams = {}}}};
  const Checked checked = check_in({.groups = declared.groups}, text);
  ASSERT_EQ(checked.result.diagnostics.kept().front().rule, "T10");
  const auto least = minimise(checked.input, "T10", declared);
  ASSERT_TRUE(least.has_value());
  EXPECT_EQ(print_order_file(least->schedule),
            "capo 1\nranks 3\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n"
            "rank 2: F1.0 combine-F1.0 B1.0\n");
}

// Tries each single deletion from an order that is documented as minimal.
std::vector<Schedule> single_deletions(const Schedule& schedule) {
  std::vector<Schedule> out;
  const auto add = [&](std::optional<Schedule> smaller) {
    if (smaller && size_of(*smaller) < size_of(schedule)) out.push_back(std::move(*smaller));
  };
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    add(without_ranks(schedule, r, r + 1));
    for (std::size_t at = 0; at < schedule.ranks[r].order.size(); ++at) {
      Schedule shorter = without_entries(schedule, r, From::Both, at, at + 1);
      if (keeps_delays(schedule, shorter)) add(std::move(shorter));
    }
  }
  for (const std::int32_t microbatch : microbatches_in(schedule)) {
    add(without_microbatches(schedule, std::array{microbatch}));
  }
  for (const HeldChunk& held : chunks_in(schedule)) {
    add(without_chunks(schedule, std::array{held}));
    add(without_layers(schedule, std::array{std::int32_t{held.chunk}}));
  }
  add(without_weights(schedule, 0, schedule.ranks.size()));
  return out;
}

bool breaks(const Schedule& schedule, const std::string& rule) {
  const Checked checked = check_text(print_order_file(schedule));
  const auto& kept = checked.result.diagnostics.kept();
  return std::any_of(kept.begin(), kept.end(), [&](const Diagnostic& finding) {
    return finding.rule == rule && finding.severity == Severity::Error;
  });
}

TEST(Minimise, OfEveryBadCaseOfTheCorpusNothingMoreCanGo) {
  namespace fs = std::filesystem;
  int cases = 0;
  for (const auto& file : fs::recursive_directory_iterator(CAPO_SOURCE_DIR "/tests/corpus/rules")) {
    const fs::path& path = file.path();
    const bool input = path.extension() == ".te" || path.extension() == ".order" ||
                       path.extension() == ".csv" || path.extension() == ".json";
    if (!input || !path.filename().string().starts_with("bad-") ||
        fs::exists(fs::path(path).replace_extension(".args"))) {
      continue;
    }
    const auto loaded =
        load({.name = path.filename(), .text = testing_support::read_file(path)}, {});
    if (!loaded) continue;
    const std::string rule = path.parent_path().filename();
    const auto least = minimise(*loaded, rule, {});
    if (!least) continue;  // it has no notation; tests/cli/minimise_test.cpp says of which
    SCOPED_TRACE(path.string() + "\n" + print_order_file(least->schedule));
    EXPECT_FALSE(least->at_limit);
    EXPECT_TRUE(breaks(least->schedule, rule));
    for (const Schedule& smaller : single_deletions(least->schedule)) {
      EXPECT_FALSE(breaks(smaller, rule)) << print_order_file(smaller);
    }
    ++cases;
  }
  std::cout << cases << " cases\n";
  EXPECT_GT(cases, 80);
}

struct Reuse {
  bool input = false;        // the input of a pending weight gradient is overwritten
  bool grad_output = false;  // the gradient that came in is overwritten
};

// TE hands the input buffer of a chunk that is through with its backward to the next forward, the
// oldest first, and has one buffer for all gradients that come in.
Reuse reuse_of(const std::vector<Entry>& order) {
  using Graph = std::pair<std::int32_t, std::int32_t>;
  Reuse found;
  std::map<Graph, int> buffer;
  std::deque<int> free;
  std::map<int, Graph> owner;
  std::set<Graph> pending;
  for (const Entry& entry : order) {
    const Graph graph{entry.chunk, entry.microbatch};
    if (entry.kind == Kind::Forward) {
      buffer[graph] = static_cast<int>(owner.size());
      if (!free.empty()) {
        buffer[graph] = free.front();
        free.pop_front();
        if (pending.contains(owner[buffer[graph]])) found.input = true;
      }
      owner[buffer[graph]] = graph;
    } else if (entry.kind == Kind::Backward) {
      if (!pending.empty()) found.grad_output = true;
      pending.insert(graph);
      free.push_back(buffer[graph]);
    } else if (entry.kind == Kind::BackwardWeight) {
      pending.erase(graph);
    }
  }
  return found;
}

// Draws a sound order in which every chunk delays and that TE can capture: each weight gradient
// follows its own backward.
bool capturable(const Schedule& schedule) {
  if (schedule.ranks.size() != 1) return false;
  const RankOrder& rank = schedule.ranks.front();
  std::map<std::int32_t, testing::ChunkProgress> done;
  for (const Entry& entry : rank.order) {
    testing::ChunkProgress& chunk = done[entry.chunk];
    if (entry.kind == Kind::Forward) ++chunk.forwards;
    if (entry.kind == Kind::Backward && ++chunk.backwards != chunk.weights + 1) return false;
    if (entry.kind == Kind::BackwardWeight && ++chunk.weights != chunk.backwards) return false;
    if (chunk.backwards > chunk.forwards) return false;
  }
  return static_cast<std::int32_t>(done.size()) == rank.chunks &&
         std::all_of(done.begin(), done.end(), [&](const auto& chunk) {
           const testing::ChunkProgress& first = done.begin()->second;
           return chunk.second.forwards == first.forwards &&
                  chunk.second.backwards == first.forwards &&
                  chunk.second.weights == first.forwards;
         });
}

Schedule draw_delaying_order(testing::Dice& dice) {
  testing::TeOrder shape;
  const std::int32_t chunks = dice.between(1, 4);
  shape.delays.assign(static_cast<std::size_t>(chunks), true);
  shape.microbatches = std::max(2, 100 / (3 * chunks) + dice.between(-1, 1));
  const testing::TeOrder order = testing::draw_te_entries(
      dice, shape, [](Kind kind, std::int32_t /*chunk*/, const testing::ChunkProgress& done) {
        return kind != Kind::Backward || done.weights == done.backwards;
      });
  return from_te_list(order.list, {}).schedule;
}

std::string te_text(const Schedule& schedule) {
  std::string text =
      print_te_list(to_te_list(schedule.ranks.front(), schedule.ranks.front().order).value());
  std::erase_if(text, [](char c) { return c == '\n' || c == ' '; });
  return text;
}

// Minimises an order that is broken.
using Minimiser = std::function<std::optional<Minimised>(const Schedule&)>;

// The results of so many broken orders of about a hundred entries, and how often each was.
std::map<std::string, int> minima(const char* name, int orders, const StillBroken& broken,
                                  const Minimiser& minimiser) {
  std::map<std::string, int> found;
  rc::Random random(20240917);
  double total = 0;
  double worst = 0;
  std::uint64_t checks = 0;
  for (int done = 0; done < orders;) {
    testing::Dice dice(random.split());
    const Schedule schedule = draw_delaying_order(dice);
    if (!broken(schedule)) continue;
    ++done;
    const auto start = std::chrono::steady_clock::now();
    const auto least = minimiser(schedule);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    total += took.count();
    worst = std::max(worst, took.count());
    if (!least || least->at_limit) {
      ADD_FAILURE() << te_text(schedule);
      continue;
    }
    checks += least->checks;
    ++found[te_text(least->schedule)];
  }
  std::cout << name << ": " << total / orders << " ms and "
            << checks / static_cast<std::uint64_t>(orders) << " checks on average, " << worst
            << " ms at worst\n";
  for (const auto& [text, times] : found) std::cout << "  " << times << " times " << text << "\n";
  return found;
}

// Minimises orders that TE can capture, by the rule as it is known from running TE.
std::map<std::string, int> minima_by_reuse(const char* name, bool Reuse::*hazard) {
  const StillBroken broken = [hazard](const Schedule& schedule) {
    return capturable(schedule) && reuse_of(schedule.ranks.front().order).*hazard;
  };
  return minima(name, 1000, broken,
                [&](const Schedule& schedule) { return minimise(schedule, broken); });
}

// Minimises orders by capo's own rule.
std::map<std::string, int> minima_by_rule(const char* rule, const Aliases& aliases) {
  const CheckOptions declared{.plan = {.kind = PlanKind::Te, .aliases = aliases}};
  const auto input = [](const Schedule& schedule) {
    return check_text(print_order_file(schedule)).input;
  };
  const StillBroken broken = [&](const Schedule& schedule) {
    const CheckResult result = check(input(schedule), declared);
    const auto& kept = result.diagnostics.kept();
    return std::any_of(kept.begin(), kept.end(),
                       [&](const Diagnostic& finding) { return finding.rule == rule; });
  };
  return minima(rule, 200, broken, [&](const Schedule& schedule) {
    return minimise(input(schedule), rule, declared);
  });
}

const std::set<std::string> kLeastOfInput{"[1,-1,1,-1.5,-1,-1.5]", "[1,-1,2,-1.5,-2,-2.5]"};

TEST(MinimiseReuse, ByItsRuleAnOverwrittenInputEndsAtOneOfItsTwoLeastOrders) {
  for (const auto& [text, times] : minima_by_rule("B01", {.input = true})) {
    EXPECT_TRUE(kLeastOfInput.contains(text)) << text;
  }
}

TEST(MinimiseReuse, ByItsRuleAnOverwrittenGradientEndsAtItsMostCanonicalOrder) {
  for (const auto& [text, times] : minima_by_rule("B02", {.grad_output = true})) {
    EXPECT_EQ(text, "[1,-1,2,-2,-1.5,-2.5]");
  }
}

TEST(MinimiseReuse, AnOverwrittenInputEndsAtOneOfItsTwoLeastOrders) {
  for (const auto& [text, times] : minima_by_reuse("input", &Reuse::input)) {
    EXPECT_TRUE(kLeastOfInput.contains(text)) << text;
  }
}

TEST(MinimiseReuse, AnOverwrittenGradientEndsAtItsMostCanonicalOrder) {
  for (const auto& [text, times] : minima_by_reuse("grad output", &Reuse::grad_output)) {
    EXPECT_EQ(text, "[1,-1,2,-2,-1.5,-2.5]");
  }
}

TEST(MinimiseReuse, TheLeastOrdersKeepTheirLength) {
  for (const char* text : {"[1,2,-2,-1,-2.5,-1.5]", "[1,-1,2,-2,-1.5,-2.5]"}) {
    const Schedule known = check_text(text).input.schedule;
    ASSERT_TRUE(reuse_of(known.ranks.front().order).grad_output);
    const auto least = minimise(known, [](const Schedule& schedule) {
      return capturable(schedule) && reuse_of(schedule.ranks.front().order).grad_output;
    });
    ASSERT_TRUE(least.has_value());
    EXPECT_EQ(te_text(least->schedule), "[1,-1,2,-2,-1.5,-2.5]");
  }
}

TEST(MinimiseReuse, TwoCellsOfDifferentChunksAndMicrobatchesAreFound) {
  // Neither chunk and neither microbatch can go: chunk 2 overwrites microbatch 0 of chunk 1 with
  // its microbatch 1.
  const Schedule stuck = check_text("[1,1,2,-1,2,-1.5,-1,-1.5,-2,-2.5,-2,-2.5]").input.schedule;
  const auto least = minimise(stuck, [](const Schedule& schedule) {
    return capturable(schedule) && reuse_of(schedule.ranks.front().order).input;
  });
  ASSERT_TRUE(least.has_value());
  EXPECT_EQ(least->schedule.ranks.front().order.size(), 6u) << te_text(least->schedule);
}

}  // namespace
}  // namespace capo
