// Finds a transfer and its other end, takes entries out of an order and puts them in.
//
//   send F0 on gpu0   <- receive_of() ->   receive F0 on gpu1   <- reader_of() ->   F0 on gpu1
//
// Composites stay whole: an entry never comes between two members of one.
// Tested by tests/testing/faults/fault_test.cpp through the faults that are made of it.

#pragma once

#include "core/order/schedule.h"
#include "testing/edits/entries.h"

#include <optional>
#include <vector>

namespace capo::testing {

/// All ranks' transfers of one kind.
[[nodiscard]] std::vector<Position> transfers_of(const Schedule& schedule, Kind kind);
/// All ranks' sends, forward and backward.
[[nodiscard]] std::vector<Position> sends_of(const Schedule& schedule);

/// The receive that a send is meant for. Precondition: the schedule has it.
[[nodiscard]] Position receive_of(const Schedule& schedule, Position send);
/// The computation whose output a send carries. Precondition: the schedule has it.
[[nodiscard]] Position maker_of(const Schedule& schedule, Position send);
/// The computation that reads the received message. Precondition: the schedule has it.
[[nodiscard]] Position reader_of(const Schedule& schedule, Position receive);

/// Removes an entry; the rest of its composite stays a composite.
Entry take_out(Schedule& schedule, Position place);
/// Puts an entry before the one at `place`, before its composite if it is in one.
Position put_before(Schedule& schedule, Position place, Entry entry);
/// Puts an entry behind the one at `place`, behind its composite if it is in one.
Position put_behind(Schedule& schedule, Position place, Entry entry);

}  // namespace capo::testing
