#include "gpu/nccl/communicators.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace capo::gpu {

namespace {

using WatchClock = std::chrono::steady_clock;

}  // namespace

struct Watchdog::State {
  Duration timeout;
  std::function<bool()> first;
  std::function<void()> then;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<WatchClock::time_point> end;
  bool over = false;   // nobody needs it any more
  bool acted = false;  // the first function is over, or nothing will ever be done
  std::thread thread;

  [[nodiscard]] WatchClock::time_point from_now() const {
    return WatchClock::now() + std::chrono::duration_cast<WatchClock::duration>(timeout);
  }
  [[nodiscard]] bool is_late(std::unique_lock<std::mutex>& lock);
};

Watchdog::Watchdog(Duration timeout, std::function<bool()> first, std::function<void()> then)
    : state_(std::make_shared<State>()) {
  state_->timeout = timeout;
  state_->first = std::move(first);
  state_->then = std::move(then);
  state_->thread = std::thread([state = state_] { run(state); });
}

Watchdog::~Watchdog() {
  std::unique_lock lock(state_->mutex);
  state_->over = true;
  state_->changed.notify_all();
  state_->changed.wait(lock, [&] { return state_->acted; });
  state_->thread.detach();
}

void Watchdog::watch() {
  const std::scoped_lock lock(state_->mutex);
  state_->end = state_->from_now();
  state_->changed.notify_all();
}

// The thread finds the later end when it wakes at the earlier one.
void Watchdog::progress() {
  const std::scoped_lock lock(state_->mutex);
  if (state_->end) state_->end = state_->from_now();
}

void Watchdog::rest() {
  const std::scoped_lock lock(state_->mutex);
  state_->end.reset();
}

// Returns at the end that is watched; false if nobody needs the watchdog any more.
bool Watchdog::State::is_late(std::unique_lock<std::mutex>& lock) {
  while (!over && (!end || WatchClock::now() < *end)) {
    if (end) {
      const auto until = *end;  // which rest() may take away meanwhile
      changed.wait_until(lock, until);
    } else {
      changed.wait(lock);
    }
  }
  return !over;
}

void Watchdog::run(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  bool late = state->is_late(lock);
  while (late && !state->first()) {
    state->end = state->from_now();
    late = state->is_late(lock);
  }
  if (!late) {  // what they hold goes before the watchdog does, and not in this thread later
    state->first = nullptr;
    state->then = nullptr;
  }
  state->acted = true;
  state->changed.notify_all();
  lock.unlock();
  if (late) state->then();
}

}  // namespace capo::gpu
