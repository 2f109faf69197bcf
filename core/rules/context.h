// The context of a rule: the input, and each order of it counted once, so that no rule counts
// again.
//
// A rank's capture order and its replay order, where the two differ, are judged alike; both appear
// in orders(). Tallies are by chunk and cost one pass over the entries. Tested by context_test.cpp.

#pragma once

#include "core/diag/diagnostic.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capo {

/// How often each kind occurs for one chunk.
struct ChunkTally {
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  std::int32_t inputs = 0;  ///< split-off input halves, in mixed chunks
  std::int32_t weights = 0;

  [[nodiscard]] bool absent() const { return forwards + backwards + inputs + weights == 0; }

  /// Whether the k-th entry (from 0) of a kind would run before the entry that it needs. Counted
  /// microbatches are first in, first out: the k-th backward needs the k-th forward, the k-th
  /// weight gradient the k-th backward.
  [[nodiscard]] bool lacks_need_of(Kind kind, std::int32_t k) const {
    const std::int32_t made = kind == Kind::Backward ? forwards : backwards;
    return (kind == Kind::Backward || kind == Kind::BackwardWeight) && k >= made;
  }
  /// Whether the next entry of a kind would run before the entry that it needs.
  [[nodiscard]] bool lacks_need_of_next(Kind kind) const {
    return lacks_need_of(kind, kind == Kind::Backward ? backwards : weights);
  }
  void add(Kind kind) { change(kind, 1); }
  void take_back(Kind kind) { change(kind, -1); }

 private:
  void change(Kind kind, std::int32_t by) {
    forwards += kind == Kind::Forward ? by : 0;
    backwards += kind == Kind::Backward ? by : 0;
    inputs += kind == Kind::BackwardInput ? by : 0;
    weights += kind == Kind::BackwardWeight ? by : 0;
  }
};

/// One order of one rank, with its tallies; lives in the Context, views into its Input.
struct OrderView {
  std::int32_t rank = 0;
  bool replay = false;
  const RankOrder* holder = nullptr;
  std::span<const Entry> entries;
  std::vector<ChunkTally> tally;  ///< tally[c - 1] is chunk c's
  std::vector<Delay> delay;       ///< delay[c - 1] is chunk c's
  /// Positions of the entries that run ahead of what they need, or beside it in one composite;
  /// empty if microbatches are named.
  std::vector<std::uint32_t> ahead;
  /// Positions of the entries that no user counts, ascending: those that run together with the one
  /// before them, and those that the text does not have.
  std::vector<std::uint32_t> uncounted;
  /// Positions of compute entries by chunk, microbatch and position: made by the first
  /// for_each_microbatch() of this order, since several rules ask.
  mutable std::shared_ptr<const std::vector<std::uint32_t>> by_microbatch;

  /// Whether a step replays this order: that of capture, unless another one is given.
  [[nodiscard]] bool is_replayed() const { return replay == holder->replay.has_value(); }
  /// Whether the text does not have an entry: then it was put behind one that ends where it stands.
  /// A cell that is idle may be empty.
  [[nodiscard]] static bool is_added(const Entry& entry) {
    return entry.length == 0 && entry.offset > 0 && entry.kind != Kind::Idle;
  }
  [[nodiscard]] bool knows(std::int32_t chunk) const {
    return chunk >= 1 && chunk <= holder->chunks;
  }
  [[nodiscard]] const ChunkTally& of(std::int32_t chunk) const {
    return tally[ChunkId(chunk).index()];
  }
  [[nodiscard]] Delay delay_of(std::int32_t chunk) const { return delay[ChunkId(chunk).index()]; }
  /// The position of the k-th entry (from 0) of a kind and chunk; entries.size() if there is none.
  [[nodiscard]] std::size_t find(Kind kind, std::int32_t chunk, std::int32_t k) const;
  /// The position of the last entry of a kind and chunk; entries.size() if there is none.
  [[nodiscard]] std::size_t find_last(Kind kind, std::int32_t chunk) const;
};

