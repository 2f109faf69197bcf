// The real program in a world that fails at one chosen place: the n-th allocation, or the n-th call
// for a file. What such a run did can be compared with the run in which nothing failed.
//
//   FailingWorld world({"check", "plan.order"}, folder);
//   const FailedRun sound = world.run({});
//   const FailedRun failed = world.run({.failure = Failure::NoMemory, .at = 17});
//
// One process is started and forks before main() for every run (preload.cpp). Not for
// programs built with a sanitizer, which have allocators of their own.

#pragma once

#include "tests/failing/ledger.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace capo::failing {

struct FailedRun {
  testing_support::Outcome outcome;          ///< after a signal its exit code is 128 + N
  std::map<std::string, std::string> files;  ///< all that lies in the folder then: name, bytes
  std::uint64_t allocations = 0;
  std::int64_t live = 0;      ///< allocations that were never given back
  bool left_at_once = false;  ///< without giving anything back, as where nothing can be caught
  std::uint64_t file_calls = 0;
  std::string call;                  ///< the call for a file that failed
  std::vector<std::uint32_t> sites;  ///< call sites of allocations, as many as the ledger holds
};

class FailingWorld {
 public:
  /// `files` lie in the folder where the program runs before every run; nothing else does.
  FailingWorld(const std::vector<std::string>& arguments, std::map<std::string, std::string> files,
               const char* program = CAPO_EXECUTABLE);
  ~FailingWorld();
  FailingWorld(const FailingWorld&) = delete;
  FailingWorld& operator=(const FailingWorld&) = delete;

  [[nodiscard]] FailedRun run(const FailingOrder& order);

 private:
  void lay_out() const;

  testing_support::ScratchFolder scratch_;  // holds capo's files
  std::map<std::string, std::string> files_;
  FailingLedger* ledger_ = nullptr;
  int orders_ = -1;
  int statuses_ = -1;
  int out_ = -1;
  int err_ = -1;
  pid_t server_ = -1;
};

}  // namespace capo::failing
