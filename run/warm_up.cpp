// The warming up of replays.h: a device's clock goes down under load, so that a replay which counts
// comes behind others, for as long as the options say. With rests the device is idle half of that
// time, as in a step that waits for others.

#include "run/replays.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>

namespace capo::run {

// Replays once, and rests as long if that is asked for; in so many microseconds, with the rest.
double RunLoop::warm_up_once(const std::string& label, Stepper& stepper) {
  double took = 0;
  rounds_.push_back(timed([&] {
    engine_.label(label);
    took = replay_once(stepper);
    if (!options_.rests) return;
    engine_.label(fmt::format("a rest before {}", label));
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(took));
  }));
  return options_.rests ? 2 * took : took;
}

// Processes replay equally often, as the first of them asks for by how long it took it once.
void RunLoop::warm_up(const std::string& label, Stepper& stepper) {
  constexpr double kMicroseconds = 1e6;
  const double wanted = options_.warm_up * kMicroseconds;
  if (wanted <= 0 || failed()) return;
  warm_up_once(label, stepper);  // the first may be slow
  const double took = warm_up_once(label, stepper);
  const double further = took > 0 ? std::ceil(wanted / took) - 1 : 0;
  auto count = static_cast<std::uint64_t>(std::max(further, 0.0));
  if (options_.processes != nullptr) {
    const auto asked = options_.processes->spread(std::to_string(count));
    if (!asked) return;  // the replay that follows tells who is silent
    count = std::stoull(*asked);
  }
  for (std::uint64_t i = 0; i < count && !failed(); ++i) warm_up_once(label, stepper);
}

}  // namespace capo::run
