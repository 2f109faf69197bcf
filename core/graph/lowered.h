// A schedule with its transfers in place: the steps that each rank issues, in order.
//
//   F of stage 0   ->   rank 0: F1.0 send-F1.0        rank 1: recv-F1.0 F1.0
//
// Three sources give one: a table that holds its transfers (as_written), PyTorch's rule for a table
// that does not (add_transfers), Megatron's calls (frameworks/megatron/calls.h). The task graph
// is built from it, and it can be turned back into a schedule and printed.

#pragma once

#include "core/graph/stage_map.h"
#include "core/order/ids.h"
#include "core/order/schedule.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace capo {

constexpr std::uint32_t kNoEntry = 0xffffffff;

/// The computations that wait for a transfer on the rank that issues it. A reader of a received
/// tensor always does.
enum class Wait : std::uint8_t {
  ByReader,  ///< only its reader
  AtOnce,    ///< every computation after it
  AtNext,    ///< every computation after the next transfer of its kind
};

/// The part of a layer that a computation is, if layers are taken apart.
enum class Part : std::uint8_t {
  Whole,        ///< a chunk's computation in one piece
  PreDispatch,  ///< attention, norm, router and the preparation of the dispatch
  Experts,
  PostProcess,  ///< the end of multi-token prediction
};

/// An action as a rank issues it, before it becomes a task of the graph. What needs a few bits
/// takes no more, since steps are as many as entries and transfers.
struct Step {
  ChunkId chunk;
  MicrobatchId microbatch = kNoMicrobatch;
  /// The position in the rank's order of the entry that the step is, or was made for.
  std::uint32_t entry = kNoEntry;
  Kind kind : 5 = Kind::Idle;
  Wait wait : 2 = Wait::ByReader;
  std::uint8_t communicator : 1 = 0;  ///< 1: the second one, from odd to even ranks
  Group group : 2 = Group::Alone;     ///< a composite of computations or a fused group of transfers
  Part part : 2 = Part::Whole;
  std::uint8_t slot : 4 = 0;  ///< the slot of Megatron's EP overlap, from 1; 0: it overlaps nothing
  std::uint16_t layer = 0;    ///< the layer in its chunk, from 0; 0 if layers are not taken apart
};
static_assert(static_cast<unsigned>(Kind::Idle) < 32, "a step's kind has five bits");

/// The step that an action becomes which stands at `entry`, or is made for the entry there.
[[nodiscard]] inline Step to_step(const Action& action, std::uint32_t entry,
                                  Group group = Group::Alone) {
  Step step{.chunk = action.chunk, .microbatch = action.microbatch, .entry = entry};
  step.kind = action.kind;
  step.group = group;
  return step;
}

/// Goes over a list that makes its elements when it is asked for them.
template <typename List, typename Element>
class MadeIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Element;
  using difference_type = std::ptrdiff_t;
  using pointer = const Element*;
  using reference = Element;

  MadeIterator(const List& list, std::size_t at) : list_(&list), at_(at) {}

  [[gnu::always_inline]] Element operator*() const { return (*list_)[at_]; }
  MadeIterator& operator++() {
    ++at_;
    return *this;
  }
  MadeIterator operator++(int) { return {*list_, at_++}; }
  bool operator==(const MadeIterator& other) const { return at_ == other.at_; }

 private:
  const List* list_;
  std::size_t at_;
};

/// The steps of a rank: a list of their own, or the entries of an order as they stand, which are
/// not copied and outlive it. A step is made when it is asked for, as tasks are (task_graph.h).
class StepList {
 public:
  using Iterator = MadeIterator<StepList, Step>;

  StepList() = default;
  explicit StepList(std::vector<Step> steps) : own_(std::move(steps)) {}
  /// Precondition: no entry is an idle slot.
  explicit StepList(std::span<const Entry> written) : written_(written) {}

  [[nodiscard]] std::size_t size() const {
    return written_.empty() ? own_.size() : written_.size();
  }
  [[nodiscard, gnu::always_inline]] Step operator[](std::size_t at) const {
    if (written_.empty()) return own_[at];
    return to_step(written_[at].action(), static_cast<std::uint32_t>(at), written_[at].group);
  }
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }

 private:
  std::vector<Step> own_;
  std::span<const Entry> written_;  // empty: the steps are own_
};

struct Lowered {
  std::vector<StepList> ranks;
};

/// The kind of the other end of a transfer.
constexpr Kind other_end(Kind transfer) {
  switch (transfer) {
    case Kind::SendForward:
      return Kind::ReceiveForward;
    case Kind::ReceiveForward:
      return Kind::SendForward;
    case Kind::SendBackward:
      return Kind::ReceiveBackward;
    default:
      return Kind::SendBackward;
  }
}
/// Whether the kind is a backward that hands an input gradient on, which a W does not.
constexpr bool is_backward(Kind kind) {
  return kind == Kind::Backward || kind == Kind::BackwardInput;
}

/// The nodes of a forward or backward are its computation and the exchanges of tokens of the same
/// microbatch: the pass begins at its first node, which reads its input, and ends at its last.
constexpr bool is_forward_node(Kind kind) {
  return kind == Kind::Forward || is_forward_exchange(kind);
}
constexpr bool is_backward_node(Kind kind) {
  return is_backward(kind) || kind == Kind::DispatchBackward || kind == Kind::CombineBackward;
}
constexpr bool is_node(Kind kind) {
  return is_forward_node(kind) || is_backward_node(kind);
}

/// The steps of the entries as they stand, without idle slots. The schedule outlives them.
[[nodiscard]] Lowered as_written(const Schedule& schedule);
Lowered as_written(const Schedule&&) = delete;

struct WithTransfers {
  Lowered lowered;
  bool complete = false;  ///< every action found its place
};

/// Adds transfers to an order that does not write them, as PyTorch does. If no rank can move, the
/// schedule has a cycle: the steps that did come out are kept, and the rules about dependencies
/// find it. Precondition: every entry names a chunk and, if its kind has one, a microbatch below
/// `microbatches`.
[[nodiscard]] WithTransfers add_transfers(const Schedule& schedule, const StageMap& map,
                                          std::int32_t microbatches);

/// Whether add_transfers() would be complete. It keeps no step, so that an action takes two bits of
/// memory and not sixty bytes.
[[nodiscard]] bool can_add_transfers(const Schedule& schedule, const StageMap& map,
                                     std::int32_t microbatches);

/// Whether the step at `at` of a rank belongs to a fused group that holds both sends and receives.
[[nodiscard]] bool in_mixed_group(const StepList& steps, std::uint32_t at);

/// Whether any order of capture holds a transfer.
[[nodiscard]] bool has_transfers(const Schedule& schedule);

/// The lowered orders as a schedule of named microbatches, for printing. Spans are those of the
/// entries that the steps were made for.
[[nodiscard]] Schedule to_schedule(const Lowered& lowered, const Schedule& of);

}  // namespace capo
