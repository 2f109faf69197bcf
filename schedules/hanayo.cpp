// Hanayo: a wave of the model through the ranks, down and back, w times over.
//
//   3 ranks, 4 chunks, two waves   rank 0: stages 0 5 6 11    rank 1: 1 4 7 10    rank 2: 2 3 8 9
//
// With v = 2w chunks a rank, chunk c is stage (c-1)p + rank where c is odd and stage
// (c-1)p + p-1-rank where it is even: at each turn the microbatch stays on its rank.
//
// The paper gives the placement and pictures of the order; the order here is list scheduling on the
// setting's costs, of each rank where they differ. Whenever a rank is free it starts, of what has
// arrived, a whole backward before a forward and an earlier microbatch before a later one, and it
// never waits by choice. The order depends on the costs, therefore, and a wait that would pay is
// never found.
//
// The paper's bubble ratio at m = p, backwards twice as long as forwards and free transfers is
// (2p-2) / (3pw+p-1). Measured for p up to 32 and w from 2 to 8, the ratio of this order is between
// 9.1 % less (p = 3, w = 2) and 6.9 % more (p = 28, w = 8) than that; with one wave it is 12 % to
// 20 % less. A rank holds at most p microbatches then. With m > p no bound is set, since forwards
// that are cheap run far ahead of backwards that are dear; the memory limit of the setting is not
// looked at.
//
// Liu et al., arXiv 2308.15762. Tested by hanayo_test.cpp.

#include "core/base/index.h"
#include "schedules/generators.h"
#include "schedules/setting_checks.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace capo::schedules {

namespace {

/// A microbatch's forward or whole backward in a stage. The smaller one is started first; two of
/// one kind and microbatch are never ready together.
struct Passage {
  enum class Way { Back, Forth };
  Way way = Way::Forth;
  std::int32_t microbatch = 0;
  std::int32_t stage = 0;

  friend auto operator<=>(const Passage&, const Passage&) = default;
};

template <typename T, typename Later = std::greater<T>>
using Earliest = std::priority_queue<T, std::vector<T>, Later>;

class ListScheduler {
 public:
  explicit ListScheduler(const Setting& setting)
      : setting_(setting), ranks_(as_index(setting.ranks)) {
    for (Rank& rank : ranks_) {
      rank.order.reserve(2 * as_index(setting.chunks) * as_index(setting.microbatches));
    }
  }

  PublishedOrders run() {
    arrive(0, {.way = Passage::Way::Forth, .microbatch = 0, .stage = 0});
    while (!events_.empty()) {
      const double now = events_.top().time;
      take_events(now);
      for (const std::int32_t rank : touched_) start_if_free(rank, now);
    }
    PublishedOrders orders;
    for (Rank& rank : ranks_) orders.push_back(std::move(rank.order));
    return orders;
  }

 private:
  struct Rank {
    Earliest<Passage> ready;
    double free_at = 0;
    std::vector<Move> order;
  };
  struct Event {
    double time = 0;
    std::int32_t rank = 0;
    std::optional<Passage> arrival;  ///< nullopt if the rank has become free
  };
  struct IsLater {
    bool operator()(const Event& a, const Event& b) const { return a.time > b.time; }
  };

  /// Lets everything happen that happens at `now`, before any task starts, and keeps the ranks that
  /// it happens to.
  void take_events(double now) {
    touched_.clear();
    for (; !events_.empty() && events_.top().time <= now; events_.pop()) {
      const Event& event = events_.top();
      if (event.arrival) at(event.rank).ready.push(*event.arrival);
      touched_.push_back(event.rank);
    }
  }

  void start_if_free(std::int32_t rank, double now) {
    Rank& here = at(rank);
    if (here.free_at > now || here.ready.empty()) return;
    const Passage task = here.ready.top();
    here.ready.pop();
    here.order.push_back(move_of(task));
    // All microbatches are there from the beginning, and the next one is behind this in the queue.
    if (is_first(task) && task.microbatch + 1 < setting_.microbatches) {
      here.ready.push({.way = task.way, .microbatch = task.microbatch + 1, .stage = task.stage});
    }
    here.free_at = now + duration(rank, task);
    events_.push({.time = here.free_at, .rank = rank});
    if (const auto next = successor(task)) {
      const bool stays = rank_of(next->stage) == rank;
      arrive(here.free_at + (stays ? 0 : setting_.transfer()), *next);
    }
  }

  static bool is_first(const Passage& task) {
    return task.way == Passage::Way::Forth && task.stage == 0;
  }

  void arrive(double time, const Passage& task) {
    events_.push({.time = time, .rank = rank_of(task.stage), .arrival = task});
  }

  [[nodiscard]] double duration(std::int32_t rank, const Passage& task) const {
    const Costs& costs = setting_.costs_of(rank);
    return task.way == Passage::Way::Forth ? costs.forward : costs.backward + costs.weight;
  }

  [[nodiscard]] std::optional<Passage> successor(Passage task) const {
    const std::int32_t last_stage = setting_.ranks * setting_.chunks - 1;
    if (task.way == Passage::Way::Back) {
      if (task.stage == 0) return std::nullopt;
      --task.stage;
    } else if (task.stage == last_stage) {
      task.way = Passage::Way::Back;
    } else {
      ++task.stage;
    }
    return task;
  }

  [[nodiscard]] std::int32_t rank_of(std::int32_t stage) const {
    const std::int32_t passed = stage % setting_.ranks;
    const bool downwards = stage / setting_.ranks % 2 == 0;
    return downwards ? passed : setting_.ranks - 1 - passed;
  }

  [[nodiscard]] Move move_of(const Passage& task) const {
    return {.kind = task.way == Passage::Way::Forth ? Kind::Forward : Kind::Backward,
            .chunk = task.stage / setting_.ranks + 1,
            .microbatch = task.microbatch};
  }

  Rank& at(std::int32_t rank) { return ranks_[RankId(rank).index()]; }

  const Setting& setting_;
  std::vector<Rank> ranks_;
  Earliest<Event, IsLater> events_;
  std::vector<std::int32_t> touched_;
};

std::optional<std::string> refuse_hanayo(const Setting& setting) {
  if (auto refusal = refuse_counts("hanayo", setting)) return refusal;
  if (setting.chunks % 2 != 0) {
    return fmt::format("hanayo holds two chunks a rank for every wave, not {}", setting.chunks);
  }
  return refuse_costs("hanayo", setting);
}

}  // namespace

Generated hanayo(const Setting& setting) {
  if (auto refusal = refuse_hanayo(setting)) return *std::move(refusal);
  return ListScheduler(setting).run();
}

}  // namespace capo::schedules
