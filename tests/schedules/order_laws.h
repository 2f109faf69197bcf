// The laws that the tests of published schedules ask of any order, whichever generator made it:
// every task is there once, every rank's own sequence makes sense, and all ranks together can
// finish.
//
// An oracle as simple as it can be: it replays the orders task by task, each as early as possible,
// without capo's graph or simulator.

#pragma once

#include "schedules/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace capo::schedules::order_laws {

/// The pipeline and the stage that a rank's chunk belongs to.
struct Where {
  std::int32_t pipeline = 0;
  std::int32_t stage = 0;
};

struct Layout {
  std::int32_t stages = 1;        ///< stages of one pipeline
  std::int32_t microbatches = 1;  ///< microbatches of one pipeline
  std::int32_t chunks = 1;        ///< chunks of one rank
  std::function<Where(std::int32_t rank, std::int32_t chunk)> where;
};

/// Chunk c of a rank is stage (c-1)p + rank; with one chunk every rank is a stage.
inline Layout loop(const Setting& setting) {
  return {.stages = setting.ranks * setting.chunks,
          .microbatches = setting.microbatches,
          .chunks = setting.chunks,
          .where = [p = setting.ranks](std::int32_t rank, std::int32_t chunk) {
            return Where{.stage = (chunk - 1) * p + rank};
          }};
}

/// Odd chunks lead down, even ones lead back.
inline Layout wave(const Setting& setting) {
  Layout layout = loop(setting);
  layout.where = [p = setting.ranks](std::int32_t rank, std::int32_t chunk) {
    return Where{.stage = (chunk - 1) * p + (chunk % 2 == 1 ? rank : p - 1 - rank)};
  };
  return layout;
}

/// Each chunk is a pipeline, the second the other way round.
inline Layout opposite(const Setting& setting) {
  return {.stages = setting.ranks,
          .microbatches = setting.microbatches / 2,
          .chunks = 2,
          .where = [p = setting.ranks](std::int32_t rank, std::int32_t chunk) {
            return Where{.pipeline = chunk - 1, .stage = chunk == 1 ? rank : p - 1 - rank};
          }};
}

inline const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return "F";
    case Kind::Backward:
      return "BW";
    case Kind::BackwardInput:
      return "B";
    case Kind::BackwardWeight:
      return "W";
    default:
      return "?";
  }
}

/// Prints an order as the papers' authors do: BW is a whole backward, B and W are its halves,
/// chunks count from 0, `&` joins tasks that run together.
inline std::string text(const std::vector<Move>& order) {
  std::string line;
  for (const Move& move : order) {
    if (!line.empty()) line += move.joins ? '&' : ' ';
    line += fmt::format("{}{}.{}", name_of(move.kind), move.microbatch, move.chunk - 1);
  }
  return line;
}

inline std::vector<std::string> text(const PublishedOrders& orders) {
  std::vector<std::string> lines;
  for (const auto& order : orders) lines.push_back(text(order));
  return lines;
}

/// The most forwards of each rank whose backward, weight half included, is still to come.
inline std::vector<std::int64_t> most_held(const PublishedOrders& orders) {
  std::vector<std::int64_t> most;
  for (const auto& order : orders) {
    std::int64_t held = 0;
    most.push_back(0);
    for (const Move& move : order) {
      if (move.kind == Kind::Forward) most.back() = std::max(most.back(), ++held);
      if (move.kind == Kind::Backward || move.kind == Kind::BackwardWeight) --held;
    }
  }
  return most;
}

