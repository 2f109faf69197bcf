// The warming up of replays.h: a device's clock goes down under load, so that a replay which counts
// comes behind others, for as long as the options say. It goes on to fall and to rise then, so the
// replays of the second half count with it. With rests the device is idle half of that time, as in
// a step that waits for others.

#include "run/replays.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>

namespace capo::run {

// Replays once, and rests as long if that is asked for.
ReplayTimes RunLoop::warm_up_once(const std::string& label, Stepper& stepper) {
  engine_.label(label);
  ReplayTimes times = replay_once(stepper);
  if (!options_.rests) return times;
  engine_.label(fmt::format("a rest before {}", label));
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(times.replay));
  return times;
}

// Processes replay equally often, as the first of them asks for by how long it took it once.
void RunLoop::warm_up(const std::string& label, Stepper& stepper, ReplayMean& counted) {
  constexpr double kMicroseconds = 1e6;
  const double wanted = options_.warm_up * kMicroseconds;
  if (wanted <= 0 || failed()) return;
  warm_up_once(label, stepper);  // the first may be slow
  ReplayTimes times;
  const double second = timed([&] { times = warm_up_once(label, stepper); });
  const double took = options_.rests ? 2 * times.replay : times.replay;
  const double further = took > 0 ? std::ceil(wanted / took) - 1 : 0;
  auto count = static_cast<std::uint64_t>(std::max(further, 0.0));
  if (options_.processes != nullptr) {
    const auto asked = options_.processes->spread(std::to_string(count));
    if (!asked) return;  // the replay that follows tells who is silent
    count = std::stoull(*asked);
  }
  if (count == 0) rounds_.push_back(second);  // nothing else tells
  for (std::uint64_t i = 0; i < count && !failed(); ++i) {
    const double round = timed([&] { times = warm_up_once(label, stepper); });
    if (i < count / 2 || failed()) continue;
    rounds_.push_back(round);
    counted.add(times);
  }
}

}  // namespace capo::run
