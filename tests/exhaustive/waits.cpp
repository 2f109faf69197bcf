// All orders of two ranks that send to each other and wait for their sends, or for others.
//
//   rank 0: F send-F wait-send-F recv-B B          rank 1: recv-F F B send-B wait-send-B
//
// The orders without waits are those of pairs.cpp: all of one microbatch, and of two those that
// finish with one communicator for each rank. Waits are put into them in every way: two at most on
// each rank of one microbatch, one of two, each for any send of either direction, whether the rank
// has it or not. What comes out first, by rank and place, is one of
//   T09   a transfer or wait that waits, around some corner, for itself
//   T11   a wait for a send that its rank has not, or for one that is waited for before
//   T12   a send that nobody waits for, where any other is waited for
// A wait for what is not there ends nothing and closes no circle, so that it is T11's alone. Quick:
// one wait at most on each rank, and one microbatch.

#include "core/text/order_text.h"
#include "testing/oracle/transfers.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::exhaustive {

namespace {

struct Work {
  Kind kind;
  int microbatch;

  friend bool operator==(const Work&, const Work&) = default;
};
using Works = std::vector<Work>;

constexpr std::size_t kRanks = 2;
constexpr std::array kSends{Kind::SendForward, Kind::SendBackward};
constexpr std::array kWaits{Kind::WaitSendForward, Kind::WaitSendBackward};

bool is_one_of(const std::array<Kind, 2>& kinds, const Work& work) {
  return std::find(kinds.begin(), kinds.end(), work.kind) != kinds.end();
}

Work sent(const Work& wait) {
  return {wait.kind == kWaits[0] ? kSends[0] : kSends[1], wait.microbatch};
}

// Without waits. On the first rank the send needs the forward, and the backward both it and the
// receive.
std::vector<Works> plain_orders(std::size_t rank, int microbatches) {
  using enum Kind;
  const std::array<Kind, 4> kinds =
      rank == 0 ? std::array{Forward, SendForward, ReceiveBackward, Backward}
                : std::array{ReceiveForward, Forward, Backward, SendBackward};
  const Needs needs = rank == 0 ? Needs{{}, {0}, {}, {0, 2}} : Needs{{}, {0}, {1}, {2}};
  std::vector<Works> orders;
  Interleavings(needs, microbatches).for_each([&](const std::vector<std::size_t>& tokens) {
    std::array<int, 4> next{};
    Works order;
    for (const std::size_t token : tokens) order.push_back({kinds[token], next[token]++});
    orders.push_back(std::move(order));
    return true;
  });
  return orders;
}

// All orders that come of putting at most so many waits into one, each once.
std::vector<Works> with_waits(const Works& plain, int microbatches, int most) {
  std::vector<Works> all{plain};
  std::vector<std::size_t> from{0};  // the next wait of an order stands behind its last one
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (static_cast<int>(all[at].size() - plain.size()) == most) continue;
    for (std::size_t place = from[at]; place <= all[at].size(); ++place) {
      for (const Kind kind : kWaits) {
        for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
          Works longer = all[at];
          longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(place), {kind, microbatch});
          all.push_back(std::move(longer));
          from.push_back(place + 1);
        }
      }
    }
  }
  return all;
}

oracle::Operation::Kind operation_of(Kind kind) {
  using enum Kind;
  constexpr std::array kTable{
      std::pair{Forward, oracle::Operation::Forward},
      std::pair{Backward, oracle::Operation::Backward},
      std::pair{SendForward, oracle::Operation::SendForward},
      std::pair{ReceiveForward, oracle::Operation::ReceiveForward},
      std::pair{SendBackward, oracle::Operation::SendBackward},
      std::pair{ReceiveBackward, oracle::Operation::ReceiveBackward},
      std::pair{WaitSendForward, oracle::Operation::WaitSendForward},
      std::pair{WaitSendBackward, oracle::Operation::WaitSendBackward},
  };
  return std::find_if(kTable.begin(), kTable.end(),
                      [kind](const auto& row) { return row.first == kind; })
      ->second;
}

using Orders = std::array<Works, kRanks>;

oracle::Pipeline pipeline_of(const Orders& orders) {
  oracle::Pipeline pipeline{.ranks = {{}, {}}, .home = {0, 1}};
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (const Work& work : orders[rank]) {
      pipeline.ranks[rank].push_back({.kind = operation_of(work.kind),
                                      .stage = static_cast<int>(rank),
                                      .microbatch = work.microbatch});
    }
  }
  return pipeline;
}

Input input_of(const Orders& orders, int microbatches) {
  Input input{.form = Form::OrderFile,
              .schedule = {.naming = Naming::Named,
                           .topology = Topology::Chain,
                           .microbatches = microbatches,
                           .ranks = std::vector<RankOrder>(kRanks)}};
  std::uint32_t offset = 0;
  for (std::size_t r = 0; r < kRanks; ++r) {
    RankOrder& rank = input.schedule.ranks[r];
    rank.chunks = 1;
    rank.chunks_declared = true;
    rank.delay = {Delay::Never};
    for (const Work& work : orders[r]) {
      rank.order.push_back({.chunk = 1,
                            .microbatch = work.microbatch,
                            .offset = offset++,
                            .length = 1,
                            .kind = work.kind});
    }
  }
  place_stages(input.schedule);
  return input;
}

