#include "testing/generators/arbitrary_numbers.h"

#include "testing/generators/te_order.h"
#include "testing/oracle_question.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace capo::testing {
namespace {

TEST(ArbitraryNumbers, HoldsEveryNearMissEquallyOften) {
  std::vector<std::string> misses;
  for (const NumberCase& one_case : sample(arbitrary_numbers(), 40000)) {
    std::set<std::string> seen;  // one that was doubled was drawn once
    for (const TeEntry& entry : one_case.list.entries) {
      if (te_action(entry) && std::abs(entry.value) < 5) continue;
      TeOrder one;
      one.list.entries = {entry};
      seen.insert(one.text());
    }
    misses.insert(misses.end(), seen.begin(), seen.end());
  }
  const std::set<std::string> all(misses.begin(), misses.end());
  for (const char* text : {"[0]\n", "[-0.0]\n", "[1.0]\n", "[-1.25]\n", "[nan]\n", "[inf]\n",
                           "[-inf]\n", "[-0.5]\n", "[1.5]\n", "[5]\n", "[-5.5]\n", "[1000]\n"}) {
    EXPECT_TRUE(all.contains(text)) << text;
  }
  EXPECT_EQ(all.size(), 25u);
  EXPECT_TRUE(are_even(misses, std::vector(all.begin(), all.end())));
}

TEST(ArbitraryNumbers, AreAcceptedAndRefusedForEveryReasonThatTeHas) {
  std::map<std::string, int> kinds;
  int sound = 0;
  for (const NumberCase& numbers : sample(arbitrary_numbers(), 5000)) {
    const auto order = oracle_order(numbers.list);
    const auto layers = oracle_layers(numbers.layers, numbers.list);
    sound += oracle::sound(order, numbers.need_wgrad, layers) ? 1 : 0;
    for (const bool pops_outputs : {false, true}) {
      ++kinds[oracle::transformer_engine(
                  {.order = order,
                   .layers = layers,
                   .need_wgrad = numbers.need_wgrad.value_or(std::vector<bool>{}),
                   .reuse = numbers.reuse,
                   .silent_store = numbers.silent_store,
                   .pops_outputs = pops_outputs})
                  .kind];
    }
  }
  EXPECT_GT(sound, 500);
  EXPECT_LT(sound, 4000);
  for (const char* kind : {"", "TE.ValueError", "TE.RuntimeError", "py.ValueError",
                           "py.OverflowError", "py.TypeError", "py.IndexError", "py.KeyError",
                           "py.AttributeError", "py.ZeroDivisionError", "torch.RuntimeError"}) {
    EXPECT_GT(kinds[kind], 0) << kind;
  }
}

TEST(ArbitraryNumbers, DeclaresLayersAndDelaysInEveryForm) {
  const auto cases = sample(arbitrary_numbers(), 30000);
  std::vector<std::int64_t> counts;
  bool shorter = false;
  bool longer = false;
  for (const auto& [list, layers, need_wgrad, reuse, silent_store] : cases) {
    if (layers.form == Layers::Form::Count) counts.push_back(layers.values.front());
    if (!need_wgrad || layers.form != Layers::Form::List) continue;
    shorter = shorter || need_wgrad->size() < layers.values.size();
    longer = longer || need_wgrad->size() > layers.values.size();
  }
  EXPECT_TRUE(shorter && longer);
  const auto expect_share = [&](auto fits, double odds) {
    EXPECT_TRUE(is_share(count_of(cases, fits), cases.size(), odds));
  };
  // Half of the cases are as the order was.
  for (const auto& [form, odds] :
       {std::pair(Layers::Form::Null, 1.0 / 8), std::pair(Layers::Form::Count, 1.0 / 8),
        std::pair(Layers::Form::List, 6.0 / 8)}) {
    expect_share([&](const NumberCase& one) { return one.layers.form == form; }, odds);
  }
  expect_share([](const NumberCase& one) { return !one.need_wgrad; }, 1.0 / 6);
  expect_share([](const NumberCase& one) { return one.reuse; }, 1.0 / 2);
  expect_share([](const NumberCase& one) { return one.silent_store; }, 1.0 / 4);
  EXPECT_TRUE(is_share(count_of(counts, [](std::int64_t count) { return count == 0; }),
                       counts.size(), 1.0 / 16));
  std::erase(counts, 0);
  EXPECT_TRUE(are_even(counts, numbers<std::int64_t>(1, 3)));
}

TEST(ArbitraryNumbers, ShrinkToNothing) {
  for (const auto& shrinkable : sample_shrinkables(arbitrary_numbers(), 50)) {
    const NumberCase smallest = shrink_path(shrinkable).back();
    EXPECT_EQ(smallest.text(), "[]\n");
    EXPECT_FALSE(smallest.need_wgrad || smallest.reuse || smallest.silent_store);
  }
}

}  // namespace
}  // namespace capo::testing
