#include "core/frameworks/te/to_te_list.h"

#include "core/frameworks/te/list_text.h"
#include "core/text/order_text.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

std::string written(const std::string& text, Beside beside = Beside::Refuse) {
  const Schedule schedule = read_order_file("capo 1\n" + text, {}).value();
  const auto list = to_te_list(schedule.ranks.at(0), schedule.ranks.at(0).order, beside);
  return list ? print_te_list(*list) : "cannot: " + list.error().reason;
}

TEST(ToTeList, WritesForwardsBackwardsAndWeightGradients) {
  EXPECT_EQ(written("delayed 1\nrank 0: F1.0 F2.0 B2.0 B1.0 W1.0\n"), "[1, 2, -2, -1, -1.5]\n");
}

TEST(ToTeList, SaysWhatTheNotationLacks) {
  EXPECT_EQ(written("rank 0: F1.1 F1.0 B1.0 B1.1\n"),
            "cannot: a TE list runs the microbatches of a chunk first in, first out");
  for (const char* declared : {"mixed 1\n", "delayed 1\n", "delayed none\n"}) {
    EXPECT_EQ(written(std::string(declared) + "rank 0: F1.0 I1.0 W1.0\n"),
              "cannot: in a TE list a chunk splits all of its backwards or none")
        << declared;
  }
  EXPECT_EQ(
      written("rank 0: F1.0 . B1.0\n"),
      "cannot: a TE list has no notation for idle slots, transfers and actions of whole stages");
  for (const char* action : {"dispatch-F1.0", "combine-F1.0", "dispatch-B1.0", "combine-B1.0"}) {
    EXPECT_EQ(written(std::string("rank 0: F1.0 ") + action + " B1.0\n"),
              "cannot: a TE list has no notation for dispatch and combine");
  }
  EXPECT_EQ(written("rank 0: (F1.0 F2.0) B2.0 B1.0\n"), "cannot: a TE list has no composites");
}

TEST(ToTeList, LeavesOutWhatChangesNothingWhereThatIsWanted) {
  EXPECT_EQ(written("rank 0: F1.0 . send-F1.0 (F2.0 reduce1) B2.0 B1.0\n", Beside::Drop),
            "[1, 2, -2, -1]\n");
  EXPECT_EQ(written("rank 0: F1.0 (dispatch-F1.0 F2.0) combine-B2.0 B2.0 B1.0\n", Beside::Drop),
            "[1, 2, -2, -1]\n");
}

}  // namespace
}  // namespace capo
