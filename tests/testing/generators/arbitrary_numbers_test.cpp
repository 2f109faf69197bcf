#include <capo/testing/generators/arbitrary_numbers.h>

#include <capo/testing/generators/te_order.h>
#include <capo/testing/oracle_question.h>
#include <capo/tests/testing/sample.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace capo::testing {
namespace {

TEST(ArbitraryNumbers, HoldsEveryNearMiss) {
  std::set<std::string> seen;
  for (const NumberCase& numbers : sample(arbitrary_numbers(), 3000)) {
    for (const TeEntry& entry : numbers.list.entries) {
      if (!te_action(entry) || std::abs(entry.value) >= 5) {
        TeOrder one;
        one.list.entries = {entry};
        seen.insert(one.text());
      }
    }
  }
  for (const char* text : {"[0]\n", "[-0.0]\n", "[1.0]\n", "[-1.25]\n", "[nan]\n", "[inf]\n",
                           "[-inf]\n", "[-0.5]\n", "[1.5]\n", "[5]\n", "[-5.5]\n", "[1000]\n"}) {
    EXPECT_TRUE(seen.contains(text)) << text;
  }
  EXPECT_EQ(seen.size(), 25u);
}

TEST(ArbitraryNumbers, AreAcceptedAndRefusedForEveryReasonThatTeHas) {
  std::map<std::string, int> kinds;
  int sound = 0;
  for (const NumberCase& numbers : sample(arbitrary_numbers(), 5000)) {
    const auto order = oracle_order(numbers.list);
    const auto layers = oracle_layers(numbers.layers, numbers.list);
    sound += oracle::sound(order, numbers.need_wgrad, layers) ? 1 : 0;
    ++kinds[oracle::transformer_engine(
                {.order = order,
                 .layers = layers,
                 .need_wgrad = numbers.need_wgrad.value_or(std::vector<bool>{}),
                 .reuse = numbers.reuse,
                 .silent_store = numbers.silent_store})
                .kind];
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
  std::set<Layers::Form> forms;
  bool absent = false;
  bool shorter = false;
  bool longer = false;
  bool reuse = false;
  bool silent = false;
  for (const NumberCase& numbers : sample(arbitrary_numbers(), 2000)) {
    forms.insert(numbers.layers.form);
    absent = absent || !numbers.need_wgrad;
    reuse = reuse || numbers.reuse;
    silent = silent || numbers.silent_store;
    if (!numbers.need_wgrad || numbers.layers.form != Layers::Form::List) continue;
    shorter = shorter || numbers.need_wgrad->size() < numbers.layers.values.size();
    longer = longer || numbers.need_wgrad->size() > numbers.layers.values.size();
  }
  EXPECT_EQ(forms, (std::set{Layers::Form::Null, Layers::Form::Count, Layers::Form::List}));
  EXPECT_TRUE(absent && shorter && longer && reuse && silent);
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
