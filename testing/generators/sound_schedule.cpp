#include <capo/testing/generators/sound_schedule.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace capo::testing {

namespace {

// What one chunk does for one microbatch, in the order that dependencies ask for.
std::vector<Action> chain_of(std::int32_t chunk, std::int32_t microbatch, Delay delay, bool split) {
  const auto action = [&](Kind kind) {
    return Action{.kind = kind, .chunk = chunk, .microbatch = microbatch};
  };
  std::vector<Action> chain{action(Kind::Forward)};
  const bool half = delay == Delay::Mixed && split;
  chain.push_back(action(half ? Kind::BackwardInput : Kind::Backward));
  if (half || delay == Delay::Always) chain.push_back(action(Kind::BackwardWeight));
  return chain;
}

// Members of a composite run together, so none may need another: of a chunk and microbatch there is
// at most one. Dissolves the composite that opens at `begin` if it has two.
void dissolve_if_dependent(std::vector<Entry>& order, std::size_t begin) {
  if (order[begin].group != Group::Opens) return;
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  std::size_t end = begin;
  do {
    seen.emplace(order[end].chunk, order[end].microbatch);
    ++end;
  } while (end < order.size() && order[end].group == Group::Continues);
  if (seen.size() == end - begin) return;
  for (std::size_t at = begin; at < end; ++at) order[at].group = Group::Alone;
}

std::vector<Entry> draw_order(Dice& dice, const RankOrder& rank, std::int32_t microbatches,
                              Naming naming) {
  std::vector<std::vector<Action>> chains;  // by chunk, then microbatch; the first action is next
  for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
    for (std::int32_t m = 0; m < microbatches; ++m) {
      chains.push_back(
          chain_of(chunk, m, (*rank.delay)[static_cast<std::size_t>(chunk) - 1], dice.one_in(2)));
    }
  }
  // First in, first out: the microbatch before has to be further on.
  const auto may_follow = [&](std::size_t i) {
    if (chains[i].empty()) return false;
    const bool first = i % static_cast<std::size_t>(microbatches) == 0;
    return naming == Naming::Named || first || chains[i - 1].size() < chains[i].size();
  };
  std::vector<Entry> order;
  while (true) {
    std::vector<std::size_t> next;
    for (std::size_t i = 0; i < chains.size(); ++i) {
      if (may_follow(i)) next.push_back(i);
    }
    if (next.empty()) break;
    if (dice.one_in(10)) order.emplace_back();
    auto& chain = chains[next[dice.below(next.size())]];
    order.push_back({.chunk = chain.front().chunk,
                     .microbatch = chain.front().microbatch,
                     .kind = chain.front().kind});
    chain.erase(chain.begin());
  }
  draw_composites(dice, order);
  for (std::size_t at = 0; at < order.size(); ++at) dissolve_if_dependent(order, at);
  return order;
}

Layers draw_layers(Dice& dice, std::int32_t chunks) {
  if (!dice.one_in(3)) return {};
  Layers layers{.form = static_cast<Layers::Form>(1 + dice.below(3))};
  if (layers.form == Layers::Form::Count) layers.values.resize(1);
  if (layers.form == Layers::Form::List) layers.values.resize(static_cast<std::size_t>(chunks));
  for (std::int64_t& value : layers.values) value = dice.between(1, 3);
  return layers;
}

std::int32_t all_chunks(const Schedule& schedule) {
  std::int32_t chunks = 0;
  for (const RankOrder& rank : schedule.ranks) chunks += rank.chunks;
  return chunks;
}

// Stages 0, 1, ... dealt out at random, and placed as each topology does.
void draw_stages(Dice& dice, Schedule& schedule) {
  place_stages(schedule);
  if (schedule.topology != Topology::Custom) return;
  std::vector<std::int32_t> stages;
  for (const RankOrder& rank : schedule.ranks)
    stages.resize(stages.size() + static_cast<std::size_t>(rank.chunks));
  std::iota(stages.begin(), stages.end(), 0);
  for (std::size_t i = stages.size(); i > 1; --i) std::swap(stages[i - 1], stages[dice.below(i)]);
  for (RankOrder& rank : schedule.ranks) {
    rank.stages.assign(stages.end() - rank.chunks, stages.end());
    stages.resize(stages.size() - rank.stages.size());
  }
}