namespace replay {

using Ends = std::map<std::tuple<bool, std::int32_t, std::int32_t, std::int32_t>, double>;

/// The time at which the input of `move` has arrived; nullopt while it has not been run. A weight
/// half needs only what its rank has done already.
inline std::optional<double> arrival(const Move& move, std::int32_t rank, const Layout& layout,
                                     const Ends& ends) {
  const auto [pipeline, stage] = layout.where(rank, move.chunk);
  const auto end_of = [&, from = pipeline](bool forward, std::int32_t at) -> std::optional<double> {
    const auto found = ends.find({forward, from, at, move.microbatch});
    if (found == ends.end()) return std::nullopt;
    return found->second;
  };
  if (move.kind == Kind::BackwardWeight) return 0;
  if (move.kind == Kind::Forward) return stage == 0 ? 0 : end_of(true, stage - 1);
  return stage == layout.stages - 1 ? end_of(true, stage) : end_of(false, stage + 1);
}

inline double duration(const Move& move, const Costs& costs) {
  switch (move.kind) {
    case Kind::Forward:
      return costs.forward;
    case Kind::BackwardInput:
      return costs.backward;
    case Kind::BackwardWeight:
      return costs.weight;
    default:
      return costs.backward + costs.weight;
  }
}

}  // namespace replay

/// The end of the last task where transfers are free; infinite if the ranks wait for each other for
/// ever. What runs together starts together and takes as long as one after the other.
inline double makespan(const PublishedOrders& orders, const Layout& layout,
                       const Costs& costs = {}) {
  replay::Ends ends;
  std::vector<std::size_t> done(orders.size(), 0);
  std::vector<double> clock(orders.size(), 0);
  const auto run_next = [&](std::size_t r) {
    const auto rank = static_cast<std::int32_t>(r);
    const auto& order = orders[r];
    std::size_t end = done[r] + 1;
    while (end < order.size() && order[end].joins) ++end;
    double start = clock[r];
    double length = 0;
    for (std::size_t i = done[r]; i < end; ++i) {
      const auto arrived = replay::arrival(order[i], rank, layout, ends);
      if (!arrived) return false;
      start = std::max(start, *arrived);
      length += replay::duration(order[i], costs);
    }
    for (; done[r] < end; ++done[r]) {
      const Move& move = order[done[r]];
      if (move.kind == Kind::BackwardWeight) continue;
      const auto [pipeline, stage] = layout.where(rank, move.chunk);
      ends[{move.kind == Kind::Forward, pipeline, stage, move.microbatch}] = start + length;
    }
    clock[r] = start + length;
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      while (done[r] < orders[r].size() && run_next(r)) moved = true;
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r) {
    if (done[r] < orders[r].size()) return std::numeric_limits<double>::infinity();
  }
  return *std::max_element(clock.begin(), clock.end());
}

/// The first fault of a rank's order, if it has one: for each chunk and microbatch there must be a
/// forward, and after it either a whole backward or an input half and after that a weight half.
inline std::optional<std::string> fault(const std::vector<Move>& order, const Layout& layout) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::string> seen;
  for (const Move& move : order) {
    if (move.chunk < 1 || move.chunk > layout.chunks) return "no chunk " + text({move});
    if (move.microbatch < 0 || move.microbatch >= layout.microbatches) {
      return "no microbatch " + text({move});
    }
    std::string& done = seen[{move.chunk, move.microbatch}];
    const std::string next = done + name_of(move.kind);
    if (next != "F" && next != "FB" && next != "FBW")
      return text({move}) + " after " + (done.empty() ? "nothing" : done);
    done = next;
  }
  const auto all =
      static_cast<std::size_t>(layout.chunks) * static_cast<std::size_t>(layout.microbatches);
  if (seen.size() != all) return fmt::format("{} of {} microbatches", seen.size(), all);
  for (const auto& [key, done] : seen) {
    if (done != "FBW")
      return fmt::format("chunk {}, microbatch {}: {}", key.first, key.second, done);
  }
  return std::nullopt;
}

/// The first law that the orders break, if they break one.
inline std::optional<std::string> broken_law(const PublishedOrders& orders, const Layout& layout) {
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    if (auto found = fault(orders[rank], layout)) return fmt::format("rank {}: {}", rank, *found);
  }
  if (makespan(orders, layout) == std::numeric_limits<double>::infinity()) return "deadlock";
  return std::nullopt;
}

}  // namespace capo::schedules::order_laws
