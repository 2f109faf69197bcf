// Written waits: what is waited for once and behind its send is sound, and waits that stand
// anywhere end as the executor says that shares no code with capo.

#include "core/graph/lowered.h"
#include "testing/edits/transfers.h"
#include "testing/generators/moved_transfers.h"
#include "testing/generators/sound_schedule.h"
#include "testing/laws/checked.h"
#include "testing/oracle_pipeline.h"
#include "tests/properties/every_environment.h"
#include "tests/support/check_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::check_in;
using testing_support::Checked;

Entry wait_for(Entry send) {
  send.kind = send.kind == Kind::SendForward ? Kind::WaitSendForward : Kind::WaitSendBackward;
  send.group = Group::Alone;
  return send;
}

// A sound schedule of several ranks with transfers, drawn anew until there is one.
Schedule communicating() {
  const Schedule schedule = *sound_named_schedule();
  RC_PRE(schedule.topology != Topology::Independent && schedule.ranks.size() > 1);
  return with_transfers(schedule);
}

// They stand behind each other at the end of their ranks.
RC_GTEST_PROP(Waits, ForEverySendAtTheEndAreSound, ()) {
  Schedule schedule = communicating();
  for (const Position& send : sends_of(schedule)) {
    auto& order = schedule.ranks[send.rank].order;
    order.push_back(wait_for(order[send.at]));
  }
  for (const Environment& environment : environments()) {
    const Checked checked = check_schedule(schedule, environment);
    if (!checked.accepted()) RC_FAIL(fmt::format("[{}]", fmt::join(checked.findings(), " ")));
  }
}

// Puts waits for sends anywhere: for some none, for others several, also ahead of the send.
void put_waits_into(Schedule& schedule) {
  std::vector<std::pair<std::size_t, Entry>> waits;
  for (const Position& send : sends_of(schedule)) {
    const int copies = *rc::gen::weightedElement<int>({{1, 0}, {30, 1}, {1, 2}});
    for (int k = 0; k < copies; ++k)
      waits.emplace_back(send.rank, wait_for(schedule.ranks[send.rank].order[send.at]));
  }
  for (const auto& [rank, wait] : waits) {
    auto& order = schedule.ranks[rank].order;
    const bool last = *rc::gen::weightedElement<bool>({{9, true}, {1, false}});
    const auto from = last ? order.size() : order.size() / 2;
    const auto at = *rc::gen::inRange<std::size_t>(from, order.size() + 1);
    if (at < order.size() && order[at].group == Group::Continues) continue;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), wait);
  }
}

struct Counts {
  int sends = 0;
  int waits = 0;
};

// Keys are rank, direction, chunk and microbatch.
std::map<std::tuple<std::size_t, bool, std::int32_t, std::int32_t>, Counts> counts_of(
    const Schedule& schedule) {
  std::map<std::tuple<std::size_t, bool, std::int32_t, std::int32_t>, Counts> counts;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    for (const Entry& entry : schedule.ranks[r].order) {
      if (!is_send(entry.kind) && !is_send_wait(entry.kind)) continue;
      const bool forward = entry.kind == Kind::SendForward || entry.kind == Kind::WaitSendForward;
      Counts& of = counts[{r, forward, entry.chunk, entry.microbatch}];
      ++(is_send(entry.kind) ? of.sends : of.waits);
    }
  }
  return counts;
}

RC_GTEST_PROP(Waits, AnywhereEndAsTheOracleSays, ()) {
  Schedule schedule = communicating();
  put_waits_into(schedule);
  const bool gone = *rc::gen::element(false, false, false, true);
  if (gone) {  // a send and its receive
    const auto sends = sends_of(schedule);
    RC_PRE(!sends.empty());
    const Position send = sends[*rc::gen::inRange<std::size_t>(0, sends.size())];
    take_out(schedule, receive_of(schedule, send));
    take_out(schedule, send);
  }
  bool too_many = false;
  bool left = false;
  bool any = false;
  for (const auto& [name, of] : counts_of(schedule)) {
    too_many = too_many || of.waits > of.sends;
    left = left || of.waits < of.sends;
    any = any || of.waits > 0;
  }
  RC_CLASSIFY(too_many, "too many waits");
  RC_CLASSIFY(left && any, "a send is left");
  RC_PRE(has_transfers(schedule));
  const StageMap map(schedule);
  for (const Environment& environment : environments()) {
    const Checked checked = check_schedule(schedule, environment);
    const bool finishes = oracle::finishes(oracle_pipeline(as_written(schedule), map, environment));
    RC_CLASSIFY(!finishes, "never finishes");
    RC_ASSERT(checked.result.finishes == finishes);
    RC_ASSERT(reports(checked, "T11") == too_many);
    RC_ASSERT(reports(checked, "T12") == (left && any));
    RC_ASSERT(checked.accepted() == (finishes && !too_many && !(left && any)));
  }
}

}  // namespace
}  // namespace capo::testing
