#include "testing/generators/sound_schedule.h"

#include "core/base/index.h"
#include "testing/generators/executable_order.h"
#include "testing/generators/topology.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace capo::testing {

namespace {

// The actions of one chunk for one microbatch, in the order that dependencies ask for.
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

// Holds the actions that one rank still has to run in a step that is being drawn.
struct Part {
  // Indexed by chunk, then microbatch; the first action is next.
  std::vector<std::vector<Action>> chains;
  const std::vector<Entry>* order = nullptr;  // not null: in this order, of which `at` comes next
  std::size_t at = 0;
};

// Draws the orders of all ranks together, as one step: of everything that may run next on any rank
// something does. Ranks with a given order keep it.
class StepDraw {
 public:
  StepDraw(Dice& dice, const Schedule& schedule)
      : dice_(dice), schedule_(schedule), progress_(schedule) {
    for (const RankOrder& rank : schedule.ranks) {
      Part& part = parts_.emplace_back();
      for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
        const Delay delay = (*rank.delay)[as_index(chunk) - 1];
        for (std::int32_t m = 0; m < *schedule.microbatches; ++m) {
          part.chains.push_back(chain_of(chunk, m, delay, dice.one_in(2)));
        }
      }
    }
    orders_.resize(parts_.size());
  }

  void keep(std::size_t rank, const std::vector<Entry>& order) { parts_[rank] = {.order = &order}; }

  std::vector<std::vector<Entry>> run() {
    while (true) {
      std::vector<std::pair<std::size_t, std::size_t>> next;  // rank, chain
      for (std::size_t r = 0; r < parts_.size(); ++r) {
        for (const std::size_t i : may_follow(r)) next.emplace_back(r, i);
      }
      if (next.empty()) return std::move(orders_);
      const auto [rank, chain] = next[dice_.below(next.size())];
      if (parts_[rank].order != nullptr) {
        run_next_of_order(rank);
      } else {
        run_chain(rank, chain);
      }
    }
  }

 private:
  // The chains of which the next action may run; of a rank with a given order, one for its next
  // entry.
  [[nodiscard]] std::vector<std::size_t> may_follow(std::size_t r) const {
    const Part& part = parts_[r];
    std::vector<std::size_t> next;
    if (part.order != nullptr) {
      const auto& order = *part.order;
      bool may_run = part.at < order.size();
      for (std::size_t at = part.at; may_run && at < end_of_next(part); ++at)
        may_run = progress_.may_run(r, order[at].action());
      if (may_run) next.push_back(0);
      return next;
    }
    const auto microbatches = as_index(*schedule_.microbatches);
    for (std::size_t i = 0; i < part.chains.size(); ++i) {
      if (part.chains[i].empty() || !progress_.may_run(r, part.chains[i].front())) continue;
      // First in, first out: the microbatch before has to be further on.
      const bool first = i % microbatches == 0;
      const bool in_turn = schedule_.naming == Naming::Named || first ||
                           part.chains[i - 1].size() < part.chains[i].size();
      if (in_turn) next.push_back(i);
    }
    return next;
  }

  static std::size_t end_of_next(const Part& part) {
    std::size_t end = part.at + 1;
    while (end < part.order->size() && (*part.order)[end].group == Group::Continues) ++end;
    return end;
  }

  void run_next_of_order(std::size_t r) {
    Part& part = parts_[r];
    for (const std::size_t end = end_of_next(part); part.at < end; ++part.at)
      progress_.run(r, (*part.order)[part.at].action());
  }

