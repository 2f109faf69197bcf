#include "core/plan/hearsay.h"

#include "core/base/in_parallel.h"
#include "core/base/index.h"
#include "core/graph/lowered.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace capo {

namespace {

// The place that is known of by way of one in between.
KnownPlaces by_way_of(const KnownPlaces& between, const KnownPlaces& from_there) {
  KnownPlaces known(between.size());
  std::transform(between.begin(), between.end(), known.begin(),
                 [&](std::uint32_t place) { return from_there[place]; });
  return known;
}

KnownPlaces itself(std::size_t size) {
  KnownPlaces places(size);
  std::iota(places.begin(), places.end(), 0U);
  return places;
}

}  // namespace

Hearsay::Hearsay(const SweptTransfers& transfers, const SweptLog& log)
    : transfers_(transfers),
      neighbours_(log.neighbours),
      log_(log.ranks),
      cells_(transfers.microbatches),
      around_(log.ranks.size()) {
  if (!by_transfers()) place_computations();
  std::size_t transfers_of_all = 0;
  for (const SweptRank& rank : log_) transfers_of_all += rank.transfers.size();
  const unsigned threads = threads_worth(transfers_of_all);
  Told told(log_.size());
  for (const std::vector<RankId>& ring : rings_of(neighbours_)) {
    in_parallel(ring.size(), threads,
                [&](std::size_t at) { told[ring[at].index()] = straight(ring[at]); });
    // Both ways around go on at once.
    in_parallel(2, threads, [&](std::size_t way) {
      go_around(way == 0 ? ring : std::vector<RankId>(ring.rbegin(), ring.rend()), told);
    });
  }
}

void Hearsay::place_computations() {
  for (const RankOrder& rank : transfers_.schedule->ranks) {
    KnownPlaces& places = computed_at_.emplace_back(cells_.count(rank.chunks));
    std::uint32_t place = 0;
    for_each_computation(rank.order, [&](std::uint32_t first, std::uint32_t end) {
      ++place;
      for (std::uint32_t i = first; i < end; ++i) {
        const Entry& entry = rank.order[i];
        if (is_node(entry.kind))
          places[cells_.of(entry.chunk, entry.microbatch, is_forward_node(entry.kind))] = place;
      }
    });
  }
}

// Tells each rank of the ring what it hears of the next one from the one before it. Each step goes
// back by one rank; those of all ranks but two are taken in two parts, up to the first rank and
// from there on, so that each part has one step more than that of a neighbour.
void Hearsay::go_around(const std::vector<RankId>& ring, const Told& told) {
  const std::size_t count = ring.size();
  const auto position = [&](std::size_t of, std::size_t other) {
    return neighbours_[ring[of].index()].position_of(ring[other % count]);
  };
  // A rank knows, by its place, that of the rank before.
  const auto step = [&](std::size_t at) -> const KnownPlaces& {
    return told[ring[at].index()][position(at, at + count - 1)];
  };
  // The first rank knows, by its place, that of the one behind this one.
  std::vector<KnownPlaces> onward(count);
  onward[count - 1] = itself(step(0).size());
  for (std::size_t at = count - 1; at-- > 0;)
    onward[at] = by_way_of(onward[at + 1], step((at + 2) % count));
  KnownPlaces to_first = itself(step(0).size());
  for (std::size_t at = 0; at < count; ++at) {
    if (at > 0) to_first = by_way_of(step(at), to_first);
    const std::size_t behind = position(at, at + 1);
    const std::size_t rank = ring[at].index();
    around_[rank][behind] = later_than(told[rank][behind], to_first, onward[at]);
    onward[at] = {};
  }
}

Hearsay::Around Hearsay::later_than(const KnownPlaces& straight, const KnownPlaces& between,
                                    const KnownPlaces& from_there) {
  std::size_t first = straight.size();
  std::size_t end = 0;
  for (std::size_t place = 0; place < straight.size(); ++place) {
    if (from_there[between[place]] <= straight[place]) continue;
    first = std::min(first, place);
    end = place + 1;
  }
  Around around{.first = first};
  if (end > first) around.over.reserve(end - first);
  for (std::size_t place = first; place < end; ++place)
    around.over.push_back(from_there[between[place]]);
  return around;
}

