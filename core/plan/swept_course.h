// The course of a step whose transfers add_transfers() puts in, run without a task graph: events
// come in the order of its sweep, each behind all that it waits for.
//
//   rank 0 runs F0, its output goes to rank 1     work(F0), receiving(for F0 on 1), sent(F0)
//
// Visitors look at one rank's memory at a time, so a clock tells of the streams of that rank, and
// of what it has sent how much has arrived, and of nothing else. That much follows from clocks by
// rank and not by stream:
//
//   one communicator a rank    all that a rank learns comes over it, in its order. A clock by rank
//                              tells how far each communicator is, and a computation knows what
//                              the last receive knew whose tensor this rank has read.
//   one for each pair or edge  a rank learns of others only when a computation reads a tensor, and
//                              then what the last computation in front of the send knew; a pair's
//                              also that what was issued in front of that send is over.
//
// Clocks of work are those of run_graph(). A clock of a send or receive knows the computations of
// its rank that are over, as there, and may know less of transfers: what it does not order may
// be ordered, as far as transfers themselves write what others read. Time goes with the actions
// times ranks, memory with ranks times ranks and tensors on their way. Tested by
// swept_course_test.cpp, which holds it against run_graph().

#pragma once

#include "core/graph/stage_map.h"
#include "core/model/environment.h"
#include "core/plan/course.h"

#include <cstdint>
#include <vector>

namespace capo {

/// Orders of computations alone, whose transfers are all put in, and travel over communicators that
/// are made before the step and, if buffered, hold any number of messages.
struct SweptTransfers {
  const Schedule* schedule = nullptr;
  std::int32_t microbatches = 0;
  Communicators layout = Communicators::PerRank;  ///< or PerPair or PerEdge
  TransferMode mode = TransferMode::Rendezvous;
};

/// `delay` lists every rank's chunks. Precondition: every action finds its place in a sweep.
void run_swept(const BufferTable& table, const StageMap& map, const SweptTransfers& transfers,
               const std::vector<std::vector<Delay>>& delay, CourseVisitor& visitor);

}  // namespace capo
