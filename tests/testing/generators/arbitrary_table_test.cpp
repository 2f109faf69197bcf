#include "testing/generators/arbitrary_table.h"

#include "core/frameworks/torch/csv_printer.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

TEST(ArbitraryTable, CanAlwaysBePrinted) {
  for (const TableCase& table : sample(arbitrary_table(), 300)) {
    EXPECT_TRUE(print_torch_csv(table.schedule).has_value());
  }
}

TEST(ArbitraryTable, DeclaresWhatItClaims) {
  std::vector<std::size_t> stages_dealt_out;
  std::vector<std::int32_t> microbatches;
  std::vector<std::int32_t> stages;
  const auto tables = sample(arbitrary_table(), 6000);
  for (const TableCase& table : tables) {
    const TorchDeclarations& declared = table.declarations;
    if (declared.stage_to_rank) stages_dealt_out.push_back(declared.stage_to_rank->size());
    if (declared.microbatches) microbatches.push_back(*declared.microbatches);
    if (declared.stages) stages.push_back(*declared.stages);
    EXPECT_FALSE(declared.stages && declared.stage_to_rank);
  }
  EXPECT_TRUE(is_share(stages_dealt_out.size(), tables.size(), 1.0 / 2));
  EXPECT_TRUE(is_share(microbatches.size(), tables.size(), 1.0 / 2));
  EXPECT_TRUE(is_share(stages.size(), tables.size() - stages_dealt_out.size(), 1.0 / 2));
  EXPECT_TRUE(are_even(stages_dealt_out, numbers<std::size_t>(1, 6)));
  EXPECT_TRUE(are_even(microbatches, numbers(1, 8)));
  EXPECT_TRUE(
      are_even(parts(tables, [](const TableCase& table) { return table.schedule.ranks.size(); }),
               numbers<std::size_t>(1, 4)));
}

// Rows of three and more are as they were drawn: no lone idle slot, no entry in an empty table.
TEST(ArbitraryTable, HasEveryEntryAsOftenAsItClaims) {
  std::vector<std::size_t> sizes;
  std::vector<Kind> kinds;
  std::vector<std::int32_t> microbatches;
  std::vector<std::int32_t> stages;
  std::set<Delay> delays;
  bool composite = false;
  for (const TableCase& table : sample(arbitrary_table(), 3000)) {
    for (const RankOrder& rank : table.schedule.ranks) {
      delays.insert(rank.delay->begin(), rank.delay->end());
      if (rank.order.size() < 3) continue;
      sizes.push_back(rank.order.size());
      for (const Entry& entry : rank.order) {
        kinds.push_back(entry.kind == Kind::BackwardInput ? Kind::Backward : entry.kind);
        composite = composite || entry.group == Group::Continues;
        if (has_microbatch(entry.kind)) microbatches.push_back(entry.microbatch);
        if (entry.kind != Kind::Idle)
          stages.push_back(rank.stages[static_cast<std::size_t>(entry.chunk) - 1]);
      }
    }
  }
  EXPECT_TRUE(are_even(sizes, numbers<std::size_t>(3, 10)));
  EXPECT_TRUE(are_even(stages, numbers(0, 5)));
  EXPECT_EQ(delays.size(), 3u);
  EXPECT_TRUE(composite);
  std::size_t known = 0;
  for (const auto& [kind, of_eleven] :
       {std::pair(Kind::Forward, 2), std::pair(Kind::Backward, 3),
        std::pair(Kind::BackwardWeight, 1), std::pair(Kind::SendForward, 1),
        std::pair(Kind::ReceiveBackward, 1), std::pair(Kind::Unshard, 1),
        std::pair(Kind::ReduceGradient, 1), std::pair(Kind::Idle, 1)}) {
    const auto count = static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kind));
    EXPECT_TRUE(is_share(count, kinds.size(), of_eleven / 11.0));
    known += count;
  }
  EXPECT_EQ(known, kinds.size());
  EXPECT_TRUE(is_share(count_of(microbatches, [](std::int32_t m) { return m == kNoMicrobatch; }),
                       microbatches.size(), 1.0 / 15));
  std::erase(microbatches, kNoMicrobatch);
  EXPECT_TRUE(are_even(microbatches, numbers(0, 5)));
}

TEST(ArbitraryTable, ShrinksToOneCell) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_table(), 50)) {
    const TableCase smallest = shrink_path(shrinkable).back();
    std::size_t entries = 0;
    for (const RankOrder& rank : smallest.schedule.ranks) entries += rank.order.size();
    EXPECT_LE(entries, 2u) << rc::toString(smallest);
    EXPECT_FALSE(smallest.declarations.stage_to_rank);
  }
}

}  // namespace
}  // namespace capo::testing
