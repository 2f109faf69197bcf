// How many orders of a size a pipeline on one rank can execute: the published counts, by putting
// every order to check() under the topology chain.
//
//   chunks x microbatches   all    first in, first out   executable       with W: all   executable
//   2x2                    2,520                  280           14         7,484,400          908
//
// Sources: the tables A13 and D2 of capo's survey of the ecosystem, made by dynamic programming.
// Without W the executable orders are also the standard Young tableaux of 2C rows and M columns,
// since F0 .. F(C-1) B(C-1) .. B0 is a chain, which the hook lengths count; one chunk with W is 3 x
// M.

#include "core/frameworks/te/predict.h"
#include "core/rules/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace capo {
namespace {

using Order = std::vector<Entry>;

struct Size {
  std::int32_t chunks;
  std::int32_t microbatches;
  bool weights;

  [[nodiscard]] std::size_t kinds() const { return weights ? 3 : 2; }
  [[nodiscard]] std::size_t tokens() const {
    return kinds() * static_cast<std::size_t>(chunks * microbatches);
  }
};

// One rank that holds all chunks as a chain; its order is filled in.
Input chain_of(const Size& size) {
  Input input{.form = Form::OrderFile};
  input.schedule = {.topology = Topology::Chain, .microbatches = size.microbatches};
  RankOrder& rank = input.schedule.ranks.emplace_back();
  rank.chunks = size.chunks;
  rank.chunks_declared = true;
  rank.delay = std::vector<Delay>(static_cast<std::size_t>(size.chunks),
                                  size.weights ? Delay::Always : Delay::Never);
  place_stages(input.schedule);
  return input;
}

// One finding a rule is enough here.
CheckResult check_order(Input& input, const Order& order) {
  input.schedule.ranks.front().order = order;
  return check(input, {.findings_per_rule = 1});
}

bool accepted(Input& input, const Order& order) {
  return check_order(input, order).verdict == Verdict::Accepted;
}

// Accepted, or a stage before the one that it reads and nothing else.
bool accepted_or_out_of_stage_order(const CheckResult& result) {
  const auto& findings = result.diagnostics.kept();
  return std::all_of(findings.begin(), findings.end(),
                     [](const Diagnostic& finding) { return finding.rule == "D03"; });
}

bool te_captures(const Order& order, const Size& size) {
  TeList list;
  for (const Entry& entry : order) {
    const double value = entry.kind == Kind::Forward    ? std::int32_t{entry.chunk}
                         : entry.kind == Kind::Backward ? -entry.chunk
                                                        : -entry.chunk - 0.5;
    list.entries.push_back(
        {.value = value,
         .type = entry.kind == Kind::BackwardWeight ? NumberType::Float : NumberType::Integer});
  }
  return te::predict(list, {},
                     std::vector<bool>(static_cast<std::size_t>(size.chunks), size.weights))
      ->accepts();
}

// Orders in which the k-th entry of a kind is microbatch k: those where each chunk runs forward
// before backward before weight gradient, or all with the right number of each.
enum class Orders { FirstInFirstOut, WellCounted };

class Enumeration {
 public:
  Enumeration(const Size& size, Orders orders, std::function<void(const Order&)> visit)
      : size_(size),
        orders_(orders),
        visit_(std::move(visit)),
        done_(static_cast<std::size_t>(size.chunks), std::vector<std::int32_t>(size.kinds())) {}

  void run() {
    if (order_.size() == size_.tokens()) return visit_(order_);
    constexpr Kind kKinds[] = {Kind::Forward, Kind::Backward, Kind::BackwardWeight};
    for (std::int32_t chunk = 1; chunk <= size_.chunks; ++chunk) {
      auto& done = done_[static_cast<std::size_t>(chunk) - 1];
      for (std::size_t kind = 0; kind < size_.kinds(); ++kind) {
        const bool fed = orders_ == Orders::WellCounted || kind == 0 || done[kind] < done[kind - 1];
        if (done[kind] == size_.microbatches || !fed) continue;
        order_.push_back({.chunk = chunk, .microbatch = done[kind]++, .kind = kKinds[kind]});
        run();
        order_.pop_back();
        --done[kind];
      }
    }
  }

 private:
  Size size_;
  Orders orders_;
  std::function<void(const Order&)> visit_;
  std::vector<std::vector<std::int32_t>> done_;  // counted by chunk and kind
  Order order_;
};

std::uint64_t factorial(std::size_t n) {
  return n < 2 ? 1 : n * factorial(n - 1);
}

// Arrangements of all tokens, those of one kind and chunk being alike.
std::uint64_t well_counted(const Size& size) {
  std::uint64_t count = factorial(size.tokens());
  for (std::size_t i = 0; i < size.kinds() * static_cast<std::size_t>(size.chunks); ++i)
    count /= factorial(static_cast<std::size_t>(size.microbatches));
  return count;
}

// Standard Young tableaux of a rectangle, by the hook-length formula.
std::uint64_t tableaux(std::size_t rows, std::size_t columns) {
  std::uint64_t count = factorial(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column)
      count /= (rows - row) + (columns - column) - 1;
  }
  return count;
}

// The number of orders of a chain of actions that each microbatch goes through; nullopt if W
// branches off it.
std::optional<std::uint64_t> by_hook_lengths(const Size& size) {
  if (size.weights && size.chunks > 1) return std::nullopt;
  return tableaux(size.kinds() * static_cast<std::size_t>(size.chunks),
                  static_cast<std::size_t>(size.microbatches));
}

struct Row {
  Size size;
  std::uint64_t all;
  std::optional<std::uint64_t> in_turn;  // first in, first out; not published with W
  std::uint64_t executable;
  std::uint64_t te;  // those of them that TransformerEngine captures
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.size.chunks << "x" << row.size.microbatches << (row.size.weights ? " with W" : "");
}

