#include "testing/oracle/resets.h"

#include <cstddef>

namespace capo::oracle {

namespace {

using Steps = std::vector<OfResets>;

bool is_replay(const OfResets& step) {
  return step.kind == OfResets::Replay || step.kind == OfResets::Backward;
}

bool same_cell(const OfResets& a, const OfResets& b) {
  return a.chunk == b.chunk && a.microbatch == b.microbatch;
}

bool takes(const OfResets& reset, const OfResets& replay) {
  if (reset.kind != OfResets::Reset || !is_replay(replay)) return false;
  if (reset.chunk == OfResets::kAll) return true;
  return reset.chunk == replay.chunk &&
         (reset.microbatch == OfResets::kAll || reset.microbatch == replay.microbatch);
}

// Whether the graph of a replay is gone when the steps before `end` are over.
bool gone(const Steps& steps, std::size_t end, const OfResets& replay) {
  for (std::size_t at = 0; at < end; ++at) {
    if (takes(steps[at], replay)) return true;
  }
  return false;
}

ResetFault of_replay(const Steps& steps, std::size_t at) {
  if (!gone(steps, at, steps[at])) return ResetFault::None;
  bool begun = false;
  for (std::size_t before = 0; before < at; ++before) {
    if (!is_replay(steps[before]) || !same_cell(steps[before], steps[at])) continue;
    if (gone(steps, before, steps[at])) return ResetFault::None;  // that one is the first
    begun = true;
  }
  return begun ? ResetFault::CutShort : ResetFault::After;
}

ResetFault of_reset(const Steps& steps, std::size_t at) {
  bool any = false;
  for (const OfResets& replay : steps) {
    if (!takes(steps[at], replay)) continue;
    any = true;
    if (!gone(steps, at, replay)) return ResetFault::None;
  }
  return any ? ResetFault::Again : ResetFault::NoGraph;
}

// Whether the gradient that a send takes is that of the last backward.
bool is_last_gradient(const Steps& steps, const OfResets& send) {
  if (send.kind != OfResets::SendGradient) return false;
  for (std::size_t at = steps.size(); at > 0; --at) {
    if (steps[at - 1].kind == OfResets::Backward) return same_cell(steps[at - 1], send);
  }
  return false;
}

ResetFault of_send(const Steps& steps, std::size_t at) {
  if (is_last_gradient(steps, steps[at])) return ResetFault::None;
  for (const OfResets& replay : steps) {
    if (is_replay(replay) && !gone(steps, at, replay)) return ResetFault::None;
  }
  return ResetFault::Sent;
}

ResetFault of_step(const Steps& steps, std::size_t at) {
  if (is_replay(steps[at])) return of_replay(steps, at);
  return steps[at].kind == OfResets::Reset ? of_reset(steps, at) : of_send(steps, at);
}

}  // namespace

std::vector<ResetFault> faults_of_resets(const Steps& steps) {
  std::vector<ResetFault> faults;
  for (std::size_t at = 0; at < steps.size(); ++at) faults.push_back(of_step(steps, at));
  return faults;
}

}  // namespace capo::oracle
