// Exchanges of tokens put into sound schedules of several ranks and chunks, anywhere and in replay
// orders too: out of place are those that the oracle says, and whatever comes of the others is a
// verdict, which the simulator bears out.

#include "testing/oracle/exchanges.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/checked.h"
#include "testing/laws/times.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

using oracle::OfTokens;

// Puts exchanges around the first forward and its backward, as experts have them, or two others
// around the backward.
void put_around_experts(std::vector<Entry>& order) {
  const auto forward = std::ranges::find(order, Kind::Forward, &Entry::kind);
  if (forward == order.end()) return;
  const auto backward = std::find_if(forward, order.end(), [&](const Entry& entry) {
    const bool is_backward = entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput;
    return is_backward && entry.chunk == forward->chunk && entry.microbatch == forward->microbatch;
  });
  if (backward == order.end()) return;
  const auto of_backward = [&] {
    Entry entry = *backward;
    entry.kind = *rc::gen::element(Kind::DispatchBackward, Kind::CombineBackward);
    return entry;
  };
  const Entry first = of_backward();
  const Entry second = of_backward();
  Entry of_forward = *forward;
  if (forward->group != Group::Alone || backward->group != Group::Alone) return;
  order.insert(order.insert(backward, first) + 2, second);
  const auto at = std::ranges::find(order, Kind::Forward, &Entry::kind);
  of_forward.kind = Kind::CombineForward;
  const auto behind = order.insert(at + 1, of_forward);
  of_forward.kind = Kind::DispatchForward;
  order.insert(behind - 1, of_forward);
}

void put_exchanges_into(std::vector<Entry>& order, const Schedule& schedule, std::int32_t chunks) {
  if (*rc::gen::inRange(0, 3) == 0) {
    put_around_experts(order);
    if (schedule.naming == Naming::Counted) number_microbatches(order, chunks);
    return;
  }
  for (int exchanges = *rc::gen::inRange(0, 5); exchanges > 0; --exchanges) {
    Entry entry = order[*rc::gen::inRange<std::size_t>(0, order.size())];
    if (!is_compute(entry.kind) && !is_exchange(entry.kind)) continue;
    entry.kind = *rc::gen::element(Kind::DispatchForward, Kind::CombineForward,
                                   Kind::DispatchBackward, Kind::CombineBackward);
    entry.group = Group::Alone;
    const auto at = *rc::gen::inRange<std::size_t>(0, order.size() + 1);
    // An entry that begins in the middle of a composite would take it apart.
    if (at < order.size() && order[at].group == Group::Continues) continue;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), entry);
  }
  if (schedule.naming == Naming::Counted) number_microbatches(order, chunks);
}

std::size_t out_of_place_in(const std::vector<Entry>& order) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<OfTokens>> passes;
  for (const Entry& entry : order) {
    auto& steps = passes[{entry.chunk, entry.microbatch}];
    if (entry.kind == Kind::Forward) steps.push_back(OfTokens::Forward);
    if (entry.kind == Kind::Backward || entry.kind == Kind::BackwardInput)
      steps.push_back(OfTokens::Backward);
    if (entry.kind == Kind::DispatchForward) steps.push_back(OfTokens::DispatchForward);
    if (entry.kind == Kind::CombineForward) steps.push_back(OfTokens::CombineForward);
    if (entry.kind == Kind::DispatchBackward) steps.push_back(OfTokens::DispatchBackward);
    if (entry.kind == Kind::CombineBackward) steps.push_back(OfTokens::CombineBackward);
  }
  std::size_t found = 0;
  for (const auto& [pass, steps] : passes) found += oracle::exchanged_out_of_place(steps).size();
  return found;
}

RC_GTEST_PROP(Exchanges, AreOutOfPlaceWhereTheOracleSaysSo, ()) {
  Schedule schedule = *sound_schedule();
  std::size_t expected = 0;
  for (RankOrder& rank : schedule.ranks) {
    put_exchanges_into(rank.order, schedule, rank.chunks);
    expected += out_of_place_in(rank.order);
    if (!rank.replay) continue;
    put_exchanges_into(*rank.replay, schedule, rank.chunks);
    expected += out_of_place_in(*rank.replay);
  }
  RC_CLASSIFY(expected > 0);
  const std::vector<Diagnostic> found = checked(schedule).of(Family::Dependencies);
  RC_ASSERT(std::count_if(found.begin(), found.end(), [](const Diagnostic& finding) {
              return finding.rule == "D06";
            }) == static_cast<std::ptrdiff_t>(expected));
  if (const auto breach = laws::finishes_where_accepted(schedule)) RC_FAIL(*breach);
}

}  // namespace
}  // namespace capo::testing
