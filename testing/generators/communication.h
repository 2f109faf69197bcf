// Schedules of several ranks with the way in which they communicate: steps that finish, and in
// which every message arrives where it is meant to.
//
// Distribution: one in two writes its transfers, a sound_named_schedule() of two or more wired
// ranks with those that PyTorch adds. Of the layout of communicators and the kind of send it
// declares each with even chances, whether or not it does the other: any of the three layouts, or
// of the two kinds, equally likely. The other one in two writes none, and Megatron-LM's calls are
// asked for: the runtime's order for 2 to 4 ranks and from as many microbatches as ranks to twice
// as many and two more; three in four with 1 to 3 virtual stages, in groups of as many as ranks to
// two more, and one in three of these with the overlap of expert parallelism. All numbers are
// equally likely, and what Megatron refuses is drawn again. The calls are, each equally likely
// where it applies: overlapped where there are virtual stages, in a batch where there are more than
// two ranks or no more than one chunk, and overlapped with the flush and a communicator for each
// pair where there are several chunks. No groups.
//
// Shrinking: a microbatch goes, where transfers are written. Tested by communication_test.cpp.

#pragma once

#include "core/model/environment.h"
#include "core/model/model.h"
#include "core/order/schedule.h"
#include "testing/generators/dice.h"

#include <iosfwd>
#include <vector>

namespace capo::testing {

struct Communication {
  Schedule schedule;
  Environment environment;
  std::vector<CollectiveGroup> groups;
};

[[nodiscard]] rc::Gen<Communication> sound_communication();

/// For rapidcheck: .order text, with what is declared in comments above it.
void showValue(const Communication& communication, std::ostream& out);

}  // namespace capo::testing
