#include "testing/truth/cases.h"

#include "run/setup/replicas.h"
#include "testing/truth/drawn_cases.h"
#include "testing/truth/fixed_cases.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace capo::testing {

namespace {

using Draw = TruthCase (*)(Dice&);

constexpr std::array<Draw, 6> kSound{draw_published_case, draw_order_case,    draw_schedule_case,
                                     draw_planned_case,   draw_declared_case, draw_spared_case};
constexpr std::array<Draw, 4> kFaulty{draw_reuse_case, draw_reuse_case, draw_plan_fault_case,
                                      draw_module_fault_case};

constexpr std::array kLayouts{Communicators::PerRank, Communicators::PerPair,
                              Communicators::PerEdge};
constexpr std::array kModes{TransferMode::Rendezvous, TransferMode::Buffered};

TruthCase drawn(Dice& dice, Made made, std::uint64_t number) {
  if (number % 16 == 15) return draw_undeclared_case(dice);
  if (made == Made::Faulty) return dice.pick(std::span<const Draw>(kFaulty))(dice);
  TruthCase sound = dice.pick(std::span<const Draw>(kSound))(dice);
  sound.made = Made::Sound;
  return sound;
}

bool reduces(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(),
                       [](const Entry& entry) { return entry.kind == Kind::ReduceGradient; });
  });
}

// A reduction over one rank changes nothing, so that an order that has any is given replicas.
std::int32_t draw_replicas(Dice& dice, const TruthCase& of) {
  constexpr std::int32_t kMost = 3;
  if (!reduces(of.input.schedule)) return 1;
  return run::replicas_of(of.input, of.declared, kMost) ? dice.between(2, kMost) : 1;
}

bool has_replay_order(const Schedule& schedule) {
  for (const RankOrder& rank : schedule.ranks) {
    if (rank.replay) return true;
  }
  return false;
}

}  // namespace

TruthCase truth_case(std::uint64_t seed, std::uint64_t number) {
  const bool faulty = number % 2 == 1;
  auto fixed = faulty ? fixed_faulty_case(number / 2) : fixed_sound_case(number / 2);
  Dice dice(rc::Random(seed * 1'000'003 + number));
  TruthCase made =
      fixed ? *std::move(fixed) : drawn(dice, faulty ? Made::Faulty : Made::Sound, number);
  // A step that is one graph is replayed as it was captured.
  const bool one_graph = !has_replay_order(made.input.schedule) && dice.one_in(2);
  if (!fixed) made.graphs = one_graph ? Granularity::PerStep : Granularity::PerAction;
  made.number = number;
  made.seed = seed * 1'000'003 + number;
  made.sizes = dice.one_in(3) ? run::SizeKind::Zipf : run::SizeKind::Random;
  made.layout = dice.pick(std::span<const Communicators>(kLayouts));
  made.mode = dice.pick(std::span<const TransferMode>(kModes));
  made.replicas = draw_replicas(dice, made);
  return made;
}

}  // namespace capo::testing
