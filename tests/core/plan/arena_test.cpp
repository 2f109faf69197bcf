// The arena against a map of every byte: nothing is given out twice, and gaps are used.

#include "core/plan/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace capo {
namespace {

struct Range {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// An arena beside a map of its bytes, which says what is in use.
class Watched {
 public:
  void take(std::int64_t bytes) {
    const std::int64_t widest = widest_gap();
    const std::int64_t before = arena_.top();
    const std::int64_t offset = arena_.take(bytes);
    ASSERT_GE(offset, 0);
    ASSERT_LE(offset + bytes, arena_.top());
    if (widest >= bytes) {
      EXPECT_EQ(arena_.top(), before) << "a gap was wide enough";
    } else {
      EXPECT_LE(arena_.top(), before + bytes);
    }
    used_.resize(static_cast<std::size_t>(arena_.top()), false);
    for (std::int64_t at = offset; at < offset + bytes; ++at) {
      ASSERT_FALSE(used_[static_cast<std::size_t>(at)]) << "byte " << at << " is in use";
      used_[static_cast<std::size_t>(at)] = true;
    }
    taken_.push_back({.offset = offset, .bytes = bytes});
    alive_ += bytes;
    most_ = std::max(most_, alive_);
  }

  void give_back(std::size_t index) {
    const Range range = taken_[index];
    taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(index));
    arena_.give_back(range.offset, range.bytes);
    for (std::int64_t at = range.offset; at < range.offset + range.bytes; ++at) {
      used_[static_cast<std::size_t>(at)] = false;
    }
    alive_ -= range.bytes;
  }

  [[nodiscard]] std::size_t held() const { return taken_.size(); }
  [[nodiscard]] std::int64_t top() const { return arena_.top(); }
  /// The most bytes that were ever in use at once.
  [[nodiscard]] std::int64_t most() const { return most_; }

 private:
  [[nodiscard]] std::int64_t widest_gap() const {
    std::int64_t widest = 0;
    std::int64_t gap = 0;
    for (const bool used : used_) {
      gap = used ? 0 : gap + 1;
      widest = std::max(widest, gap);
    }
    return widest;
  }

  Arena arena_;
  std::vector<bool> used_;
  std::vector<Range> taken_;
  std::int64_t alive_ = 0;
  std::int64_t most_ = 0;
};

void run_at_random(Watched& watched, std::mt19937& random, std::int64_t largest, int steps) {
  for (int step = 0; step < steps; ++step) {
    const bool takes = watched.held() == 0 || random() % 5 < 3;
    if (takes && watched.held() < 40) {
      watched.take(1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(largest)));
    } else {
      watched.give_back(random() % watched.held());
    }
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Arena, NeverGivesOutWhatIsInUseAndUsesGapsThatAreWideEnough) {
  std::mt19937 random(1);
  for (int run = 0; run < 60; ++run) {
    SCOPED_TRACE(run);
    Watched watched;
    run_at_random(watched, random, 1 + run % 13, 200);
    if (HasFatalFailure()) return;
    EXPECT_GE(watched.top(), watched.most());
  }
}

TEST(Arena, OfOneSizeTakesNoMoreThanIsInUseAtOnce) {
  std::mt19937 random(2);
  for (std::int64_t size = 1; size <= 5; ++size) {
    Watched watched;
    for (int step = 0; step < 1'000; ++step) {
      if (watched.held() == 0 || (random() % 2 == 0 && watched.held() < 30)) {
        watched.take(size);
      } else {
        watched.give_back(random() % watched.held());
      }
      ASSERT_EQ(watched.top(), watched.most());
    }
  }
}

TEST(Arena, TakesTheTightestGapAndOfEquallyTightOnesTheLowest) {
  Arena arena;
  EXPECT_EQ(arena.take(4), 0);
  EXPECT_EQ(arena.take(1), 4);
  EXPECT_EQ(arena.take(2), 5);
  EXPECT_EQ(arena.take(1), 7);
  EXPECT_EQ(arena.take(2), 8);
  EXPECT_EQ(arena.take(1), 10);
  arena.give_back(8, 2);
  arena.give_back(5, 2);
  arena.give_back(0, 4);
  EXPECT_EQ(arena.take(2), 5);
  EXPECT_EQ(arena.take(1), 8) << "of the gap of two";
  EXPECT_EQ(arena.take(2), 0) << "of the gap of four";
  EXPECT_EQ(arena.top(), 11);
}

TEST(Arena, JoinsAGapWithBothNeighbours) {
  Arena arena;
  for (const std::int64_t offset : {0, 3, 6, 9}) EXPECT_EQ(arena.take(3), offset);
  arena.give_back(0, 3);
  arena.give_back(6, 3);
  arena.give_back(3, 3);
  EXPECT_EQ(arena.take(9), 0);
  EXPECT_EQ(arena.top(), 12);
}

TEST(Arena, GrowsOutOfAGapAtItsEnd) {
  Arena arena;
  EXPECT_EQ(arena.take(5), 0);
  EXPECT_EQ(arena.take(3), 5);
  arena.give_back(5, 3);
  EXPECT_EQ(arena.take(4), 5);
  EXPECT_EQ(arena.top(), 9);
}

TEST(Arena, HasNoTopBeforeAnythingIsTaken) {
  EXPECT_EQ(Arena().top(), 0);
}

}  // namespace
}  // namespace capo
