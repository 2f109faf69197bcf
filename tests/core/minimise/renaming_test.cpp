#include "core/minimise/edits.h"

#include "core/text/order_text.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capo {
namespace {

Schedule read(const std::string& text) {
  return testing_support::check_text(text).input.schedule;
}

bool has(const std::vector<Schedule>& found, const std::string& text) {
  return std::any_of(found.begin(), found.end(), [&](const Schedule& schedule) {
    return print_order_file(schedule) == "capo 1\nranks 1\n" + text;
  });
}

TEST(Renaming, ChunksThatAreNotWiredChangeNames) {
  EXPECT_TRUE(has(renamings(read("[2, 1, -1, -2, -2.5]")), "rank 0: F1 F2 B2 B1 W1\n"));
  EXPECT_FALSE(has(renamings(read("capo 1\nplacement chain\nrank 0: F2 F1 B1 B2\n")),
                   "placement chain\nrank 0: F1 F2 B2 B1\n"));
}

TEST(Renaming, NamedMicrobatchesChangeNamesAndCloseUp) {
  const Schedule named = read("capo 1\nrank 0: F1.5 F1.3 B1.5 B1.3\n");
  EXPECT_TRUE(has(renamings(named), "rank 0: F1.1 F1.0 B1.1 B1.0\n"));
  EXPECT_TRUE(has(renamings(named), "rank 0: F1.3 F1.5 B1.3 B1.5\n"));
}

TEST(Renaming, AnUnknownChunkComesNear) {
  EXPECT_TRUE(has(renamings(read("capo 1\nrank 0 chunks 1\nrank 0: F1 F70 B1\n")),
                  "rank 0 chunks 1\nrank 0: F1 F2 B1\n"));
}

TEST(Renaming, LessIsDeclaredWhereItMeansTheSame) {
  const Schedule declared = read(
      "capo 1\nmicrobatches 1\nrank 0 chunks 1\nrank 0 layers 1\nrank 0 delayed 1\n"
      "rank 0: F1 B1 W1\n");
  const std::vector<Schedule> less = with_less_declared(declared);
  EXPECT_TRUE(has(less, "microbatches 1\nrank 0 chunks 1\nrank 0 layers 1\nrank 0: F1 B1 W1\n"));
  EXPECT_TRUE(has(less, "microbatches 1\nrank 0 delayed 1\nrank 0: F1 B1 W1\n"));
  // Only the declaration says that the chunk delays.
  for (const Schedule& one : with_less_declared(read("capo 1\nrank 0 delayed 1\nrank 0: F1 B1\n")))
    EXPECT_TRUE(one.ranks.front().delay.has_value());
}

TEST(Renaming, StagesThatATopologyPlacesAreNotListed) {
  const Schedule custom =
      read("capo 1\nplacement custom\nrank 0 stages 0,1\nrank 0: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_TRUE(has(with_less_declared(custom), "placement chain\nrank 0: F1.0 F2.0 B2.0 B1.0\n"));
}

TEST(Renaming, NeighboursAreSwappedTowardsTheCanonicalOrderOnly) {
  const Schedule order = read("[1, 2, -1, -2]");
  const auto swapped = with_neighbours_swapped(order, 0, false, 1);
  ASSERT_TRUE(swapped.has_value());
  EXPECT_EQ(print_order_file(*swapped), "capo 1\nranks 1\nrank 0: F1 B1 F2 B2\n");
  EXPECT_FALSE(with_neighbours_swapped(order, 0, false, 0).has_value());
  const Schedule together = read("capo 1\nrank 0: F1.0 (F2.0 B1.0) B2.0\n");
  EXPECT_FALSE(with_neighbours_swapped(together, 0, false, 1).has_value());
}

}  // namespace
}  // namespace capo
