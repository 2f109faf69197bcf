#include <capo/testing/generators/arbitrary_table.h>

#include <capo/core/text/torch_csv_printer.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <set>

namespace capo::testing {
namespace {

TEST(ArbitraryTable, CanAlwaysBePrinted) {
  for (const TableCase& table : sample(arbitrary_table(), 300)) {
    EXPECT_TRUE(print_torch_csv(table.schedule).has_value());
  }
}

TEST(ArbitraryTable, HasEverythingThatATableCanHave) {
  std::set<Delay> delays;
  std::set<Kind> kinds;
  bool placed = false;
  bool unplaced = false;
  bool nameless = false;
  bool composite = false;
  for (const TableCase& table : sample(arbitrary_table(), 500)) {
    (table.declarations.stage_to_rank ? placed : unplaced) = true;
    for (const RankOrder& rank : table.schedule.ranks) {
      delays.insert(rank.delay->begin(), rank.delay->end());
      for (const Entry& entry : rank.order) {
        kinds.insert(entry.kind);
        nameless = nameless || (has_microbatch(entry.kind) && entry.microbatch == kNoMicrobatch);
        composite = composite || entry.group == Group::Continues;
      }
    }
  }
  EXPECT_EQ(delays.size(), 3u);
  EXPECT_EQ(kinds.size(), 9u);
  EXPECT_TRUE(placed && unplaced && nameless && composite);
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
