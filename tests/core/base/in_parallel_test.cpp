#include "core/base/in_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace capo {
namespace {

TEST(InParallel, DoesEveryPieceOnce) {
  for (const unsigned threads : {1u, 2u, 8u}) {
    std::vector<std::atomic<int>> done(100);
    in_parallel(done.size(), threads, [&](std::size_t piece) { ++done[piece]; });
    for (const auto& times : done) EXPECT_EQ(times, 1) << threads;
  }
}

TEST(InParallel, OfOneThreadIsTheCallers) {
  in_parallel(3, 1, [caller = std::this_thread::get_id()](std::size_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
}

TEST(InParallel, IsWorthThreadsFromAMillionThingsOn) {
  EXPECT_EQ(threads_worth(0), 1U);
  EXPECT_EQ(threads_worth(999'999), 1U);
  EXPECT_EQ(threads_worth(1'000'000), std::max(std::thread::hardware_concurrency(), 1U));
}

TEST(InParallel, ThrowsAgainWhatAPieceThrew) {
  for (const unsigned threads : {1u, 4u}) {
    const auto fails = [](std::size_t piece) {
      if (piece == 7) throw std::runtime_error("seven");
    };
    EXPECT_THROW(in_parallel(20, threads, fails), std::runtime_error) << threads;
  }
}

}  // namespace
}  // namespace capo
