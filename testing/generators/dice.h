// The random choices of a generator, in the words in which its head comment states them, and the
// one way in which a drawing function becomes a rapidcheck generator.
//
//   rc::Gen<Order> order() { return generator(draw_order, smaller_orders); }
//
// A generator here looks at the random numbers only, not at rapidcheck's size: what it makes is
// small at any size. Tested by dice_test.cpp.

#pragma once

#include "core/base/index.h"

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace capo::testing {

class Dice {
 public:
  explicit Dice(rc::Random random) : random_(std::move(random)) {}

  /// 0 to count - 1, each equally likely; count is at least 1.
  [[nodiscard]] std::size_t below(std::size_t count) { return random_.next() % count; }
  /// Draws a number from Draws a number from `low` to `high`, both included.
  [[nodiscard]] std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(below(as_index(high - low) + 1));
  }
  /// True once in `count` times.
  [[nodiscard]] bool one_in(std::size_t count) { return below(count) == 0; }
  template <typename T>
  [[nodiscard]] T pick(std::span<const T> from) {
    return from[below(from.size())];
  }

 private:
  rc::Random random_;
};

/// `draw` makes a value from a Dice; `smaller` lists the values to try instead of one that fails a
/// property, the boldest first, and is asked again about the first of them that fails it too. It
/// must not go in circles.
template <typename Draw, typename Smaller>
auto generator(Draw draw, Smaller smaller) {
  using Value = std::invoke_result_t<Draw, Dice&>;
  return rc::Gen<Value>([draw, smaller](const rc::Random& random, int /*size*/) {
    Dice dice(random);
    return rc::shrinkable::shrinkRecur(draw(dice), [smaller](const Value& value) {
      return rc::seq::fromContainer(smaller(value));
    });
  });
}

}  // namespace capo::testing