struct Declared {
  Communicators layout;
  oracle::Lines lines;
  TransferMode mode;
};

std::size_t first_place(const Works& order, const Work& work) {
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), work) - order.begin());
}

// Whether a wait has a send of its own: one of its rank, for which no wait stands before it.
bool is_served(const Works& order, std::size_t wait) {
  return first_place(order, sent(order[wait])) < order.size() &&
         first_place(order, order[wait]) == wait;
}

void take_first(Answer& first, std::string_view rule, std::size_t rank, std::size_t position) {
  const auto place = [](const Answer& answer) {
    return std::tuple(answer.accepted(), answer.rank, answer.position, answer.rule);
  };
  const Answer answer{
      .rule = rule, .rank = static_cast<int>(rank), .position = static_cast<int>(position)};
  if (place(answer) < place(first)) first = answer;
}

// Calls visit(rank, at) for each work of either rank that is one of these kinds.
template <typename Visit>
void for_each_of(const Orders& orders, const std::array<Kind, 2>& kinds, Visit visit) {
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t at = 0; at < orders[rank].size(); ++at) {
      if (is_one_of(kinds, orders[rank][at])) visit(rank, at);
    }
  }
}

Answer expected(const Orders& orders, const Declared& declared, const Answer& product) {
  oracle::Pipeline pipeline = pipeline_of(orders);
  pipeline.lines = declared.lines;
  pipeline.held = declared.mode == TransferMode::Buffered ? oracle::kHoldsAll : 0;
  Answer first = answer_of(oracle::in_circles(pipeline), product);
  bool any = false;
  for_each_of(orders, kWaits, [&](std::size_t rank, std::size_t at) {
    any = true;
    if (!is_served(orders[rank], at)) take_first(first, "T11", rank, at);
  });
  for_each_of(orders, kSends, [&](std::size_t rank, std::size_t at) {
    const Work& send = orders[rank][at];
    const bool waited = std::any_of(orders[rank].begin(), orders[rank].end(), [&](const Work& of) {
      return is_one_of(kWaits, of) && sent(of) == send;
    });
    if (any && !waited) take_first(first, "T12", rank, at);
  });
  return first;
}

struct Extent {
  int microbatches;
  int waits;  ///< on each rank, at most
};

bool compare(const Extent& size, const Declared& declared, const Options& options) {
  Comparison comparison(fmt::format("waits in pairs of {} microbatches, {}, {}", size.microbatches,
                                    name_of(declared.layout), name_of(declared.mode)),
                        options);
  Verdicts::Declared environment;
  environment.options.environment = {.communicators = declared.layout, .transfers = declared.mode};
  Judge judge(environment, options);
  const auto finish = [](const Orders& orders) {
    oracle::Pipeline pipeline = pipeline_of(orders);
    pipeline.lines = oracle::Lines::All;
    return oracle::finishes(pipeline);
  };
  for (const Works& first : plain_orders(0, size.microbatches)) {
    for (const Works& second : plain_orders(1, size.microbatches)) {
      if (size.microbatches > 1 && !finish({first, second})) continue;
      const std::vector<Works> of_second = with_waits(second, size.microbatches, size.waits);
      for (const Works& of_first : with_waits(first, size.microbatches, size.waits)) {
        for (const Works& other : of_second) {
          if (!comparison.mine()) continue;
          const Orders orders{of_first, other};
          const Input input = input_of(orders, size.microbatches);
          const Answer product = judge.of(input);
          comparison.compare(product, expected(orders, declared, product),
                             [&] { return print_order_file(input.schedule); });
          if (comparison.stopped()) return comparison.finish();
        }
      }
    }
  }
  return comparison.finish();
}

}  // namespace

bool waits(const Options& options) {
  using oracle::Lines;
  const bool quick = options.effort == Effort::Quick;
  bool agree = true;
  for (const auto& [layout, lines] :
       {std::pair{Communicators::PerRank, Lines::All},
        std::pair{Communicators::PerPair, Lines::OfThePair},
        std::pair{Communicators::PerEdge, Lines::OfThePairAndDirection}}) {
    for (const TransferMode mode : {TransferMode::Rendezvous, TransferMode::Buffered}) {
      const Declared declared{layout, lines, mode};
      agree = compare({.microbatches = 1, .waits = quick ? 1 : 2}, declared, options) && agree;
      if (!quick) agree = compare({.microbatches = 2, .waits = 1}, declared, options) && agree;
      if (!agree && options.stop_at_first) return false;
    }
  }
  return agree;
}

}  // namespace capo::exhaustive
