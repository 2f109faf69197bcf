#include "testing/generators/te_order.h"

#include "core/input/load.h"
#include "testing/generators/sound_order.h"
#include "tests/testing/sample.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace capo::testing {
namespace {

TeOrder order_of(const std::vector<double>& numbers, std::int32_t microbatches,
                 std::vector<bool> delays) {
  TeOrder order{.microbatches = microbatches, .delays = std::move(delays)};
  for (const double number : numbers) {
    const bool half = number != static_cast<int>(number);
    order.list.entries.push_back(
        {.value = number, .type = half ? NumberType::Float : NumberType::Integer});
  }
  order.layers = {.form = Layers::Form::List,
                  .values = std::vector<std::int64_t>(order.delays.size(), 1)};
  return order;
}

std::vector<std::string> texts(const std::vector<TeOrder>& orders) {
  std::vector<std::string> out;
  for (const TeOrder& order : orders) out.push_back(order.text());
  return out;
}

TEST(TeOrder, EntriesStandForTheirActionsAndBack) {
  for (const Kind kind : {Kind::Forward, Kind::Backward, Kind::BackwardWeight}) {
    EXPECT_EQ(te_action(te_entry(kind, 3)), (Action{.kind = kind, .chunk = 3}));
  }
}

TEST(TeOrder, OddNumbersStandForNoAction) {
  for (const double odd : {0.0, 0.5, -0.5, 1.5, -1.25, 1e300, -1e300}) {
    EXPECT_FALSE(te_action({.value = odd, .type = NumberType::Float})) << odd;
  }
  EXPECT_FALSE(te_action({.value = 1, .type = NumberType::Float}));
}

TEST(TeOrder, PlacesAreThoseOfOneKindAndChunk) {
  const TeOrder order = order_of({1, 2, 1, -1, -1.5, -2, -1, -1.5}, 2, {true, false});
  EXPECT_EQ(places(order.list, Kind::Forward, 1), (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(places(order.list, Kind::BackwardWeight, 1), (std::vector<std::size_t>{4, 7}));
  EXPECT_TRUE(places(order.list, Kind::BackwardWeight, 2).empty());
}

TEST(TeOrder, SimplerOrdersLoseAMicrobatchAChunkADelayOrAnInversion) {
  const TeOrder order = order_of({2, 1, -1, -1.5, -2}, 1, {true, false});
  EXPECT_EQ(texts(simpler(order)),
            (std::vector<std::string>{"[1, -1]\n",         // without chunk 1, chunk 2 is chunk 1
                                      "[1, -1, -1.5]\n",   // without chunk 2
                                      "[2, 1, -1, -2]\n",  // without the delay
                                      "[1, 2, -1, -1.5, -2]\n",     // forwards in order
                                      "[2, 1, -1, -2, -1.5]\n"}));  // backwards before weights
  EXPECT_EQ(texts(simpler(order_of({1, 1, -1, -1}, 2, {false}))),
            (std::vector<std::string>{"[1, -1]\n", "[1, -1]\n", "[1, -1, 1, -1]\n"}));
}

TEST(TeOrder, TheSmallestOrderHasNoSimplerOne) {
  EXPECT_TRUE(simpler(order_of({1, -1}, 1, {false})).empty());
}

TEST(TeOrder, IsShownAsOrderLinesToPaste) {
  EXPECT_EQ(rc::toString(order_of({1, -1, -1.5}, 1, {true})), R"(# as a list: [1, -1, -1.5]
capo 1
ranks 1
microbatches 1
rank 0 chunks 1
rank 0 layers [1]
rank 0 delayed 1
rank 0: F1 B1 W1
)");
}

TEST(TeOrder, IsShownAsJsonWhereAnEntryIsNoAction) {
  EXPECT_EQ(rc::toString(order_of({1, 2, 0, -1, -1.5, -2}, 1, {true, false})),
            "{\"order\": [1, 2, 0, -1, -1.5, -2], \"num_layers_per_chunk\": [1, 1], "
            "\"need_wgrad\": [true, false], \"microbatches\": 1}\n");
}

// Layers of one chunk are a list all the same, and they are declared for fewer chunks than delays.
TEST(TeOrder, IsShownAsJsonWhereDeclarationsDoNotFit) {
  TeOrder order = order_of({1, 2, -2, -1}, 1, {false, false});
  order.layers.values = {1};
  const auto read = load({.name = "-", .text = rc::toString(order)}, {});
  ASSERT_TRUE(read) << rc::toString(order);
  EXPECT_EQ(read->form, Form::TeList);
  EXPECT_EQ(read->schedule.ranks[0].layers, order.layers);
  EXPECT_EQ(read->schedule.ranks[0].delay, (std::vector<Delay>{Delay::Never, Delay::Never}));
}

TEST(TeOrder, IsShownWithItsNumbersBitForBit) {
  TeOrder order = order_of({1, -1}, 1, {false});
  for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0, 1.0, 1e300})
    order.list.entries.push_back({.value = odd, .type = NumberType::Float});
  const auto read = load({.name = "-", .text = rc::toString(order)}, {});
  ASSERT_TRUE(read) << rc::toString(order);
  ASSERT_EQ(read->te_list.entries.size(), order.list.entries.size());
  for (std::size_t i = 0; i < order.list.entries.size(); ++i) {
    const TeEntry& entry = read->te_list.entries[i];
    const TeEntry& was = order.list.entries[i];
    EXPECT_TRUE(entry.value == was.value || (std::isnan(entry.value) && std::isnan(was.value)));
    EXPECT_EQ(std::signbit(entry.value), std::signbit(was.value)) << i;
    EXPECT_EQ(entry.type, was.type) << i;
  }
}

TEST(TeOrder, ShownReadsBack) {
  for (const TeOrder& order : sample(te_capturable_order(), 100)) {
    const auto read = load({.name = "-", .text = rc::toString(order)}, {});
    ASSERT_TRUE(read) << rc::toString(order);
    EXPECT_EQ(read->form, Form::OrderFile);
    EXPECT_TRUE(
        same_meaning(read->schedule, from_te_list(order.list, order.declarations()).schedule))
        << rc::toString(order);
  }
}

}  // namespace
}  // namespace capo::testing
