// A thread that acts when something takes too long: NCCL waits for ever, in kernels and on the
// host, and only another thread can end that.
//
//   Watchdog dog(std::chrono::seconds(60), [&] { note_what_waits(); }, [all] { all->abort(); });
//   dog.watch();   from here on, and from each progress() on, it must not take longer
//   dog.rest();    nothing is watched
//
// It acts once: the first function is over before the watchdog is gone, the second may go on after
// that, since NCCL may wait in it too. A clock decides when to give up and nothing else.

#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace capo::gpu {

class Watchdog {
 public:
  using Duration = std::chrono::duration<double>;

  Watchdog(Duration timeout, std::function<void()> first, std::function<void()> then);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch();
  /// Puts the end off, if something is watched.
  void progress();
  void rest();

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace capo::gpu
