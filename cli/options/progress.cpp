#include "cli/options/progress.h"

#include "cli/options/files.h"

#include <fmt/format.h>

#include <unistd.h>

#include <new>
#include <system_error>
#include <utility>

namespace capo::cli {

Progress::Progress(std::string activity, std::uint64_t total)
    : activity_(std::move(activity)), total_(total), began_(std::chrono::steady_clock::now()) {
  if (isatty(STDERR_FILENO) == 0) return;
  try {
    watcher_ = std::thread([this] {
      try {
        watch();
      } catch (const std::bad_alloc&) {
        // The line is not worth the work that may still find memory.
      }
    });
  } catch (const std::system_error&) {
    // The system has no thread left, which is no reason to stop working.
  }
}

Progress::~Progress() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stop_.notify_all();
  watcher_.join();
}

std::string Progress::line(std::int64_t seconds) const {
  std::string line = "capo: " + activity_;
  if (total_ > 0) {
    line += fmt::format(", {} of {}", done_.load(std::memory_order_relaxed), total_);
  }
  return line + fmt::format(", {} s", seconds);
}

void Progress::watch() {
  using namespace std::chrono_literals;
  bool shown = false;
  std::unique_lock lock(mutex_);
  for (auto pause = 1000ms; !stop_.wait_for(lock, pause, [this] { return stopped_; });
       pause = 250ms) {
    const auto elapsed = std::chrono::steady_clock::now() - began_;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
    print_stderr("\r\033[K" + line(seconds));
    shown = true;
  }
  if (shown) print_stderr("\r\033[K");
}

}  // namespace capo::cli
