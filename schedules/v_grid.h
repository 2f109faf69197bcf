// The passes that the ranks of a V run, slot by slot, and questions to them: how much memory they
// hold, how long they take, and which orders they stand for.
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

namespace capo::schedules {

/// The pass that every rank runs in every slot.
class VGrid {
 public:
  VGrid(std::size_t ranks, std::size_t slots)
      : ranks_(ranks), slots_(slots), cells_(ranks * slots, Pass::Nothing) {}

  [[nodiscard]] std::size_t ranks() const { return ranks_; }
  [[nodiscard]] std::size_t slots() const { return slots_; }

  /// Cells lie slot by slot in memory, since nearly every reader goes through them so.
  [[nodiscard]] Pass& at(std::size_t rank, std::size_t slot) {
    return cells_[slot * ranks_ + rank];
  }
  [[nodiscard]] Pass at(std::size_t rank, std::size_t slot) const {
    return cells_[slot * ranks_ + rank];
  }

  /// Whether `count` slots from `a` and from `b` on are equal on every rank.
  [[nodiscard]] bool are_equal(std::size_t a, std::size_t b, std::size_t count) const {
    return std::equal(begin_of(a), begin_of(a + count), begin_of(b));
  }

  /// Copies slots of `other` to the end of this grid.
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

/// Counts how often each pass has run.
using Counts = std::array<std::uint32_t, kPasses>;

/// A value for every task, and a border beyond the first and the last rank for inputs that come
/// from no other rank.
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

  /// The value of the task's input: the neighbour's task, or the backward for a weight half.
  [[nodiscard]] T input_of(std::size_t rank, Pass pass, std::uint32_t microbatch) const {
    if (is_weight(pass)) return values_[index(rank, local_input(pass), microbatch)];
    const std::size_t here = index(rank, pass, microbatch);
    return values_[goes_down(pass) ? here - 1 : here + 1];
  }

 private:
  [[nodiscard]] std::size_t index(std::size_t rank, Pass pass, std::uint32_t microbatch) const {
    return (microbatch * kPasses + as_index(pass)) * width_ + rank + 1;
  }

  std::size_t width_;
  std::vector<T> values_;
};

/// Holds the slots in which tasks end, counted so that 0 is before the first slot.
using SlotTable = TaskTable<std::uint32_t>;
inline constexpr std::uint32_t kNotYet = std::numeric_limits<std::uint32_t>::max();

/// Puts every task in the first slot after its input and the task before it on its rank; nullopt if
/// a task stands before its input, or beyond the microbatches.
[[nodiscard]] std::optional<VGrid> squeeze(const VGrid& grid, std::size_t microbatches);

/// The most chunks that each rank holds, and that any rank holds.
[[nodiscard]] std::vector<std::int64_t> peaks_of(const VGrid& grid);
[[nodiscard]] std::int64_t peak_of(const VGrid& grid);

/// Makes the grid longer by so many microbatches: a period of its steady middle is repeated. The
/// result is nullopt if it has no steady middle.
[[nodiscard]] std::optional<VGrid> lengthen(const VGrid& grid, std::size_t microbatches);

/// The longest time between any rank's first start and last end.
[[nodiscard]] double span_of(const VGrid& grid, std::size_t microbatches, const Costs& costs);

/// The span of the grid that lengthen() makes, without making it: what repeats itself is timed
/// until every rank is later by the same in each period. Equal to span_of() but for rounding, or
/// infinite if what is left to run is seen to end no sooner than `below`; nullopt if there is no
/// such grid.
[[nodiscard]] std::optional<double> span_of_longer(
    const VGrid& grid, std::size_t microbatches, std::size_t more, const Costs& costs,
    double below = std::numeric_limits<double>::infinity());

/// The orders of the grid. Weight halves follow the order of their backwards, whichever chunk the
/// grid names.
[[nodiscard]] PublishedOrders orders_of(const VGrid& grid);

}  // namespace capo::schedules
