// How many of the orders that TransformerEngine captures lose a weight gradient to its reuse of
// buffers: the published counts, by planning and judging every order of a size.
//
//   chunks x microbatches   captured   both operands aliased   grad output only   copies
//   1 x 4                         55                      33                  0        0
//   2 x 1                         20                      14                 12        0
//   2 x 2                      8,316                   7,914              7,424        0
//   3 x 1                      1,680                   1,578              1,512        0
//
// All chunks delay their weight gradients and have one layer of one signature. The counts were made
// with graph.py itself; those of 1 x 4, 2 x 1 and 3 x 1 and most of 2 x 2 were seen on an H200.

#include "core/frameworks/te/predict.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::PlannedStep;
using Order = std::vector<Entry>;

struct Row {
  std::int32_t chunks;
  std::int32_t microbatches;
  std::uint64_t captured;
  std::uint64_t both;      ///< a linear: both operands are shared buffers
  std::uint64_t gradient;  ///< only the gradient, behind a norm
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.chunks << "x" << row.microbatches;
}

bool te_captures(const Order& order, std::int32_t chunks) {
  TeList list;
  for (const Entry& entry : order) {
    const bool weight = entry.kind == Kind::BackwardWeight;
    const double value = entry.kind == Kind::Forward ? std::int32_t{entry.chunk}
                         : weight                    ? -entry.chunk - 0.5
                                                     : -entry.chunk;
    list.entries.push_back(
        {.value = value, .type = weight ? NumberType::Float : NumberType::Integer});
  }
  const std::vector<bool> delays(static_cast<std::size_t>(chunks), true);
  return te::predict(list, {}, delays, {.reuse = true})->accepts();
}

// Orders in which each chunk's k-th backward comes after its k-th forward, and its k-th weight
// gradient after that.
class Enumeration {
 public:
  Enumeration(std::int32_t chunks, std::int32_t microbatches,
              std::function<void(const Order&)> visit)
      : microbatches_(microbatches),
        visit_(std::move(visit)),
        done_(static_cast<std::size_t>(chunks), std::vector<std::int32_t>(3)) {}

  void run() {
    if (order_.size() == done_.size() * 3 * static_cast<std::size_t>(microbatches_)) {
      return visit_(order_);
    }
    constexpr Kind kKinds[] = {Kind::Forward, Kind::Backward, Kind::BackwardWeight};
    for (std::size_t chunk = 0; chunk < done_.size(); ++chunk) {
      for (std::size_t kind = 0; kind < 3; ++kind) {
        auto& done = done_[chunk];
        if (done[kind] == microbatches_ || (kind > 0 && done[kind] == done[kind - 1])) continue;
        order_.push_back({.chunk = static_cast<std::int32_t>(chunk) + 1,
                          .microbatch = done[kind]++,
                          .kind = kKinds[kind]});
        run();
        order_.pop_back();
        --done[kind];
      }
    }
  }

 private:
  std::int32_t microbatches_;
  std::function<void(const Order&)> visit_;
  std::vector<std::vector<std::int32_t>> done_;  // counted by chunk and kind
  Order order_;
};

Schedule schedule_of(const Order& order, std::int32_t chunks) {
  Schedule schedule;
  schedule.ranks.push_back({.order = order, .chunks = chunks, .chunks_declared = true});
  return schedule;
}

// Reuse switched off: nothing shares memory.
Plan without_reuse(const BufferTable& table) {
  Plan plan{.address = std::vector<std::int64_t>(table.size())};
  for (BufferId id = 0; id < table.size(); ++id) plan.address[id] = id;
  return plan;
}

class HazardousOrders : public ::testing::TestWithParam<Row> {};

TEST_P(HazardousOrders, AreAsManyAsPublished) {
  const Row& row = GetParam();
  std::uint64_t captured = 0;
  std::uint64_t both = 0;
  std::uint64_t gradient = 0;
  std::uint64_t copies = 0;
  std::uint64_t safe = 0;
  std::uint64_t off = 0;
  Enumeration(row.chunks, row.microbatches, [&](const Order& order) {
    if (!te_captures(order, row.chunks)) return;
    ++captured;
    const Schedule schedule = schedule_of(order, row.chunks);
    const auto aliased = [&](const Aliases& aliases) {
      const PlannedStep step(schedule, {}, {.aliases = aliases});
      safe += step.hazards(PlanKind::Safe).empty() ? 0 : 1;
      off += step.hazards(without_reuse(step.table())).empty() ? 0 : 1;
      return step.hazards(PlanKind::Te).empty() ? 0U : 1U;
    };
    both += aliased({.input = true, .grad_output = true});
    gradient += aliased({.grad_output = true});
    copies += aliased({});
  }).run();
  std::printf(
      "%dx%d: TE captures %lu; hazardous with both operands aliased %lu, with the gradient alone "
      "%lu, with copies %lu; under plan safe %lu, with reuse off %lu\n",
      row.chunks, row.microbatches, captured, both, gradient, copies, safe, off);
  EXPECT_EQ(captured, row.captured);
  EXPECT_EQ(both, row.both);
  EXPECT_EQ(gradient, row.gradient);
  EXPECT_EQ(copies, 0U);
  EXPECT_EQ(safe, 0U);
  EXPECT_EQ(off, 0U);
}

INSTANTIATE_TEST_SUITE_P(AllThatTeCaptures, HazardousOrders,
                         ::testing::Values(Row{1, 4, 55, 33, 0}, Row{2, 1, 20, 14, 12},
                                           Row{2, 2, 8'316, 7'914, 7'424},
                                           Row{3, 1, 1'680, 1'578, 1'512}),
                         [](const auto& row) {
                           return "Chunks" + std::to_string(row.param.chunks) + "Microbatches" +
                                  std::to_string(row.param.microbatches);
                         });

}  // namespace
}  // namespace capo
