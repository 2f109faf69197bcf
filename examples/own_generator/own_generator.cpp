// A generator of one's own, held to capo's laws: 1F1B, and 1F1B with a slip in its cool-down.
#include <capo/core/minimise/settle.h>
#include <capo/testing/generators/shrinking.h>
#include <capo/testing/laws/verdicts.h>

#include <rapidcheck.h>

using namespace capo;

// Rank r warms up with as many forwards as there are ranks behind it.
Schedule one_f_one_b(int ranks, int microbatches, int forgotten) {
  Schedule schedule{.naming = Naming::Named, .topology = Topology::Chain};
  for (int r = 0; r < ranks; ++r) {
    auto& order = schedule.ranks.emplace_back().order;
    const int warm_up = std::min(ranks - r - 1, microbatches);
    for (int m = 0; m < microbatches + warm_up; ++m) {
      if (m < microbatches) order.push_back({.chunk = 1, .microbatch = m, .kind = Kind::Forward});
      if (m >= warm_up && m - warm_up < microbatches - (r == 0 ? forgotten : 0))
        order.push_back({.chunk = 1, .microbatch = m - warm_up, .kind = Kind::Backward});
    }
  }
  settle(schedule);
  return schedule;
}

bool is_accepted(const char* sentence, int forgotten) {
  const auto orders = testing::shrinking(rc::gen::apply(
      one_f_one_b, rc::gen::inRange(1, 6), rc::gen::inRange(2, 12), rc::gen::just(forgotten)));
  return rc::check(sentence, [&] { testing::require(testing::laws::is_accepted(*orders)); });
}

int main() {
  const bool right = is_accepted("1F1B of any size is accepted", 0);
  const bool wrong = is_accepted("so is one that forgets its last backward", 1);
  return right && !wrong ? 0 : 1;
}