/// The compute entries of one microbatch of one chunk, in the order in which they run.
struct MicrobatchView {
  std::int32_t chunk;
  std::int32_t microbatch;
  std::span<const std::uint32_t> positions;
};

class PlanView;
struct Plan;
class Wiring;

/// A Context belongs to one thread: const calls of wirings(), plan_view() and
/// for_each_microbatch() make what they return when they are first asked for.
class Context {
 public:
  /// Input and options outlive the context.
  Context(const Input& input, const CheckOptions& options);
  /// The input of `like` under options that differ in the environment alone; what does not depend
  /// on that is shared. `like` outlives the context.
  Context(const Context& like, const CheckOptions& options);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  /// Counts the entries of an input that has changed, in the memory of those before.
  void look_again();
  /// Frees what wirings() and plan_view() have made, which makes what they returned invalid, and
  /// the positions that for_each_microbatch() has sorted.
  void forget_graphs();

  [[nodiscard]] const Input& input() const { return input_; }
  [[nodiscard]] const CheckOptions& options() const { return options_; }
  /// The module of a layer, counted from 0 in its chunk; null where undeclared.
  [[nodiscard]] const Module* module_of(std::int32_t rank, std::int32_t chunk,
                                        std::int32_t layer = 0) const {
    return options_.modules.of(rank, chunk, layer);
  }
  [[nodiscard]] const Schedule& schedule() const { return input_.schedule; }
  [[nodiscard]] const std::vector<OrderView>& orders() const { return orders_; }
  [[nodiscard]] bool counted() const { return schedule().naming == Naming::Counted; }

  /// Microbatches of the step: as declared. If undeclared, the number of forwards that most chunks
  /// have if they are counted, and the largest plus one if they are named.
  [[nodiscard]] std::int32_t microbatches() const { return microbatches_; }

  /// All ranks' orders wired together: the captured ones, and the replayed ones if they differ.
  /// Empty without ranks. The first call costs one pass over the placement.
  [[nodiscard]] const std::vector<std::unique_ptr<Wiring>>& wirings() const;
  /// The view of a rank's order in a wiring.
  [[nodiscard]] const OrderView& order_of(const Wiring& wiring, std::int32_t rank) const;
  /// Whether the wiring is of replayed orders and none of `ranks` has a replay order of its own:
  /// captured orders are judged first, so that what concerns only those ranks has been said.
  [[nodiscard]] bool judged_before(const Wiring& wiring,
                                   const std::vector<std::int32_t>& ranks) const;

  /// Whether there is a plan to look at.
  [[nodiscard]] bool plan_wanted() const;
  /// The plan, which is wanted, and its hazards. Only rules of the pass Buffers may ask. The first
  /// call plans and judges the whole step, the most expensive part of a check.
  [[nodiscard]] const PlanView& plan_view() const;

  /// Whether rules that look at orders and their placement alone are known to find nothing, since
  /// they found nothing in the context that this one is like.
  [[nodiscard]] bool orders_known_clean() const { return like_ != nullptr && like_->clean_orders_; }
  /// Notes that they found nothing here.
  void note_clean_orders() const { clean_orders_ = true; }

  /// Calls `visit` for every microbatch of every chunk that occurs, by chunk and microbatch.
  static void for_each_microbatch(const OrderView& order,
                                  const std::function<void(const MicrobatchView&)>& visit);

 private:
  [[nodiscard]] std::int32_t usual_count();

  const Input& input_;
  const CheckOptions& options_;
  const Context* like_ = nullptr;  // null: nothing is shared
  std::vector<OrderView> orders_;
  std::int32_t microbatches_ = 0;
  std::vector<std::int32_t> forwards_;  // of each chunk, sorted: kept for their memory
  std::vector<std::int32_t> backwards_;
  mutable std::vector<std::unique_ptr<Wiring>> wirings_;
  mutable std::unique_ptr<PlanView> plan_view_;
  mutable bool clean_orders_ = false;
  std::shared_ptr<const Plan> te_plan_;  // of a plan view that is forgotten, for who is like this
};

}  // namespace capo
