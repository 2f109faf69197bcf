// What the faults of transfers share: finding a transfer and its other end, and taking entries out
// of an order and putting them in.

#pragma once

#include "core/order/schedule.h"
#include "testing/edits/entries.h"

#include <optional>
#include <vector>

namespace capo::testing::faults {

/// The transfers of all ranks' orders of one kind.
[[nodiscard]] std::vector<EntryPlace> transfers_of(const Schedule& schedule, Kind kind);
/// Those of either kind of send.
[[nodiscard]] std::vector<EntryPlace> sends_of(const Schedule& schedule);

/// The receive that a send is meant for, which the schedule has.
[[nodiscard]] EntryPlace receive_of(const Schedule& schedule, EntryPlace send);
/// The computation that makes what a send carries, which the schedule has.
[[nodiscard]] EntryPlace maker_of(const Schedule& schedule, EntryPlace send);
/// The computation that reads what a receive gets, which the schedule has.
[[nodiscard]] EntryPlace reader_of(const Schedule& schedule, EntryPlace receive);

/// Removes an entry; what is left of its composite stays one.
Entry take_out(Schedule& schedule, EntryPlace place);
/// Puts an entry before the one at `place`, before its composite if it is in one.
EntryPlace put_before(Schedule& schedule, EntryPlace place, Entry entry);
/// Puts an entry behind the one at `place`, behind its composite if it is in one.
EntryPlace put_behind(Schedule& schedule, EntryPlace place, Entry entry);

}  // namespace capo::testing::faults
