// add_transfers() puts an order's transfers where PyTorch puts them.
//
//   0F0 | 1F0   ->   0F0 0SEND_F0 | 1RECV_F0 1F0
//
// An action that produces something for another rank is followed by its send, and the receive joins
// the other rank's list at the same moment; so one global order of all transfers exists, and the
// result finishes under every communicator layout. PyTorch sweeps over the ranks in ascending
// order, one action a rank and sweep; which receive stands where follows from that, and the lists
// here are the same. A rank that waits is not swept but woken, which takes one bit an action
// instead of one look an action and sweep. Tested by add_transfers_test.cpp against PyTorch's own
// lists.

#include "core/graph/lowered.h"

#include "core/base/index.h"
#include "core/graph/sweep.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {

namespace {

// The first and the last node of each forward and backward (see is_node()): its computation, or, if
// exchanges of tokens are written beside it, the first and the last of them all.
class NodeEnds {
 public:
  explicit NodeEnds(const Schedule& schedule) : schedule_(schedule) {
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      const auto& order = schedule.ranks[r].order;
      if (std::any_of(order.begin(), order.end(),
                      [](const Entry& entry) { return is_exchange(entry.kind); }))
        look_at(static_cast<std::int32_t>(r), order);
    }
  }

  [[nodiscard]] bool begins(RankId rank, std::uint32_t at) const {
    return is_end_of(begins_, rank, at);
  }
  [[nodiscard]] bool ends(RankId rank, std::uint32_t at) const {
    return is_end_of(ends_, rank, at);
  }

 private:
  // The ends by rank. A rank without exchanges is missing: each of its nodes begins and ends a
  // pass.
  using Ends = std::map<RankId, std::set<std::uint32_t>>;

  void look_at(RankId rank, const std::vector<Entry>& order) {
    std::map<std::tuple<ChunkId, MicrobatchId, bool>, std::pair<std::uint32_t, std::uint32_t>>
        passes;
    for (std::uint32_t at = 0; at < order.size(); ++at) {
      const Entry& entry = order[at];
      if (!is_node(entry.kind)) continue;
      const auto [found, first] =
          passes.try_emplace({entry.chunk, entry.microbatch, is_forward_node(entry.kind)}, at, at);
      if (!first) found->second.second = at;
    }
    for (const auto& [pass, ends] : passes) {
      begins_[rank].insert(ends.first);
      ends_[rank].insert(ends.second);
    }
  }

  [[nodiscard]] bool is_end_of(const Ends& all, RankId rank, std::uint32_t at) const {
    if (!is_node(schedule_.ranks[rank.index()].order[at].kind)) return false;
    const auto found = all.find(rank);
    return found == all.end() || found->second.contains(at);
  }

  const Schedule& schedule_;
  Ends begins_;
  Ends ends_;
};

class StepKeeper {
 public:
  explicit StepKeeper(const Schedule& schedule) : schedule_(schedule) {
    ranks.resize(schedule.ranks.size());
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
      ranks[r].reserve(schedule.ranks[r].order.size() * 3);
  }

  void acts(RankId rank, std::uint32_t first, std::uint32_t end) {
    const auto& order = schedule_.ranks[rank.index()].order;
    auto& steps = ranks[rank.index()];
    for (std::uint32_t i = first; i < end; ++i) {
      steps.push_back(to_step(order[i].action(), i, order[i].group));
    }
  }
  void hands_on(const HandedOn& tensor) {
    const Entry& maker = schedule_.ranks[tensor.from.index()].order[tensor.entry];
    ranks[tensor.from.index()].push_back(
        to_step({.kind = tensor.forward ? Kind::SendForward : Kind::SendBackward,
                 .chunk = maker.chunk,
                 .microbatch = tensor.microbatch},
                tensor.entry));
    // A receive is made for the entry that will read it, which stands further on in its order.
    ranks[tensor.to.index()].push_back(
        to_step({.kind = tensor.forward ? Kind::ReceiveForward : Kind::ReceiveBackward,
                 .chunk = tensor.reader,
                 .microbatch = tensor.microbatch},
                kNoEntry));
  }

