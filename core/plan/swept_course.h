// The course of a step whose transfers add_transfers() puts in, run without a task graph, and rank
// by rank.
//
//   rank 0 runs F0, its output goes to rank 1     0: work(F0), sent(F0)     1: receiving(for F0)
//
// Visitors look at one rank's memory at a time, so a clock tells of the streams of that rank, and
// of what it has sent how much has arrived, and of nothing else. The order of a rank's events is
// that of one sweep over all ranks, which is kept (swept_log.h); what a rank knows of its
// neighbours at each of them follows from the places at which ranks meet (hearsay.h). So one rank's
// course is run after another's, or beside it on another thread, with no more at hand than that
// rank's memory.
//
// Clocks of work are those of run_graph(). A clock of a send or receive knows the computations of
// its rank that are over, as there, and may know less of transfers: what it does not order may
// be ordered, as far as transfers themselves write what others read. Time and memory go with the
// actions. Tested by swept_course_test.cpp, which holds it against run_graph().

#pragma once

#include "core/graph/stage_map.h"
#include "core/order/ids.h"
#include "core/plan/course.h"
#include "core/plan/hearsay.h"
#include "core/plan/neighbours.h"
#include "core/plan/swept_log.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace capo {

class SweptCourse {
 public:
  /// `log` is that of the schedule, and `delay` lists every rank's chunks. All outlive the course.
  SweptCourse(const StageMap& map, const SweptTransfers& transfers,
              const std::vector<std::vector<Delay>>& delay, std::shared_ptr<const SweptLog> log);
  SweptCourse(const SweptCourse&) = delete;
  SweptCourse& operator=(const SweptCourse&) = delete;

  [[nodiscard]] std::size_t ranks() const { return log_->ranks.size(); }
  /// The work of one rank, in the order of launch.
  [[nodiscard]] std::vector<Work> work_of(RankId rank) const;
  /// Tells what happens to one rank. Ranks may be told of on several threads.
  void run(const BufferTable& table, RankId rank, CourseVisitor& visitor) const;

 private:
  friend class RankCourse;

  const StageMap& map_;
  SweptTransfers transfers_;
  const std::vector<std::vector<Delay>>& delay_;
  std::shared_ptr<const SweptLog> log_;
  Hearsay hearsay_;
};

}  // namespace capo
