// What the ranks of a V do, slot by slot, and what can be asked of that: how much it holds, how
// long it takes, and which orders it stands for.
//
//   slot     0  1  2  3  4  5  6  7  8 ...
//   rank 0   F1 F1 .. F2 B2 W2 F2 B1 W1         the k-th of a pass is that of microbatch k
//   rank 1   .. F1 F2 F1 F2 B2 B1 W2 W1
//
// All slots are of equal length; costs come in only with span_of. A grid may be anything: squeeze
// says whether its tasks can run in their order at all. Tested by v_grid_test.cpp.

#pragma once

#include "schedules/v_pass.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace capo::published {

/// What every rank does in every slot.
class VGrid {
 public:
  VGrid(std::size_t ranks, std::size_t slots)
      : ranks_(ranks), slots_(slots), cells_(ranks * slots, Pass::Nothing) {}

  [[nodiscard]] std::size_t ranks() const { return ranks_; }
  [[nodiscard]] std::size_t slots() const { return slots_; }

  /// Slot by slot in memory: that is how nearly everything looks at it.
  [[nodiscard]] Pass& at(std::size_t rank, std::size_t slot) {
    return cells_[slot * ranks_ + rank];
  }
  [[nodiscard]] Pass at(std::size_t rank, std::size_t slot) const {
    return cells_[slot * ranks_ + rank];
  }

  /// Whether the slots from `a` on are those from `b` on, on every rank.
  [[nodiscard]] bool are_equal(std::size_t a, std::size_t b, std::size_t count) const {
    return std::equal(begin_of(a), begin_of(a + count), begin_of(b));
  }

  /// Copies slots of `other`, and puts them after those that are here.
  void append(const VGrid& other, std::size_t from, std::size_t count) {
    cells_.insert(cells_.end(), other.begin_of(from), other.begin_of(from + count));
    slots_ += count;
  }

  void resize(std::size_t slots) {
    slots_ = slots;
    cells_.resize(ranks_ * slots, Pass::Nothing);
  }

 private:
  [[nodiscard]] std::vector<Pass>::const_iterator begin_of(std::size_t slot) const {
    return cells_.begin() + static_cast<std::ptrdiff_t>(slot * ranks_);
  }

  std::size_t ranks_;
  std::size_t slots_;
  std::vector<Pass> cells_;
};

/// How often each pass has run.
using Counts = std::array<std::uint32_t, kPasses>;

/// A value for every task, and a border beyond the first and the last rank for what comes from no
/// other rank.
template <typename T>
class TaskTable {
 public:
  TaskTable(std::size_t ranks, std::size_t microbatches, T unknown, T border)
      : width_(ranks + 2), values_(width_ * kPasses * microbatches, unknown) {
    for (std::size_t row = 0; row < values_.size(); row += width_) {
      values_[row] = border;
      values_[row + width_ - 1] = border;
    }
  }

  [[nodiscard]] T& at(std::size_t rank, Pass pass, std::uint32_t microbatch) {
    return values_[index(rank, pass, microbatch)];
  }

  /// The neighbour's, or the backward's for a weight half.
  [[nodiscard]] T input_of(std::size_t rank, Pass pass, std::uint32_t microbatch) const {
    if (is_weight(pass)) return values_[index(rank, local_input(pass), microbatch)];
    const std::size_t here = index(rank, pass, microbatch);
    return values_[goes_down(pass) ? here - 1 : here + 1];
  }

 private:
  [[nodiscard]] std::size_t index(std::size_t rank, Pass pass, std::uint32_t microbatch) const {
    return (microbatch * kPasses + index_of(pass)) * width_ + rank + 1;
  }

  std::size_t width_;
  std::vector<T> values_;
};

/// Ends of tasks in slots, counted so that 0 is before the first slot.
using SlotTable = TaskTable<std::uint32_t>;
inline constexpr std::uint32_t kNotYet = std::numeric_limits<std::uint32_t>::max();

/// Every task in the first slot after its input and the task before it on its rank. Nothing if one
/// stands before its input, or beyond the microbatches.
[[nodiscard]] std::optional<VGrid> squeeze(const VGrid& grid, std::size_t microbatches);

/// The most chunks that each rank holds, and that any does.
[[nodiscard]] std::vector<std::int64_t> peaks_of(const VGrid& grid);
[[nodiscard]] std::int64_t peak_of(const VGrid& grid);

/// The grid of so many microbatches more: a period of its steady middle, repeated. Nothing where it
/// has no such middle.
[[nodiscard]] std::optional<VGrid> lengthen(const VGrid& grid, std::size_t microbatches);

/// The time from a rank's first start to its last end, of the rank where that is longest.
[[nodiscard]] double span_of(const VGrid& grid, std::size_t microbatches, const Costs& costs);

/// Weight halves in the order of their backwards, whichever chunk's the grid names.
[[nodiscard]] PublishedOrders orders_of(const VGrid& grid);

}  // namespace capo::published