std::string name_of(const Size& size) {
  return std::to_string(size.chunks) + "x" + std::to_string(size.microbatches) +
         (size.weights ? " with W" : "");
}

class ExecutableOrders : public ::testing::TestWithParam<Row> {};

TEST_P(ExecutableOrders, OfOneChainAreThePublishedOnes) {
  const Row& row = GetParam();
  Input input = chain_of(row.size);
  std::uint64_t in_turn = 0;
  std::uint64_t executable = 0;
  std::uint64_t te = 0;
  std::uint64_t other_findings = 0;
  Enumeration(row.size, Orders::FirstInFirstOut, [&](const Order& order) {
    ++in_turn;
    const CheckResult result = check_order(input, order);
    other_findings += accepted_or_out_of_stage_order(result) ? 0 : 1;
    if (result.verdict != Verdict::Accepted) return;
    ++executable;
    te += te_captures(order, row.size) ? 1 : 0;
  }).run();
  std::printf("%s: %lu orders, %lu first in first out, %lu executable, TE captures %lu of these\n",
              name_of(row.size).c_str(), well_counted(row.size), in_turn, executable, te);
  EXPECT_EQ(well_counted(row.size), row.all);
  EXPECT_EQ(in_turn, row.in_turn.value_or(in_turn));
  EXPECT_EQ(executable, row.executable);
  EXPECT_EQ(te, row.te);
  EXPECT_EQ(other_findings, 0U);
  EXPECT_EQ(executable, by_hook_lengths(row.size).value_or(executable));
}

INSTANTIATE_TEST_SUITE_P(
    UpToTwelveTokens, ExecutableOrders,
    ::testing::Values(
        Row{{1, 1, false}, 2, 1, 1, 1}, Row{{1, 2, false}, 6, 2, 2, 2},
        Row{{1, 3, false}, 20, 5, 5, 5}, Row{{2, 1, false}, 24, 6, 1, 1},
        Row{{2, 2, false}, 2'520, 280, 14, 14}, Row{{2, 3, false}, 369'600, 23'100, 462, 462},
        Row{{3, 1, false}, 720, 90, 1, 1}, Row{{3, 2, false}, 7'484'400, 277'200, 132, 132},
        Row{{1, 1, true}, 6, {}, 1, 1}, Row{{1, 2, true}, 90, {}, 5, 3},
        Row{{1, 3, true}, 1'680, {}, 42, 12}, Row{{2, 1, true}, 720, {}, 3, 3},
        Row{{2, 2, true}, 7'484'400, {}, 908, 337}, Row{{3, 1, true}, 362'880, {}, 15, 15}));

// Beyond the published sizes, up to twelve tokens.
TEST(ExecutableOrders, AreAsManyAsTheHookLengthsSay) {
  for (const Size& size : {Size{1, 4, false}, Size{1, 5, false}, Size{1, 6, false},
                           Size{4, 1, false}, Size{1, 4, true}}) {
    Input input = chain_of(size);
    std::uint64_t executable = 0;
    Enumeration(size, Orders::FirstInFirstOut, [&](const Order& order) {
      executable += accepted(input, order) ? 1 : 0;
    }).run();
    std::printf("%s: %lu executable\n", name_of(size).c_str(), executable);
    EXPECT_EQ(executable, by_hook_lengths(size)) << name_of(size);
  }
}

// Small sizes in full: an order that is not first in, first out is never executable.
TEST(ExecutableOrders, AreFirstInFirstOut) {
  std::uint64_t all = 0;
  for (const Size& size :
       {Size{1, 1, false}, Size{1, 2, false}, Size{1, 3, false}, Size{2, 1, false},
        Size{2, 2, false}, Size{3, 1, false}, Size{1, 1, true}, Size{1, 2, true}, Size{1, 3, true},
        Size{2, 1, true}}) {
    Input input = chain_of(size);
    std::uint64_t in_turn = 0;
    std::uint64_t any = 0;
    Enumeration(size, Orders::FirstInFirstOut, [&](const Order& order) {
      in_turn += accepted(input, order) ? 1 : 0;
    }).run();
    Enumeration(size, Orders::WellCounted, [&](const Order& order) {
      ++all;
      any += accepted(input, order) ? 1 : 0;
    }).run();
    EXPECT_EQ(any, in_turn) << name_of(size);
  }
  std::printf("%lu orders in full\n", all);
  EXPECT_EQ(all, 2U + 6 + 20 + 24 + 2'520 + 720 + 6 + 90 + 1'680 + 720);
}

// TE counts and does not wire chunks together: it captures what no pipeline could run.
TEST(ExecutableOrders, AreFewOfThoseThatTransformerEngineCapturesSilently) {
  struct Published {
    Size size;
    std::uint64_t te;
    std::uint64_t executable;
  };
  for (const Published& row : {Published{{2, 1, false}, 6, 1}, Published{{2, 2, false}, 280, 14},
                               Published{{3, 1, false}, 90, 1}}) {
    Input input = chain_of(row.size);
    std::uint64_t te = 0;
    std::uint64_t executable = 0;
    Enumeration(row.size, Orders::WellCounted, [&](const Order& order) {
      if (!te_captures(order, row.size)) return;
      ++te;
      executable += accepted(input, order) ? 1 : 0;
    }).run();
    std::printf("%s: of %lu orders TE captures %lu silently, %lu of them executable\n",
                name_of(row.size).c_str(), well_counted(row.size), te, executable);
    EXPECT_EQ(te, row.te);
    EXPECT_EQ(executable, row.executable);
  }
}

}  // namespace
}  // namespace capo
