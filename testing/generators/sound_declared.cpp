#include "testing/generators/sound_declared.h"

#include "testing/edits/transfers.h"
#include "testing/generators/fewer_microbatches.h"
#include "testing/generators/sound_module.h"
#include "testing/generators/sound_schedule.h"
#include "testing/shown_order.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

constexpr std::int32_t kModulesOfASort = 2;

// Puts a reduction behind every chunk's last gradient.
void reduce_all(Schedule& schedule) {
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankOrder& rank = schedule.ranks[r];
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
      std::size_t last = 0;
      for (std::size_t at = 0; at < rank.order.size(); ++at) {
        const Entry& entry = rank.order[at];
        if (is_compute(entry.kind) && entry.chunk == chunk) last = at;
      }
      put_behind(schedule, {.rank = r, .at = last}, {.chunk = chunk, .kind = Kind::ReduceGradient});
    }
  }
}

bool has(const RankOrder& rank, Kind kind, std::int32_t chunk) {
  return std::any_of(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
    return entry.kind == kind && entry.chunk == chunk;
  });
}

// Whether a chunk leaves some of its weight gradients to W and not the others.
bool delays_some(const Schedule& schedule) {
  for (const RankOrder& rank : schedule.ranks) {
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
      if (has(rank, Kind::BackwardInput, chunk) && has(rank, Kind::Backward, chunk)) return true;
    }
  }
  return false;
}

}  // namespace

Declared draw_sound_declared(Dice& dice) {
  Declared declared{.schedule = draw_sound_named_schedule(dice), .options = {}};
  while (delays_some(declared.schedule)) declared.schedule = draw_sound_named_schedule(dice);
  if (dice.one_in(2)) reduce_all(declared.schedule);
  declared.options.plan = {.kind = PlanKind::Te, .aliases = Aliases{}};

  ModuleTable& table = declared.options.modules;
  for (std::int32_t i = 0; i < 2 * kModulesOfASort; ++i)
    table.list.push_back(draw_sound_module(dice, i < kModulesOfASort ? Delay::Always : Delay::Never,
                                           "m" + std::to_string(i)));
  for (const RankOrder& rank : declared.schedule.ranks) {
    auto& chunks = table.layers.emplace_back();
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk) {
      const std::int32_t first = has(rank, Kind::BackwardWeight, chunk) ? 0 : kModulesOfASort;
      chunks.push_back({dice.between(first, first + kModulesOfASort - 1)});
    }
  }
  return declared;
}

rc::Gen<Declared> sound_declared() {
  return generator(draw_sound_declared, with_fewer_microbatches<Declared>);
}

void showValue(const Declared& declared, std::ostream& out) {
  if (declared.table) out << "# as a PyTorch table, of\n";
  out << shown_order(declared.schedule, declared.options);
}

}  // namespace capo::testing
