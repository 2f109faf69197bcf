// Chunks lack their parameters where the oracle says so: unshards and reshards are put into sound
// schedules of several ranks and chunks, anywhere and in replay orders too.

#include "testing/oracle/parameters.h"
#include "testing/edits/entries.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/checked.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace capo::testing {
namespace {

using oracle::OfParameters;

void put_moves_into(std::vector<Entry>& order, std::int32_t chunks) {
  for (int moves = *rc::gen::inRange(0, 7); moves > 0; --moves) {
    const auto at = *rc::gen::inRange<std::size_t>(0, order.size() + 1);
    // An entry that begins in the middle of a composite would take it apart.
    if (at < order.size() && order[at].group == Group::Continues) continue;
    const Kind kind = *rc::gen::element(Kind::Unshard, Kind::Reshard);
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at),
                 {.chunk = *rc::gen::inRange(1, chunks + 1), .kind = kind});
  }
}

std::size_t without_parameters(const std::vector<Entry>& order, std::int32_t chunks) {
  std::size_t found = 0;
  for (std::int32_t chunk = 1; chunk <= chunks; ++chunk) {
    std::vector<OfParameters> steps;
    for (const Entry& entry : order) {
      if (entry.chunk != chunk) continue;
      if (entry.kind == Kind::Unshard) steps.push_back(OfParameters::Gather);
      if (entry.kind == Kind::Reshard) steps.push_back(OfParameters::GiveUp);
      if (is_compute(entry.kind)) steps.push_back(OfParameters::Compute);
    }
    found += oracle::without_parameters(steps).size();
  }
  return found;
}

RC_GTEST_PROP(Parameters, AreAwayWhereTheOracleSaysSo, ()) {
  Schedule schedule = *sound_schedule();
  std::size_t expected = 0;
  for (RankOrder& rank : schedule.ranks) {
    put_moves_into(rank.order, rank.chunks);
    expected += without_parameters(rank.order, rank.chunks);
    if (!rank.replay) continue;
    put_moves_into(*rank.replay, rank.chunks);
    expected += without_parameters(*rank.replay, rank.chunks);
  }
  const std::vector<Diagnostic> found = checked(schedule).of(Family::Dependencies);
  RC_TAG(expected);
  RC_ASSERT(std::count_if(found.begin(), found.end(), [](const Diagnostic& finding) {
              return finding.rule == "D05";
            }) == static_cast<std::ptrdiff_t>(expected));
}

}  // namespace
}  // namespace capo::testing
