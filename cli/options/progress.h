// A line on standard error for whoever watches a command that takes longer than a second.
//
//   capo: sweep, 412 of 1000, 3 s
//
// A thread of its own writes it, to a terminal only and a few times a second, so that no work has
// to be cut into pieces for it. The line is wiped when the work is done. An interrupted command
// leaves it. Tested by tests/cli/options/progress_test.cpp.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace capo::cli {

class Progress {
 public:
  /// `total` is the number of things to do; 0: it is not known.
  explicit Progress(std::string activity, std::uint64_t total = 0);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void set(std::uint64_t done) { done_.store(done, std::memory_order_relaxed); }

  /// The line after so many seconds.
  [[nodiscard]] std::string line(std::int64_t seconds) const;

 private:
  void watch();

  std::string activity_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::chrono::steady_clock::time_point began_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread watcher_;
};

}  // namespace capo::cli
