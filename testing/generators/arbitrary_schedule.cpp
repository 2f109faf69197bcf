#include "testing/generators/arbitrary_schedule.h"

#include "core/base/index.h"
#include "core/text/order_text.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <span>
#include <utility>

namespace capo {

void showValue(const Schedule& schedule, std::ostream& out) {
  out << print_order_file(schedule);
}

namespace testing {

namespace {

constexpr std::array kCompute{Kind::Forward, Kind::Backward, Kind::BackwardInput,
                              Kind::BackwardWeight};
constexpr std::array kTransfers{Kind::SendForward, Kind::ReceiveForward, Kind::SendBackward,
                                Kind::ReceiveBackward};
constexpr std::array kExchanges{Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                                Kind::CombineBackward};
constexpr std::array kWholeStage{Kind::Unshard, Kind::Reshard, Kind::ReduceGradient};

Entry draw_entry(Dice& dice) {
  Entry entry;
  const std::size_t family = dice.below(11);
  if (family == 10) return entry;
  entry.kind = family < 6   ? dice.pick(std::span<const Kind>(kCompute))
               : family < 8 ? dice.pick(std::span<const Kind>(kTransfers))
               : family < 9 ? dice.pick(std::span<const Kind>(kExchanges))
                            : dice.pick(std::span<const Kind>(kWholeStage));
  entry.chunk = dice.one_in(16) ? dice.between(13, 100'000) : dice.between(1, 4);
  entry.microbatch = dice.one_in(20) ? dice.between(1'000, 1'000'000) : dice.between(0, 5);
  return entry;
}

std::vector<Entry> draw_order(Dice& dice) {
  std::vector<Entry> order(dice.below(13));
  for (Entry& entry : order) entry = draw_entry(dice);
  draw_composites(dice, order);
  return order;
}

Layers draw_layers(Dice& dice) {
  switch (dice.below(5)) {
    case 0:
      return {.form = Layers::Form::Null};
    case 1:
      return {.form = Layers::Form::Count, .values = {dice.between(0, 3)}};
    case 2: {
      Layers layers{.form = Layers::Form::List};
      layers.values.resize(1 + dice.below(5));
      for (std::int64_t& value : layers.values) value = dice.between(0, 3);
      return layers;
    }
    default:
      return {};
  }
}

// Makes an order keep the invariants of its schedule's way to name microbatches.
void settle_order(std::vector<Entry>& order, std::int32_t chunks, Naming naming) {
  bool in_composite = false;
  for (Entry& entry : order) {
    if (entry.kind == Kind::Idle) entry = {};
    if (entry.group == Group::Continues && !in_composite) entry.group = Group::Opens;
    in_composite = entry.group != Group::Alone;
    if (naming == Naming::Counted || !has_microbatch(entry.kind)) entry.microbatch = kNoMicrobatch;
    if (naming == Naming::Counted && entry.kind == Kind::BackwardInput) entry.kind = Kind::Backward;
  }
  if (naming == Naming::Counted) number_microbatches(order, chunks);
}

// Puts resets between entries that there are, in their order, and behind a composite that they fall
// into.
void settle_resets(RankOrder& rank) {
  const std::vector<Entry>& order = rank.replayed();
  for (Reset& reset : rank.resets) {
    reset.behind = std::min(reset.behind, static_cast<std::uint32_t>(order.size()));
    while (reset.behind < order.size() && order[reset.behind].group == Group::Continues)
      ++reset.behind;
  }
  std::stable_sort(rank.resets.begin(), rank.resets.end(),
                   [](const Reset& a, const Reset& b) { return a.behind < b.behind; });
}

bool any_microbatch(const Schedule& schedule) {
  const auto has_one = [](const Entry& entry) { return has_microbatch(entry.kind); };
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [&](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(), has_one) ||
           (rank.replay && std::any_of(rank.replay->begin(), rank.replay->end(), has_one));
  });
}

// The nearest schedule that keeps the invariants. What is drawn or cut passes through here, so that
// neither has to know them. Named microbatches are at least 0 already.
Schedule settled(Schedule schedule) {
  if (!any_microbatch(schedule)) schedule.naming = Naming::Counted;
  for (RankOrder& rank : schedule.ranks) {
    if (rank.layers.form == Layers::Form::List) rank.chunks_declared = true;
    if (!rank.chunks_declared && schedule.topology != Topology::Custom) {
      rank.chunks = 0;
      for (const Entry& entry : rank.order) {
        const bool usable = as_index(std::int32_t{entry.chunk}) <= rank.order.size();
        if (entry.kind != Kind::Idle && usable)
          rank.chunks = std::max<std::int32_t>(rank.chunks, entry.chunk);
      }
    }
    settle_order(rank.order, rank.chunks, schedule.naming);
    if (rank.replay) settle_order(*rank.replay, rank.chunks, schedule.naming);
    settle_resets(rank);
    if (rank.delay) rank.delay->resize(as_index(rank.chunks), Delay::Never);
    if (rank.delay && schedule.naming == Naming::Counted) {
      std::replace(rank.delay->begin(), rank.delay->end(), Delay::Mixed, Delay::Never);
    }
    if (schedule.topology == Topology::Custom) {
      rank.stages.resize(as_index(rank.chunks));
    } else {
      rank.stages.clear();
    }
  }
  place_stages(schedule);
  return schedule;
}

void draw_resets(Dice& dice, RankOrder& rank) {
  const std::size_t resets = 1 + dice.below(3);
  for (std::size_t i = 0; i < resets; ++i) {
    Reset reset{.chunk = dice.between(0, 4), .behind = static_cast<std::uint32_t>(dice.below(13))};
    if (reset.chunk != Reset::kAllChunks && dice.one_in(2)) reset.microbatch = dice.between(0, 5);
    rank.resets.push_back(reset);
  }
}

std::vector<Schedule> simpler_schedules(const Schedule& schedule) {
  std::vector<Schedule> out;
  const auto with = [&](auto change) {
    out.push_back(schedule);
    change(out.back());
    out.back() = settled(std::move(out.back()));
  };
  for (std::size_t r = 0; schedule.ranks.size() > 1 && r < schedule.ranks.size(); ++r) {
    with([r](Schedule& s) { s.ranks.erase(s.ranks.begin() + static_cast<std::ptrdiff_t>(r)); });
  }
  if (schedule.topology != Topology::Independent)
    with([](Schedule& s) { s.topology = Topology::Independent; });
  if (schedule.microbatches) with([](Schedule& s) { s.microbatches.reset(); });
  if (schedule.stages) with([](Schedule& s) { s.stages.reset(); });
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    const auto with_rank = [&](auto change) { with([&](Schedule& s) { change(s.ranks[r]); }); };
    if (rank.replay) with_rank([](RankOrder& k) { k.replay.reset(); });
    if (!rank.resets.empty()) with_rank([](RankOrder& k) { k.resets.pop_back(); });
    if (rank.layers.form != Layers::Form::Unstated) with_rank([](RankOrder& k) { k.layers = {}; });
    if (rank.delay) with_rank([](RankOrder& k) { k.delay.reset(); });
    if (rank.chunks_declared && rank.layers.form != Layers::Form::List &&
        schedule.topology != Topology::Custom) {
      with_rank([](RankOrder& k) { k.chunks_declared = false; });
    }
    for (std::size_t i = 0; i < rank.order.size(); ++i) {
      const Entry& entry = rank.order[i];
      with_rank(
          [i](RankOrder& k) { k.order.erase(k.order.begin() + static_cast<std::ptrdiff_t>(i)); });
      if (entry.group != Group::Alone)
        with_rank([i](RankOrder& k) { k.order[i].group = Group::Alone; });
      if (entry.chunk > 1) with_rank([i](RankOrder& k) { k.order[i].chunk = 1; });
      if (schedule.naming == Naming::Named && entry.microbatch > 0) {
        with_rank([i](RankOrder& k) { k.order[i].microbatch = 0; });
      }
    }
  }
  return out;
}

}  // namespace

void draw_composites(Dice& dice, std::vector<Entry>& order) {
  std::size_t left = 0;
  for (Entry& entry : order) {
    const bool transfer = entry.kind >= Kind::SendForward && entry.kind <= Kind::ReceiveBackward;
    if (entry.kind == Kind::Idle || transfer) {
      left = 0;
    } else if (left > 0) {
      entry.group = Group::Continues;
      --left;
    } else if (dice.one_in(6)) {
      entry.group = Group::Opens;
      left = 1 + dice.below(2);
    }
  }
}

Schedule draw_arbitrary_schedule(Dice& dice) {
  Schedule schedule;
  schedule.naming = dice.one_in(2) ? Naming::Named : Naming::Counted;
  schedule.topology = static_cast<Topology>(dice.below(6));
  if (dice.one_in(2)) schedule.microbatches = dice.between(1, 8);
  if (dice.one_in(2)) schedule.stages = dice.between(1, 20);
  schedule.ranks.resize(1 + dice.below(4));
  for (RankOrder& rank : schedule.ranks) {
    rank.order = draw_order(dice);
    if (dice.one_in(4)) rank.replay = draw_order(dice);
    rank.chunks_declared = dice.one_in(2);
    rank.chunks = dice.between(0, 5);
    rank.layers = draw_layers(dice);
    if (dice.one_in(2)) {
      rank.delay.emplace();
      for (std::size_t c = 0; c < 5; ++c) {
        rank.delay->push_back(
            static_cast<Delay>(dice.below(schedule.naming == Naming::Named ? 3 : 2)));
      }
    }
    for (std::size_t c = 0; c < 5; ++c) rank.stages.push_back(dice.between(0, 19));
  }
  for (RankOrder& rank : schedule.ranks) {
    if (dice.one_in(4)) draw_resets(dice, rank);
  }
  return settled(std::move(schedule));
}

rc::Gen<Schedule> arbitrary_schedule() {
  return generator(draw_arbitrary_schedule, simpler_schedules);
}

}  // namespace testing
}  // namespace capo