Schedule draw(Dice& dice, Naming naming, bool replays) {
  Schedule schedule{.naming = naming, .topology = static_cast<Topology>(dice.below(5))};
  const std::int32_t microbatches = dice.between(1, 4);
  schedule.microbatches = microbatches;
  schedule.ranks.resize(1 + dice.below(3));
  const std::int32_t chunks_of_all = dice.between(1, 3);
  const bool alike = schedule.topology == Topology::Loop || schedule.topology == Topology::V;
  for (RankOrder& rank : schedule.ranks) {
    rank.chunks = alike ? chunks_of_all : dice.between(1, 3);
    rank.chunks_declared = true;
    rank.delay.emplace();
    for (std::int32_t c = 0; c < rank.chunks; ++c) {
      rank.delay->push_back(static_cast<Delay>(dice.below(naming == Naming::Named ? 3 : 2)));
    }
    rank.order = draw_order(dice, rank, microbatches, naming);
    if (replays && dice.one_in(4)) rank.replay = draw_order(dice, rank, microbatches, naming);
    rank.layers = draw_layers(dice, rank.chunks);
  }
  draw_stages(dice, schedule);
  const bool placed = schedule.topology != Topology::Independent;
  if (placed && dice.one_in(2)) schedule.stages = all_chunks(schedule);
  return schedule;
}

void forget_microbatch(std::vector<Entry>& order, std::int32_t microbatch) {
  std::erase_if(order, [microbatch](const Entry& entry) { return entry.microbatch == microbatch; });
  for (Entry& entry : order) {
    entry.group = Group::Alone;
    if (entry.microbatch > microbatch) --entry.microbatch;
  }
}

// Stages without gaps, after a rank has gone.
void close_gaps(Schedule& schedule) {
  if (schedule.stages) schedule.stages = all_chunks(schedule);
  if (schedule.topology != Topology::Custom) return place_stages(schedule);
  std::vector<std::int32_t*> stages;
  for (RankOrder& rank : schedule.ranks) {
    for (std::int32_t& stage : rank.stages) stages.push_back(&stage);
  }
  std::sort(stages.begin(), stages.end(), [](const auto* a, const auto* b) { return *a < *b; });
  for (std::size_t i = 0; i < stages.size(); ++i) *stages[i] = static_cast<std::int32_t>(i);
}

std::vector<Schedule> simpler_schedules(const Schedule& schedule) {
  std::vector<Schedule> out;
  const auto with = [&](auto change) {
    out.push_back(schedule);
    change(out.back());
  };
  for (std::size_t r = 0; schedule.ranks.size() > 1 && r < schedule.ranks.size(); ++r) {
    with([r](Schedule& s) {
      s.ranks.erase(s.ranks.begin() + static_cast<std::ptrdiff_t>(r));
      close_gaps(s);
    });
  }
  for (std::int32_t m = 0; schedule.microbatches > 1 && m < *schedule.microbatches; ++m) {
    with([m](Schedule& s) {
      --*s.microbatches;
      for (RankOrder& rank : s.ranks) {
        forget_microbatch(rank.order, m);
        if (rank.replay) forget_microbatch(*rank.replay, m);
      }
    });
  }
  if (schedule.stages) with([](Schedule& s) { s.stages.reset(); });
  if (schedule.topology != Topology::Chain) {
    with([](Schedule& s) {
      s.topology = Topology::Chain;
      place_stages(s);
    });
  }
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    const auto with_rank = [&](auto change) { with([&](Schedule& s) { change(s.ranks[r]); }); };
    if (rank.replay) with_rank([](RankOrder& k) { k.replay.reset(); });
    if (rank.layers.form != Layers::Form::Unstated) with_rank([](RankOrder& k) { k.layers = {}; });
    const auto ungroup = [](RankOrder& k) {
      for (Entry& entry : k.order) entry.group = Group::Alone;
    };
    const bool grouped = std::any_of(rank.order.begin(), rank.order.end(), [](const Entry& entry) {
      return entry.group != Group::Alone;
    });
    if (grouped) with_rank(ungroup);
    for (std::size_t i = 0; i < rank.order.size(); ++i) {
      if (rank.order[i].kind == Kind::Idle) {
        with_rank(
            [i](RankOrder& k) { k.order.erase(k.order.begin() + static_cast<std::ptrdiff_t>(i)); });
      }
      const auto key = [](const Entry& e) { return std::tuple(e.microbatch, e.kind, e.chunk); };
      if (grouped || i + 1 == rank.order.size() || key(rank.order[i]) <= key(rank.order[i + 1]))
        continue;
      with_rank([i](RankOrder& k) { std::swap(k.order[i], k.order[i + 1]); });
    }
  }
  return out;
}

}  // namespace

Schedule draw_sound_schedule(Dice& dice) {
  const Naming naming = dice.one_in(3) ? Naming::Counted : Naming::Named;
  return draw(dice, naming, true);
}

rc::Gen<Schedule> sound_schedule() {
  return generator(draw_sound_schedule, simpler_schedules);
}

rc::Gen<Schedule> sound_named_schedule() {
  return generator([](Dice& dice) { return draw(dice, Naming::Named, false); }, simpler_schedules);
}

}  // namespace capo::testing