  // Once in six times together with one or two more that could have come next as well.
  void run_chain(std::size_t r, std::size_t first) {
    std::vector<std::size_t> together{first};
    if (dice_.one_in(10)) orders_[r].emplace_back();
    if (dice_.one_in(6)) {
      std::vector<std::size_t> others = may_follow(r);
      std::erase(others, first);
      for (std::size_t left = 1 + dice_.below(2); left > 0 && !others.empty(); --left) {
        const std::size_t at = dice_.below(others.size());
        together.push_back(others[at]);
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    for (const std::size_t i : together) {
      auto& chain = parts_[r].chains[i];
      const Action action = chain.front();
      chain.erase(chain.begin());
      progress_.run(r, action);
      orders_[r].push_back({.chunk = action.chunk,
                            .microbatch = action.microbatch,
                            .kind = action.kind,
                            .group = together.size() == 1 ? Group::Alone
                                     : i == first         ? Group::Opens
                                                          : Group::Continues});
    }
  }

  Dice& dice_;
  const Schedule& schedule_;
  Progress progress_;
  std::vector<Part> parts_;
  std::vector<std::vector<Entry>> orders_;
};

void draw_orders(Dice& dice, Schedule& schedule, bool replays) {
  auto captured = StepDraw(dice, schedule).run();
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
    schedule.ranks[r].order = std::move(captured[r]);
  if (!replays) return;
  StepDraw replay(dice, schedule);
  std::vector<std::size_t> replayed;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (dice.one_in(4)) {
      replayed.push_back(r);
    } else {
      replay.keep(r, schedule.ranks[r].order);
    }
  }
  auto orders = replay.run();
  for (const std::size_t r : replayed) schedule.ranks[r].replay = std::move(orders[r]);
}

Layers draw_layers(Dice& dice, std::int32_t chunks) {
  if (!dice.one_in(3)) return {};
  Layers layers{.form = static_cast<Layers::Form>(1 + dice.below(3))};
  if (layers.form == Layers::Form::Count) layers.values.resize(1);
  if (layers.form == Layers::Form::List) layers.values.resize(as_index(chunks));
  for (std::int64_t& value : layers.values) value = dice.between(1, 3);
  return layers;
}

Schedule draw(Dice& dice, Naming naming, bool replays) {
  Schedule schedule{.naming = naming,
                    .topology = dice.pick(std::span<const Topology>(kOnePipeline))};
  schedule.microbatches = dice.between(1, 4);
  draw_placement(dice, schedule, [&](RankOrder& rank) {
    rank.delay.emplace();
    for (std::int32_t c = 0; c < rank.chunks; ++c) {
      rank.delay->push_back(static_cast<Delay>(dice.below(naming == Naming::Named ? 3 : 2)));
    }
    rank.layers = draw_layers(dice, rank.chunks);
  });
  draw_orders(dice, schedule, replays);
  const bool placed = schedule.topology != Topology::Independent;
  if (placed && dice.one_in(2)) schedule.stages = all_chunks(schedule);
  return schedule;
}

std::vector<Schedule> simpler_schedules(const Schedule& schedule) {
  std::vector<Schedule> out;
  const auto with = [&](auto change) {
    out.push_back(schedule);
    change(out.back());
  };
  for (std::size_t r = 0; schedule.ranks.size() > 1 && r < schedule.ranks.size(); ++r) {
    with([r](Schedule& s) { forget_rank(s, r); });
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
      s = in_executable_order(std::move(s));
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
  std::erase_if(out, [](const Schedule& smaller) { return !executable(smaller); });
  return out;
}

}  // namespace

void forget_microbatch(std::vector<Entry>& order, std::int32_t microbatch) {
  std::erase_if(order, [microbatch](const Entry& entry) { return entry.microbatch == microbatch; });
  for (Entry& entry : order) {
    entry.group = Group::Alone;
    if (entry.microbatch > microbatch) entry.microbatch -= 1;
  }
}

Schedule draw_sound_schedule(Dice& dice) {
  const Naming naming = dice.one_in(3) ? Naming::Counted : Naming::Named;
  return draw(dice, naming, true);
}

Schedule draw_sound_named_schedule(Dice& dice) {
  return draw(dice, Naming::Named, false);
}

rc::Gen<Schedule> sound_schedule() {
  return generator(draw_sound_schedule, simpler_schedules);
}

rc::Gen<Schedule> sound_named_schedule() {
  return generator(draw_sound_named_schedule, simpler_schedules);
}

}  // namespace capo::testing
