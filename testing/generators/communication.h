// Schedules of several ranks with the way in which they communicate: steps that finish, and in
// which every message arrives where it is meant to.
//
// Distribution: one in two writes its transfers, a sound_named_schedule() of two or more wired
// ranks with those that PyTorch adds, and is relative to any of the three layouts of communicators
// and either kind of send, or declares neither. The other writes none, and Megatron-LM's calls are
// asked for: the runtime's order for 2 to 4 ranks, no virtual stages or 1 to 3, and groups and
// microbatches that Megatron accepts, up to twice the ranks and two more; overlapped calls where
// there are virtual stages, calls in a batch where there are more than two ranks or no more than
// one chunk, and overlapped ones with the flush and a communicator for each pair where there are
// several chunks. No groups.
//
// Shrinking: a microbatch goes, where transfers are written. Tested by communication_test.cpp.

#pragma once

#include <capo/core/graph/environment.h>
#include <capo/core/model/model.h>
#include <capo/core/order/schedule.h>
#include <capo/testing/generators/dice.h>

#include <iosfwd>
#include <vector>

namespace capo::testing {

struct Communication {
  Schedule schedule;
  Environment environment;
  std::vector<CollectiveGroup> groups;
};

[[nodiscard]] rc::Gen<Communication> sound_communication();

/// For rapidcheck: as .order text, with the flags of `capo check`.
void showValue(const Communication& communication, std::ostream& out);

}  // namespace capo::testing
