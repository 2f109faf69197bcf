// Replays that leave the order of capture and harm are told from those that do not, rank by rank
// and whatever else is wrong.

#include "testing/faults/faults.h"
#include "testing/generators/sound_planned.h"
#include "testing/laws/reported.h"
#include "testing/oracle/stash.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace capo::testing {
namespace {

// Two forwards that stand side by side, of different microbatches, change places in the replay:
// nothing is read between them, so that nobody is harmed. Their place; nothing where there are
// none.
std::optional<std::size_t> swap_forwards_in_the_replay(RankOrder& rank) {
  const auto differ = [](const Entry& a, const Entry& b) {
    return a.kind == Kind::Forward && b.kind == Kind::Forward && a.microbatch != b.microbatch;
  };
  const auto first = std::adjacent_find(rank.order.begin(), rank.order.end(), differ);
  if (first == rank.order.end()) return std::nullopt;
  const auto at = first - rank.order.begin();
  rank.replay = rank.order;
  std::iter_swap(rank.replay->begin() + at, rank.replay->begin() + at + 1);
  return static_cast<std::size_t>(at);
}

// Swaps on all ranks that replay as they capture and returns the places by rank.
std::map<std::int32_t, std::size_t> swap_forwards_in_the_replays(Schedule& schedule) {
  std::map<std::int32_t, std::size_t> places;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (schedule.ranks[r].replay) continue;
    const auto at = swap_forwards_in_the_replay(schedule.ranks[r]);
    if (at) places.emplace(static_cast<std::int32_t>(r), *at);
  }
  return places;
}

// The places of the findings of Y01 of one severity, by rank.
std::map<std::int32_t, std::size_t> divergences(const Checked& verdict, Severity severity) {
  std::map<std::int32_t, std::size_t> places;
  for (const Diagnostic& finding : verdict.of(Family::Replay)) {
    if (finding.rule == "Y01" && finding.severity == severity)
      places.emplace(finding.witness.tasks.front().rank, finding.witness.tasks.front().index);
  }
  return places;
}

RC_GTEST_PROP(Replays, ThatHarmNobodyAreWarnedOfOnTheirRankUnderAnyPlan, ()) {
  Declared sound = *sound_planned();
  const auto swapped = swap_forwards_in_the_replays(sound.schedule);
  for (const std::optional<PlanKind> plan :
       {std::optional(PlanKind::Te), std::optional(PlanKind::Safe), std::optional<PlanKind>()}) {
    sound.options.plan.kind = plan;
    const Checked verdict = checked(sound);
    RC_ASSERT(verdict.accepted());
    RC_ASSERT(verdict.result.diagnostics.kept().size() == swapped.size());
    RC_ASSERT(divergences(verdict, Severity::Warning) == swapped);
  }
}

// A plan's faults of order, none of which is in the capture.
RC_GTEST_PROP(Replays, ThatHarmAreAnErrorOnTheirRankAlone, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || (broken->rule != "B01" && broken->rule != "B02" && broken->rule != "B03"))
      continue;
    Declared declared = sound;
    const auto at = static_cast<std::size_t>(broken->place->rank);
    RankOrder& rank = declared.schedule.ranks[at];
    rank.replay = broken->subject.schedule.ranks[at].order;
    std::size_t parting = 0;
    while (rank.order[parting].action() == (*rank.replay)[parting].action()) ++parting;
    const auto swapped = swap_forwards_in_the_replays(declared.schedule);
    const Checked verdict = checked(declared);
    const std::map<std::int32_t, std::size_t> harmed{{broken->place->rank, parting}};
    RC_ASSERT(!verdict.accepted());
    RC_ASSERT(divergences(verdict, Severity::Error) == harmed);
    RC_ASSERT(divergences(verdict, Severity::Warning) == swapped);
  }
}

// A fault of the capture is not the replay's doing.
RC_GTEST_PROP(Replays, ThatHarmNobodyLeaveTheFaultsOfTheCaptureTheirRules, ()) {
  const Declared sound = *sound_planned();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const PlanFault& fault : plan_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || broken->rule == "Y01" || broken->rule == "Y06") continue;
    const auto swapped = swap_forwards_in_the_replays(broken->subject.schedule);
    const auto here = swapped.find(broken->place->rank);
    if (here != swapped.end() && broken->place->index - here->second <= 1) continue;  // it moved
    const Checked verdict = checked(broken->subject);
    RC_ASSERT(reports(verdict, *broken));
    RC_ASSERT(divergences(verdict, Severity::Error).empty());
    RC_ASSERT(divergences(verdict, Severity::Warning) == swapped);
  }
}

// The actions of a rank as numbers, by their places in its order of capture.
std::vector<int> places_at_capture(const RankOrder& rank, const std::vector<Entry>& order) {
  std::vector<int> places;
  for (const Entry& entry : order) {
    const auto at = std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& other) {
      return other.action() == entry.action();
    });
    places.push_back(static_cast<int>(at - rank.order.begin()));
  }
  return places;
}

// Replays the microbatches of each rank in another order: what was of the first is of another.
void rotate_microbatches(Schedule& schedule) {
  const std::int32_t by = *rc::gen::inRange<std::int32_t>(0, *schedule.microbatches);
  for (RankOrder& rank : schedule.ranks) {
    rank.replay = rank.order;
    for (Entry& entry : *rank.replay)
      entry.microbatch = (entry.microbatch + by) % *schedule.microbatches;
  }
}

// Both orders are sound, and every rank replays all that it has captured.
RC_GTEST_PROP(Replays, ReloadFromAStashForWhomTheOracleSays, ()) {
  Declared declared = *sound_planned();
  declared.options.plan = {.kind = std::nullopt, .paged_stash = true};
  rotate_microbatches(declared.schedule);
  std::map<std::int32_t, std::size_t> expected;
  for (std::size_t r = 0; r < declared.schedule.ranks.size(); ++r) {
    const RankOrder& rank = declared.schedule.ranks[r];
    const auto misled = oracle::misled_reloads(places_at_capture(rank, rank.order),
                                               places_at_capture(rank, *rank.replay));
    if (!misled.empty())
      expected.emplace(static_cast<std::int32_t>(r), static_cast<std::size_t>(misled.front()));
  }
  const Checked verdict = checked(declared);
  std::map<std::int32_t, std::size_t> found;
  for (const Diagnostic& finding : verdict.of(Family::Replay)) {
    if (finding.rule != "Y06") continue;
    const WitnessEntry& graph = finding.witness.tasks.front();
    found.emplace(graph.rank, graph.index);
  }
  RC_CLASSIFY(!expected.empty());
  RC_ASSERT(found == expected);
  RC_ASSERT(verdict.accepted() == expected.empty());
}

}  // namespace
}  // namespace capo::testing
