// Which op of a program is over for certain before another begins.
//
// A clock for each op: how many ops of each stream are over before it, by the order of its own
// stream and by what it waits for. Streams times ops in memory. Tested by
// tests/run/execute/clocks_test.cpp.

#pragma once

#include "run/execute/program.h"

#include <cstdint>
#include <vector>

namespace capo::run {

class Clocks {
 public:
  explicit Clocks(const Program& program);

  [[nodiscard]] bool before(std::uint32_t first, std::uint32_t second) const {
    return over_[second * streams_ + stream_[first]] >= position_[first];
  }

 private:
  std::size_t streams_;
  std::vector<std::uint32_t> stream_;    // by op
  std::vector<std::uint32_t> position_;  // by op: the how manyth of its stream, from 1
  std::vector<std::uint32_t> over_;      // by op and stream
};

}  // namespace capo::run
