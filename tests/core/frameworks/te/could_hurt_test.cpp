// te_could_hurt() against the plan that it stands for: on every list of up to eight entries over
// two chunks that is in order by itself, on every one of two chunks with two microbatches and all
// weight gradients, and on longer ones at random.
//
// The two may differ in one case: an order with two weight gradients of one chunk outstanding has
// hazards under the plan, and hurts nobody, since TE cannot capture it.

#include "core/frameworks/te/reuse.h"
#include "core/rules/check.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::check_in;
using testing_support::check_te;

constexpr std::size_t kMostChunks = 3;

// The lists whose chunks have `microbatches` each and delay their weight gradients as said.
struct Shape {
  std::size_t chunks;
  int microbatches;
  std::array<bool, kMostChunks> delayed;

  [[nodiscard]] std::size_t entries() const {
    std::size_t entries = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      entries += static_cast<std::size_t>(microbatches) * (delayed[c] ? 3 : 2);
    }
    return entries;
  }
};

// A list on its way: how often each chunk has run forward, backward and its weight gradient.
class Walk {
 public:
  explicit Walk(const Shape& shape) : shape_(shape) {}

  [[nodiscard]] std::vector<double> next() const {
    std::vector<double> next;
    for (std::size_t c = 0; c < shape_.chunks; ++c) {
      const auto chunk = static_cast<double>(c + 1);
      const auto& [forwards, backwards, weights] = done_[c];
      if (forwards < shape_.microbatches) next.push_back(chunk);
      if (backwards < forwards) next.push_back(-chunk);
      if (shape_.delayed[c] && weights < backwards) next.push_back(-chunk - 0.5);
    }
    return next;
  }
  void take(double entry) {
    change(entry, 1);
    list_.push_back(entry);
    const auto& [forwards, backwards, weights] = done_[chunk_of(entry)];
    const bool outstanding = shape_.delayed[chunk_of(entry)] && backwards - weights > 1;
    outstanding_.push_back(outstanding);
  }
  void take_back() {
    change(list_.back(), -1);
    list_.pop_back();
    outstanding_.pop_back();
  }
  /// Whether two weight gradients of one chunk were outstanding at some point.
  [[nodiscard]] bool beyond_capture() const {
    return std::find(outstanding_.begin(), outstanding_.end(), true) != outstanding_.end();
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const double entry : list_) {
      const int whole = static_cast<int>(entry);
      text += (text.empty() ? "[" : ", ") + std::to_string(whole) +
              (static_cast<double>(whole) == entry ? "" : ".5");
    }
    return text + "]";
  }

 private:
  static std::size_t chunk_of(double entry) {
    return static_cast<std::size_t>(std::abs(static_cast<int>(entry))) - 1;
  }
  void change(double entry, int by) {
    const bool half = static_cast<double>(static_cast<int>(entry)) != entry;
    done_[chunk_of(entry)][entry > 0 ? 0 : half ? 2 : 1] += by;
  }

  Shape shape_;
  std::array<std::array<int, 3>, kMostChunks> done_{};
  std::vector<double> list_;
  std::vector<bool> outstanding_;
};

void compare(const Walk& walk) {
  const std::string text = walk.text();
  const auto checked = check_in({.plan = {.kind = PlanKind::Te}}, text);
  ASSERT_TRUE(checked.result.plan.has_value()) << text;
  const bool hazards = !checked.result.plan->hazards.empty();
  EXPECT_EQ(te_could_hurt(checked.input.schedule.ranks.front()), hazards && !walk.beyond_capture())
      << text;
}

std::size_t compare_all(Walk& walk) {
  const std::vector<double> next = walk.next();
  if (next.empty()) {
    compare(walk);
    return 1;
  }
  std::size_t lists = 0;
  for (const double entry : next) {
    walk.take(entry);
    lists += compare_all(walk);
    walk.take_back();
  }
  return lists;
}

TEST(TeCouldHurt, IsThePlansAnswerOnEverySmallList) {
  std::size_t lists = 0;
  for (const std::size_t chunks : {1U, 2U}) {
    for (int microbatches = 1; microbatches <= 4; ++microbatches) {
      for (const bool first : {false, true}) {
        for (const bool second : {false, true}) {
          const Shape shape{chunks, microbatches, {first, second}};
          if (shape.entries() > 8 || (chunks == 1 && second)) continue;
          Walk walk(shape);
          lists += compare_all(walk);
        }
      }
    }
  }
  EXPECT_GT(lists, 300U);
}

TEST(TeCouldHurt, IsThePlansAnswerWhereTwoChunksDelayTwoMicrobatches) {
  Walk walk({2, 2, {true, true}});
  EXPECT_EQ(compare_all(walk), 23100U);
}

TEST(TeCouldHurt, IsThePlansAnswerOnLongListsAtRandom) {
  constexpr std::uint32_t kSeed = 26;
  std::mt19937 random(kSeed);
  const auto below = [&random](std::size_t end) { return random() % end; };
  for (int i = 0; i < 2000; ++i) {
    Walk walk({1 + below(kMostChunks),
               static_cast<int>(1 + below(6)),
               {below(4) > 0, below(4) > 0, below(4) > 0}});
    for (auto next = walk.next(); !next.empty(); next = walk.next()) {
      // Weight gradients come soon as a rule, so that TE can capture many of the lists.
      const auto half = std::find_if(next.begin(), next.end(), [](double entry) {
        return static_cast<double>(static_cast<int>(entry)) != entry;
      });
      walk.take(half != next.end() && below(3) > 0 ? *half : next[below(next.size())]);
    }
    compare(walk);
  }
}

TEST(TeCouldHurt, IsFalseOfAnOrderThatTeCannotCapture) {
  const auto checked = check_te("[1, 1, -1, -1, -1.5, -1.5]");
  EXPECT_TRUE(checked.accepted());
  EXPECT_FALSE(te_could_hurt(checked.input.schedule.ranks.front()));
}

}  // namespace
}  // namespace capo
