#include "run/replay_mean.h"

#include "core/base/assert.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace capo::run {

void ReplayMean::add(const ReplayTimes& times) {
  if (++count_ == 1) {
    sum_ = times;
    return;
  }
  CAPO_ASSERT(times.timeline.size() == sum_.timeline.size(), "replays of one program");
  sum_.replay += times.replay;
  sum_.begin += times.begin;
  sum_.end += times.end;
  sum_.busy += times.busy;
  sum_.launch += times.launch;
  // A sum of times since an epoch would be more than a number holds.
  later_ += static_cast<double>(times.beginning.nanoseconds - sum_.beginning.nanoseconds);
  sum_.beginning.doubt = std::max(sum_.beginning.doubt, times.beginning.doubt);
  for (std::size_t i = 0; i < times.timeline.size(); ++i) {
    sum_.timeline[i].begin += times.timeline[i].begin;
    sum_.timeline[i].end += times.timeline[i].end;
  }
}

ReplayTimes ReplayMean::mean() const {
  CAPO_ASSERT(count_ > 0, "a mean is of something");
  const auto count = static_cast<double>(count_);
  ReplayTimes mean = sum_;
  for (double* time : {&mean.replay, &mean.begin, &mean.end, &mean.busy, &mean.launch}) {
    *time /= count;
  }
  mean.beginning.nanoseconds += static_cast<std::int64_t>(std::llround(later_ / count));
  for (Measured& measured : mean.timeline) {
    measured.begin /= count;
    measured.end /= count;
  }
  return mean;
}

}  // namespace capo::run