  std::vector<std::vector<Step>> ranks;

 private:
  const Schedule& schedule_;
};

struct Nobody {
  void acts(RankId, std::uint32_t, std::uint32_t) const {}
  void hands_on(const HandedOn&) const {}
};

// The ranks that still have a turn in a sweep.
class Turns {
 public:
  explicit Turns(std::size_t ranks) : words_(ranks / kBits + 1) {}

  /// A rank that is added while turns are taken stands behind the one that took the last.
  void add(RankId rank) {
    words_[rank.index() / kBits] |= std::uint64_t{1} << (rank.index() % kBits);
  }
  /// The first of them, which has its turn now; nullopt if none is left, so that all begins anew.
  std::optional<RankId> take() {
    while (at_ < words_.size() && words_[at_] == 0) ++at_;
    if (at_ == words_.size()) {
      at_ = 0;
      return std::nullopt;
    }
    const auto bit = static_cast<std::size_t>(std::countr_zero(words_[at_]));
    words_[at_] &= words_[at_] - 1;
    return static_cast<std::int32_t>(at_ * kBits + bit);
  }

 private:
  static constexpr std::size_t kBits = 64;

  std::vector<std::uint64_t> words_;  // a bit for each rank
  std::size_t at_ = 0;                // words before it are empty
};

template <typename Listener>
class Sweeps {
 public:
  Sweeps(const Schedule& schedule, const StageMap& map, std::int32_t microbatches,
         Listener& listener)
      : schedule_(schedule),
        ends_(schedule),
        map_(map),
        listener_(listener),
        microbatches_(as_index(microbatches)),
        cursor_(schedule.ranks.size()),
        waits_for_(schedule.ranks.size(), kNothing),
        forward_done_(as_index(map.stages()) * microbatches_),
        backward_done_(forward_done_.size()),
        now_(schedule.ranks.size()),
        next_(schedule.ranks.size()) {
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) now_.add(static_cast<std::int32_t>(r));
  }

  // Whether every action found its place.
  bool run() {
    for (bool moved = true; moved; std::swap(now_, next_)) {
      moved = false;
      while (const auto rank = now_.take()) {
        visit(*rank);
        moved = true;
      }
    }
    for (std::size_t r = 0; r < cursor_.size(); ++r) {
      if (cursor_[r] < order_of(static_cast<std::int32_t>(r)).size()) return false;
    }
    return true;
  }

 private:
  // A key stands for the forward or the backward of a stage and microbatch, which a rank may wait
  // for.
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};
  std::uint64_t key(bool forward, StageId stage, MicrobatchId microbatch) const {
    const std::uint64_t cell = stage.index() * microbatches_ + microbatch.index();
    return cell * 2 + (forward ? 1 : 0);
  }

  const std::vector<Entry>& order_of(RankId rank) const {
    return schedule_.ranks[rank.index()].order;
  }

  // Forwards and backwards have a table each.
  bool done(std::uint64_t of) const {
    return of % 2 == 1 ? forward_done_[of / 2] : backward_done_[of / 2];
  }

  // Returns the key of the input that the entry needs and that is not there, or kNothing.
  std::uint64_t missing(RankId rank, std::uint32_t at) const {
    if (!ends_.begins(rank, at)) return kNothing;
    const Entry& entry = order_of(rank)[at];
    const bool forward = is_forward_node(entry.kind);
    const StageId stage = map_.stage_of(rank, entry.chunk);
    const StageId producer = map_.neighbour(entry.kind, stage);
    if (producer == kNoStage) return kNothing;
    const std::uint64_t needed = key(forward, producer, entry.microbatch);
    return done(needed) ? kNothing : needed;
  }

  // Moves a rank on by one action, or by all members of a composite. A rank that lacks an input
  // sleeps.
  void visit(RankId rank) {
    const std::vector<Entry>& order = order_of(rank);
    std::size_t& at = cursor_[rank.index()];
    while (at < order.size() && order[at].kind == Kind::Idle) ++at;
    if (at == order.size()) return;
    std::size_t end = at + 1;
    while (end < order.size() && order[end].group == Group::Continues) ++end;
    for (std::size_t i = at; i < end; ++i) {
      const std::uint64_t lacks = missing(rank, static_cast<std::uint32_t>(i));
      if (lacks == kNothing) continue;
      waits_for_[rank.index()] = lacks;
      return;
    }
    listener_.acts(rank, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end));
    for (std::size_t i = at; i < end; ++i) hand_on(rank, static_cast<std::uint32_t>(i));
    at = end;
    next_.add(rank);
  }

  void hand_on(RankId rank, std::uint32_t at) {
    if (!ends_.ends(rank, at)) return;
    const Entry& entry = order_of(rank)[at];
    const bool forward = is_forward_node(entry.kind);
    const StageId stage = map_.stage_of(rank, entry.chunk);
    auto& done = forward ? forward_done_ : backward_done_;
    done[key(forward, stage, entry.microbatch) / 2] = true;
    const StageId reader = forward ? map_.after(stage) : map_.before(stage);
    if (reader == kNoStage) return;
    const StageMap::Place& there = map_.home(reader);
    if (there.rank < 0) return;
    if (there.rank != rank) {
      listener_.hands_on({.from = rank,
                          .entry = at,
                          .to = there.rank,
                          .reader = there.chunk,
                          .microbatch = entry.microbatch,
                          .forward = forward});
    }
    wake(there.rank, rank, key(forward, stage, entry.microbatch));
  }

  // A rank behind the one that moved gets its turn in this sweep, one before it in the next.
  void wake(RankId sleeper, RankId mover, std::uint64_t with) {
    std::uint64_t& waits = waits_for_[sleeper.index()];
    if (waits != with) return;
    waits = kNothing;
    if (sleeper > mover) {
      now_.add(sleeper);
    } else {
      next_.add(sleeper);
    }
  }

  const Schedule& schedule_;
  NodeEnds ends_;
  const StageMap& map_;
  Listener& listener_;
  std::size_t microbatches_;
  std::vector<std::size_t> cursor_;
  std::vector<std::uint64_t> waits_for_;  // by rank; kNothing: the rank is awake or at its end
  std::vector<bool> forward_done_;
  std::vector<bool> backward_done_;
  Turns now_;
  Turns next_;
};

