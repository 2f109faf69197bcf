// All orders of two ranks that hold one stage each and send to each other.
//
//   rank 0: F send-F recv-B B          rank 1: recv-F F B send-B
//
// On each rank the k-th of a kind is microbatch k, what is sent is made before and what is read is
// received before; all else is free. So rank 0 has 5 orders of one microbatch and 214 of two, rank
// 1 has 1 and 14, and of the 2,996 pairs of two 62 finish under rendezvous and 66 where sends are
// buffered. In every layout of communicators the oracle executes each pair: first the computations
// alone, which can wait for each other whatever the transfers do (D04, at the first computation
// that never runs), then with the transfers (T09, at one that waits for itself). If the
// layout, the kind of send or both are not declared, it executes each pair under every value that
// is left, and the first of all that it finds counts. With a parent beside the communicators of
// pairs each pair is executed with its transfers fused in every way: 16,639 of one and two
// microbatches, and a message whose ends are on two communicators is T13. Where communicators are
// made at their first use, the first transfer whose communicator never is there is T14: of the 764
// pairs of two microbatches that finish with one for each direction 512 hang then. Quick: as
// every run; long: the 7,714,938 pairs of three microbatches, with one communicator for each rank.

#include "core/text/order_text.h"
#include "testing/oracle/transfers.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

namespace capo::exhaustive {

namespace {

using Order = std::vector<std::size_t>;

// Tokens of a rank, in the order of one microbatch that finishes.
constexpr std::array<std::array<Kind, 4>, 2> kKinds{{
    {Kind::Forward, Kind::SendForward, Kind::ReceiveBackward, Kind::Backward},
    {Kind::ReceiveForward, Kind::Forward, Kind::Backward, Kind::SendBackward},
}};
constexpr std::array<std::array<oracle::Operation::Kind, 4>, 2> kOperations{{
    {oracle::Operation::Forward, oracle::Operation::SendForward, oracle::Operation::ReceiveBackward,
     oracle::Operation::Backward},
    {oracle::Operation::ReceiveForward, oracle::Operation::Forward, oracle::Operation::Backward,
     oracle::Operation::SendBackward},
}};

std::vector<Order> local_orders(std::size_t rank, int microbatches) {
  // On the first rank the send needs the forward, and the backward needs both the forward and the
  // receive.
  const Needs needs = rank == 0 ? Needs{{}, {0}, {}, {0, 2}} : Needs{{}, {0}, {1}, {2}};
  std::vector<Order> orders;
  Interleavings(needs, microbatches).for_each([&](const Order& order) {
    orders.push_back(order);
    return true;
  });
  return orders;
}

// Calls visit(token, microbatch) for the entries of an order.
template <typename Visit>
void for_each_entry(const Order& order, Visit visit) {
  std::array<int, 4> next{};
  for (const std::size_t token : order) visit(token, next[token]++);
}

class TwoRanks {
 public:
  explicit TwoRanks(int microbatches) {
    input.form = Form::OrderFile;
    input.schedule = {.naming = Naming::Named,
                      .topology = Topology::Chain,
                      .microbatches = microbatches,
                      .ranks = std::vector<RankOrder>(2)};
    for (RankOrder& rank : input.schedule.ranks) {
      rank.chunks = 1;
      rank.chunks_declared = true;
      rank.delay = {Delay::Never};
    }
    place_stages(input.schedule);
    pipeline.ranks.resize(2);
    pipeline.home = {0, 1};
  }

  // `fused`: bit k joins the k-th transfer that stands behind another one to that.
  void take(std::size_t rank, const Order& order, unsigned fused = 0) {
    auto& entries = input.schedule.ranks[rank].order;
    auto& operations = pipeline.ranks[rank];
    entries.clear();
    operations.clear();
    for_each_entry(order, [&](std::size_t token, int microbatch) {
      const auto before = rank == 0 ? 0 : input.schedule.ranks[0].order.size();
      const Kind kind = kKinds[rank][token];
      bool joined = false;
      if (is_transfer(kind) && !entries.empty() && is_transfer(entries.back().kind)) {
        joined = fused % 2 == 1;
        fused /= 2;
      }
      if (joined && entries.back().group == Group::Alone) entries.back().group = Group::Opens;
      entries.push_back({.chunk = 1,
                         .microbatch = microbatch,
                         .offset = static_cast<std::uint32_t>(before + entries.size()),
                         .length = 1,
                         .kind = kind,
                         .group = joined ? Group::Continues : Group::Alone});
      operations.push_back({.kind = kOperations[rank][token],
                            .stage = static_cast<int>(rank),
                            .microbatch = microbatch,
                            .joined = joined});
    });
  }

