// Grids on a V, written slot by slot: squeezing, peaks, lengthening, spans and the orders that they
// stand for.

#include "schedules/v_grid.h"

#include "schedules/v_block.h"
#include "tests/schedules/order_laws.h"

#include <gtest/gtest.h>

#include <string_view>

namespace capo::schedules {
namespace {

// F and f are the forwards of chunks 1 and 2, B and b the input halves of chunks 2 and 1, W and w
// their weight halves, and a dot is an empty slot.
constexpr std::string_view kLetters = "FfBbWw.";

VGrid grid_of(const std::vector<std::string_view>& rows) {
  VGrid grid(rows.size(), rows[0].size());
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (std::size_t slot = 0; slot < rows[rank].size(); ++slot) {
      grid.at(rank, slot) = static_cast<Pass>(kLetters.find(rows[rank][slot]));
    }
  }
  return grid;
}

std::vector<std::string> rows_of(const VGrid& grid) {
  std::vector<std::string> rows(grid.ranks());
  for (std::size_t rank = 0; rank < grid.ranks(); ++rank) {
    for (std::size_t slot = 0; slot < grid.slots(); ++slot) {
      rows[rank] += kLetters[as_index(grid.at(rank, slot))];
    }
  }
  return rows;
}

TEST(VGrid, SqueezingKeepsTheOrdersAndWaitsForInputs) {
  const auto squeezed = squeeze(grid_of({"F...f..B...b.W.w", "..Ff.....Bb..W.w"}), 1);
  ASSERT_TRUE(squeezed.has_value());
  EXPECT_EQ(rows_of(*squeezed), (std::vector<std::string>{"F..fB..bWw", ".Ff..BbWw."}));
}

TEST(VGrid, NothingRunsBeforeItsInput) {
  EXPECT_EQ(squeeze(grid_of({"FfBbWw", "FfBbWw"}), 1), std::nullopt);
  EXPECT_EQ(squeeze(grid_of({"fFBbWw"}), 1), std::nullopt) << "a forward turns on one rank";
  EXPECT_EQ(squeeze(grid_of({"FfWBbw"}), 1), std::nullopt) << "a weight half waits as well";
}

TEST(VGrid, ThereAreNoMoreMicrobatchesThanStated) {
  EXPECT_EQ(squeeze(grid_of({"FfBbWwFfBbWw"}), 1), std::nullopt);
  EXPECT_NE(squeeze(grid_of({"FfBbWwFfBbWw"}), 2), std::nullopt);
}

TEST(VGrid, AChunkIsHeldFromItsForwardToItsWeightHalf) {
  const VGrid grid = grid_of({"FF.fBWfBbbWww", ".FfFf.BbBbWWw"});
  EXPECT_EQ(peaks_of(grid), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(peak_of(grid), 4);
}

TEST(VGrid, ALongerGridRepeatsTheMiddle) {
  const VGrid grid = grid_of({"F.FfBWbwFfBWbwFfBWbw."});
  const auto longer = lengthen(grid, 2);
  ASSERT_TRUE(longer.has_value());
  EXPECT_EQ(rows_of(*longer), std::vector<std::string>{"F.FfBWbwFfBWbwFfBWbwFfBWbwFfBWbw."});
}

TEST(VGrid, WithoutASteadyMiddleThereIsNoLongerGrid) {
  EXPECT_EQ(lengthen(grid_of({"FfBbWwF.fBbWw"}), 1), std::nullopt);
}

TEST(VGrid, TheSpanIsThatOfTheBusiestRank) {
  const VGrid grid = grid_of({"F..fB..bWw", ".Ff..BbWw."});
  EXPECT_EQ(span_of(grid, 1, {}), 10);
  // F to 2, over to 3, F to 5, f to 7, over to 8, f to 10, B to 13, over to 14, B to 17, b to 20,
  // over to 21, b to 24, W and w to 32; rank 1 starts at 3.
  EXPECT_EQ(span_of(grid, 1, {.forward = 2, .backward = 3, .weight = 4, .transfer = 1}), 32);
}

TEST(VGrid, TheSpanOfALongerGridIsKnownBeforeItIsMade) {
  const Costs uneven{.forward = 1.1, .backward = 1.7, .weight = 0.3, .transfer = 0.2};
  int compared = 0;
  int given_up_often = 0;
  for (const std::size_t ranks : {2, 3, 5, 8}) {
    for (const PassSlots& first_rank : first_ranks()) {
      for (const Steps steps : {Steps{1, 1, 1}, Steps{3, 2, 1}, Steps{4, 4, 1}, Steps{5, 3, 2}}) {
        const auto block = block_of(first_rank, steps, ranks);
        if (!block) continue;
        const std::size_t m = 3 * ranks;
        const auto grid =
            reorder(first_slots(*block), m, static_cast<std::int64_t>(2 * ranks)).grid;
        if (!grid) continue;
        for (const std::size_t more : {0, 1, 7, 200}) {
          const auto longer = lengthen(*grid, more);
          const auto span = span_of_longer(*grid, m, more, uneven);
          ASSERT_EQ(longer.has_value(), span.has_value());
          if (!longer) continue;
          const double exact = span_of(*longer, m + more, uneven);
          ASSERT_NEAR(*span, exact, 1e-9 * exact) << ranks << " ranks, " << more << " more";
          ++compared;
          // What is not below is given up, if that is seen in time; what is below never is.
          for (const double share : {0.5, 0.9, 0.999, 1.001}) {
            const auto below = span_of_longer(*grid, m, more, uneven, share * exact);
            const bool given_up = std::isinf(*below);
            ASSERT_TRUE(given_up ? share < 1 : *below == *span) << share;
            given_up_often += given_up ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GE(compared, 300);
  EXPECT_GE(given_up_often, 200);
}

TEST(VGrid, WeightHalvesRunInTheOrderOfTheirBackwards) {
  EXPECT_EQ(order_laws::text(orders_of(grid_of({"Ff.BbwW"}))[0]), "F0.0 F0.1 B0.1 B0.0 W0.1 W0.0");
}

}  // namespace
}  // namespace capo::schedules
