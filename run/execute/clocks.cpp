// The clocks of program.h.

#include "run/execute/program.h"

#include <algorithm>

namespace capo::run {

Clocks::Clocks(const Program& program)
    : streams_(program.rank_of_stream.size()), over_(program.ops.size() * streams_, 0) {
  constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<std::uint32_t> last(streams_, kNone);
  for (std::uint32_t id = 0; id < program.ops.size(); ++id) {
    const std::uint32_t stream = program.ops[id].stream;
    const auto join = [&](std::uint32_t before) {
      for (std::size_t s = 0; s < streams_; ++s) {
        std::uint32_t& mine = over_[id * streams_ + s];
        mine = std::max(mine, over_[before * streams_ + s]);
      }
      std::uint32_t& mine = over_[id * streams_ + stream_[before]];
      mine = std::max(mine, position_[before]);
    };
    if (last[stream] != kNone) join(last[stream]);
    for (const std::uint32_t before : program.waits[id]) join(before);
    stream_.push_back(stream);
    position_.push_back(last[stream] == kNone ? 1 : position_[last[stream]] + 1);
    last[stream] = id;
  }
}

}  // namespace capo::run