  // In how many ways transfers of a rank that stand side by side can be fused.
  [[nodiscard]] unsigned ways_to_fuse(std::size_t rank) const {
    const auto& entries = input.schedule.ranks[rank].order;
    unsigned ways = 1;
    for (std::size_t at = 1; at < entries.size(); ++at) {
      if (is_transfer(entries[at - 1].kind) && is_transfer(entries[at].kind)) ways *= 2;
    }
    return ways;
  }

  Input input;
  oracle::Pipeline pipeline;
};

// The declarations about transfers.
struct Transfers {
  std::optional<Communicators> communicators;
  std::optional<TransferMode> mode;
  std::optional<int> held = {};  ///< messages in a channel, if sends are buffered
  CommInit init = CommInit::Eager;
};

// What an undeclared layout may be.
constexpr std::array kLayouts{Communicators::PerRank, Communicators::PerPair,
                              Communicators::PerEdge};
constexpr std::array kModes{TransferMode::Rendezvous, TransferMode::Buffered};

oracle::Lines lines_of(Communicators layout) {
  constexpr std::array kLines{oracle::Lines::All, oracle::Lines::OfThePair,
                              oracle::Lines::OfThePairAndDirection, oracle::Lines::OfThePass,
                              oracle::Lines::OfThePairOrJoined};
  return kLines[static_cast<std::size_t>(layout)];
}

std::tuple<bool, int, int, std::string_view> place_of(const Answer& answer) {
  return {answer.accepted(), answer.rank, answer.position, answer.rule};
}

Answer expected_under(const oracle::Pipeline& pipeline, CommInit init, const Answer& product) {
  if (const auto never = oracle::first_never_computed(pipeline)) {
    return {.rule = "D04", .rank = never->rank, .position = never->position};
  }
  if (const auto apart = oracle::first_apart(pipeline)) {
    return {.rule = "T13", .rank = apart->rank, .position = apart->position};
  }
  const Answer first = answer_of(oracle::in_circles(pipeline), product);
  const auto unmade = init == CommInit::Lazy ? oracle::first_never_made(pipeline) : std::nullopt;
  if (!unmade) return first;
  const Answer never_made{.rule = "T14", .rank = unmade->rank, .position = unmade->position};
  return place_of(never_made) < place_of(first) ? never_made : first;
}

// The first finding under any of the values that are not ruled out.
Answer expected(oracle::Pipeline& pipeline, const Transfers& transfers, const Answer& product) {
  std::optional<Answer> first;
  std::vector<Communicators> layouts(kLayouts.begin(), kLayouts.end());
  if (transfers.communicators) layouts = {*transfers.communicators};
  for (const Communicators layout : layouts) {
    for (const TransferMode mode : kModes) {
      if (mode != transfers.mode.value_or(mode)) continue;
      pipeline.lines = lines_of(layout);
      pipeline.held =
          mode == TransferMode::Rendezvous ? 0 : transfers.held.value_or(oracle::kHoldsAll);
      const Answer answer = expected_under(pipeline, transfers.init, product);
      if (!first || place_of(answer) < place_of(*first)) first = answer;
    }
  }
  return *first;
}

bool compare_pairs(int microbatches, const Transfers& transfers, const Options& options) {
  const auto word = [](const auto& value) { return value ? name_of(*value) : "undeclared"; };
  const std::string held = transfers.held ? fmt::format(" {}", *transfers.held) : "";
  Comparison comparison(fmt::format("pairs of {} microbatches, {}{}, {}{}", microbatches,
                                    word(transfers.communicators),
                                    transfers.init == CommInit::Lazy ? " made lazily" : "",
                                    word(transfers.mode), held),
                        options);
  Verdicts::Declared declared;
  declared.options.environment = {.communicators = transfers.communicators,
                                  .transfers = transfers.mode,
                                  .channel_bytes = transfers.held,
                                  .message_bytes = 1,
                                  .comm_init = transfers.init};
  Judge judge(declared, options);
  TwoRanks ranks(microbatches);
  const std::vector<Order> first = local_orders(0, microbatches);
  const std::vector<Order> second = local_orders(1, microbatches);
  std::uint64_t finish = 0;
  const auto compare = [&] {
    const Answer product = judge.of(ranks.input);
    const Answer answer = expected(ranks.pipeline, transfers, product);
    finish += answer.accepted() ? 1 : 0;
    comparison.compare(product, answer, [&] { return print_order_file(ranks.input.schedule); });
  };
  // With a parent beside the communicators of pairs, groups matter.
  const bool in_groups = transfers.communicators == Communicators::LazyHybrid;
  for (const Order& of_first : first) {
    ranks.take(0, of_first);
    const unsigned ways_of_first = in_groups ? ranks.ways_to_fuse(0) : 1;
    for (const Order& of_second : second) {
      if (!comparison.mine()) continue;
      ranks.take(1, of_second);
      const unsigned ways_of_second = in_groups ? ranks.ways_to_fuse(1) : 1;
      for (unsigned fused = 0; fused < ways_of_first * ways_of_second; ++fused) {
        ranks.take(0, of_first, fused % ways_of_first);
        ranks.take(1, of_second, fused / ways_of_first);
        compare();
        if (comparison.stopped()) return comparison.finish();
      }
    }
  }
  comparison.note("of rank 0:", first.size());
  comparison.note("of rank 1:", second.size());
  const Communicators strictest = transfers.communicators.value_or(Communicators::PerRank);
  if (comparison.complete() && microbatches < 3 && strictest == Communicators::PerRank &&
      !transfers.held && transfers.init == CommInit::Eager) {
    const std::uint64_t of_two = transfers.mode == TransferMode::Buffered ? 66 : 62;
    comparison.expect("pairs", first.size() * second.size(), microbatches == 1 ? 5 : 2'996);
    comparison.expect("finish", finish, microbatches == 1 ? 1 : of_two);
  } else {
    comparison.note("finish:", finish);
  }
  return comparison.finish();
}

}  // namespace

bool pairs(const Options& options) {
  const bool large = options.effort == Effort::Long;
  const std::vector<std::optional<Communicators>> layouts =
      large ? std::vector<std::optional<Communicators>>{Communicators::PerRank}
            : std::vector<std::optional<Communicators>>{kLayouts[0],
                                                        kLayouts[1],
                                                        kLayouts[2],
                                                        Communicators::PerDirection,
                                                        Communicators::LazyHybrid,
                                                        {}};
  std::vector<Transfers> modes{{.mode = kModes[0]}, {.mode = kModes[1]}};
  if (!large) {
    modes.push_back({});
    modes.push_back({.mode = TransferMode::Buffered, .held = 1});
  }
  bool agree = true;
  for (const auto& communicators : layouts) {
    for (Transfers transfers : modes) {
      transfers.communicators = communicators;
      for (const int microbatches : large ? std::vector{3} : std::vector{1, 2}) {
        agree = compare_pairs(microbatches, transfers, options) && agree;
        if (!agree && options.stop_at_first) return false;
      }
    }
  }
  if (large) return agree;
  for (const Communicators layout : {Communicators::PerPair, Communicators::PerEdge,
                                     Communicators::PerDirection, Communicators::LazyHybrid}) {
    for (const TransferMode mode : kModes) {
      const Transfers lazily{.communicators = layout, .mode = mode, .init = CommInit::Lazy};
      for (const int microbatches : {1, 2})
        agree = compare_pairs(microbatches, lazily, options) && agree;
    }
  }
  return agree;
}

}  // namespace capo::exhaustive