// Names the entry that each receive was made for. Receives were put in before their readers.
void name_readers(std::vector<std::vector<Step>>& ranks, const StageMap& map,
                  std::int32_t microbatches) {
  const auto cells = as_index(map.stages()) * as_index(microbatches);
  std::vector<std::uint32_t> reader(cells * 2, kNoEntry);
  const auto cell = [&](RankId rank, const Step& step, bool forward) -> std::uint32_t& {
    const auto stage = map.stage_of(rank, step.chunk).index();
    return reader[(stage * as_index(microbatches) + step.microbatch.index()) * 2 +
                  (forward ? 1 : 0)];
  };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    for (const Step& step : ranks[r]) {
      if (step.kind == Kind::Forward || is_backward(step.kind)) {
        cell(rank, step, step.kind == Kind::Forward) = step.entry;
      }
    }
    for (Step& step : ranks[r]) {
      if (is_receive(step.kind)) step.entry = cell(rank, step, step.kind == Kind::ReceiveForward);
    }
  }
}

}  // namespace

WithTransfers add_transfers(const Schedule& schedule, const StageMap& map,
                            std::int32_t microbatches) {
  StepKeeper keeper(schedule);
  const bool complete = Sweeps(schedule, map, microbatches, keeper).run();
  if (complete) name_readers(keeper.ranks, map, microbatches);
  WithTransfers result{.lowered = {}, .complete = complete};
  for (std::vector<Step>& steps : keeper.ranks) result.lowered.ranks.emplace_back(std::move(steps));
  return result;
}

bool can_add_transfers(const Schedule& schedule, const StageMap& map, std::int32_t microbatches) {
  Nobody nobody;
  return Sweeps(schedule, map, microbatches, nobody).run();
}

bool sweep(const Schedule& schedule, const StageMap& map, std::int32_t microbatches,
           SweepListener& listener) {
  return Sweeps(schedule, map, microbatches, listener).run();
}

}  // namespace capo