std::array<KnownPlaces, 2> Hearsay::straight(RankId rank) const {
  return by_transfers() ? by_own_transfers(rank) : by_own_computations(rank);
}

std::array<KnownPlaces, 2> Hearsay::by_own_transfers(RankId rank) const {
  const auto& transfers = log_[rank.index()].transfers;
  const bool told_by_receives = transfers_.mode == TransferMode::Rendezvous;
  std::array<KnownPlaces, 2> over;
  over.fill(KnownPlaces(transfers.size() + 1));
  std::array<std::uint32_t, 2> latest{};
  for (std::size_t at = 0; at < transfers.size(); ++at) {
    const SweptTransfer& transfer = transfers[at];
    if (!transfer.sends() || told_by_receives) latest[transfer.neighbour()] = transfer.there() - 1;
    for (std::size_t i = 0; i < over.size(); ++i) over[i][at + 1] = latest[i];
  }
  return over;
}

std::array<KnownPlaces, 2> Hearsay::by_own_computations(RankId rank) const {
  const auto& order = transfers_.schedule->ranks[rank.index()].order;
  const Neighbours& around = neighbours_[rank.index()];
  std::array<KnownPlaces, 2> over;
  over.fill(KnownPlaces(log_[rank.index()].issued.size() + 1));
  std::array<std::uint32_t, 2> latest{};
  std::size_t place = 0;
  for_each_computation(order, [&](std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t i = first; i < end; ++i) {
      const Entry& entry = order[i];
      if (!is_node(entry.kind)) continue;
      const bool forward = is_forward_node(entry.kind);
      const Neighbours::OtherEnd& maker = around.maker(entry.chunk, forward);
      if (maker.neighbour < 0) continue;
      const auto from = as_index(maker.neighbour);
      const std::uint32_t cell = cells_.of(maker.chunk, entry.microbatch, forward);
      latest[from] = std::max(latest[from], computed_at_[around.ranks()[from].index()][cell]);
    }
    ++place;
    for (std::size_t i = 0; i < over.size(); ++i) over[i][place] = latest[i];
  });
  return over;
}

// A tensor has arrived if it was received, or if a computation has read it or a later one.
std::array<KnownPlaces, 2> Hearsay::arrivals(RankId rank) const {
  std::array<KnownPlaces, 2> arrives;
  for (const SweptTransfer& transfer : log_[rank.index()].transfers) {
    if (!transfer.sends()) continue;
    std::uint32_t place = transfer.there();
    if (!by_transfers()) {
      const std::size_t to = neighbours_[rank.index()].ranks()[transfer.neighbour()].index();
      place = computed_at_[to][log_[to].transfers[transfer.there() - 1].cell()];
    }
    arrives[transfer.neighbour()].push_back(place);
  }
  for (KnownPlaces& places : arrives) {
    for (std::size_t at = places.size(); at-- > 1;)
      places[at - 1] = std::min(places[at - 1], places[at]);
  }
  return arrives;
}

std::array<Hearing, 2> Hearsay::of(RankId rank) const {
  std::array<KnownPlaces, 2> over = straight(rank);
  std::array<KnownPlaces, 2> arrives = arrivals(rank);
  std::array<Hearing, 2> heard;
  for (std::size_t i = 0; i < heard.size(); ++i) {
    const Around& around = around_[rank.index()][i];
    for (std::size_t at = 0; at < around.over.size(); ++at) {
      std::uint32_t& known = over[i][around.first + at];
      known = std::max(known, around.over[at]);
    }
    heard[i] = {.over = std::move(over[i]), .arrives = std::move(arrives[i])};
  }
  return heard;
}

}  // namespace capo
