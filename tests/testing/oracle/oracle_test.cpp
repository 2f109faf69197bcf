// The oracle itself: against the golden rows, against rows observed on a GPU, against published
// counts, and on orders whose answer one can see.

#include "testing/oracle/oracle.h"

#include "testing/oracle_question.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::layers_of;
using testing_support::read_data;
using testing_support::te_list_of;

std::vector<oracle::Number> numbers(const std::vector<double>& values) {
  std::vector<oracle::Number> order;
  for (const double value : values) order.push_back({.value = value});
  return order;
}

oracle::Layers ones(std::size_t chunks) {
  return {.form = oracle::Layers::List, .values = std::vector<long long>(chunks, 1)};
}

bool sound(const std::vector<double>& order, std::vector<bool> need_wgrad) {
  return oracle::sound(numbers(order), need_wgrad, ones(need_wgrad.size()));
}

oracle::TeAnswer te(const std::vector<double>& order, std::vector<bool> need_wgrad,
                    bool reuse = false) {
  const std::size_t chunks = need_wgrad.size();
  return oracle::transformer_engine({.order = numbers(order),
                                     .layers = ones(chunks),
                                     .need_wgrad = std::move(need_wgrad),
                                     .reuse = reuse});
}

TEST(Oracle, AgreesWithEveryGoldenRow) {
  const nlohmann::json rows = read_data("te_orders.json");
  ASSERT_EQ(rows.size(), 96u);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.dump());
    const TeList list = te_list_of(row["order"]);
    const oracle::Layers layers = oracle_layers(layers_of(row["num_layers_per_chunk"]), list);
    const auto need_wgrad = row["need_wgrad"].get<std::vector<bool>>();
    const oracle::TeAnswer answer = oracle::transformer_engine(
        {.order = oracle_order(list), .layers = layers, .need_wgrad = need_wgrad});
    EXPECT_EQ(answer.accepts, row["te_accepts"].get<bool>());
    EXPECT_EQ(answer.kind,
              row["te_error_kind"].is_null() ? "" : row["te_error_kind"].get<std::string>());
    EXPECT_EQ(oracle::sound(oracle_order(list), need_wgrad, layers),
              row["truly_sound"].get<bool>());
  }
}

TEST(Oracle, AgreesWithEveryRowObservedOnAGpu) {
  const nlohmann::json data = read_data("te_gpu_truth.json");
  ASSERT_EQ(data["rows"].size(), 1374u);
  for (const auto& row : data["rows"]) {
    SCOPED_TRACE(row.dump());
    const TeList list = te_list_of(row["order"]);
    const oracle::TeAnswer answer =
        oracle::transformer_engine({.order = oracle_order(list),
                                    .layers = oracle_layers(layers_of(row["layers"]), list),
                                    .need_wgrad = row["need_wgrad"].get<std::vector<bool>>(),
                                    .reuse = row["reuse"].get<bool>(),
                                    .silent_store = row["module"] == "grouped_linear"});
    EXPECT_EQ(answer.accepts, row["accepted"].get<bool>());
    EXPECT_EQ(answer.kind, row["kind"].is_null() ? "" : row["kind"].get<std::string>());
  }
}

struct Count {
  int sound = 0;
  int capturable = 0;
};

// All orders of N chunks that delay and M microbatches.
Count count_orders(int chunks, int microbatches) {
  std::vector<double> order;
  for (int c = 1; c <= chunks; ++c) {
    for (const double entry : {1.0 * c, -1.0 * c, -c - 0.5}) {
      order.insert(order.end(), static_cast<std::size_t>(microbatches), entry);
    }
  }
  std::sort(order.begin(), order.end());
  const std::vector<bool> delays(static_cast<std::size_t>(chunks), true);
  Count count;
  do {
    if (!sound(order, delays)) continue;
    ++count.sound;
    count.capturable += te(order, delays).accepts ? 1 : 0;
  } while (std::next_permutation(order.begin(), order.end()));
  return count;
}

TEST(Oracle, CountsTheSoundOrdersThatTeCanCapture) {
  const Count one_by_two = count_orders(1, 2);
  EXPECT_EQ(one_by_two.sound, 5);
  EXPECT_EQ(one_by_two.capturable, 3);
  const Count one_by_three = count_orders(1, 3);
  EXPECT_EQ(one_by_three.sound, 42);
  EXPECT_EQ(one_by_three.capturable, 12);
  const Count two_by_one = count_orders(2, 1);
  EXPECT_EQ(two_by_one.sound, 20);
  EXPECT_EQ(two_by_one.capturable, 20);
}

TEST(Oracle, CallsAnOrderSoundByItsCountsAndPlaces) {
  EXPECT_TRUE(sound({1, -1}, {false}));
  EXPECT_TRUE(sound({1, 1, -1, -1, -1.5, -1.5}, {true}));
  EXPECT_FALSE(sound({}, {}));
  EXPECT_FALSE(sound({-1, 1}, {false}));
  EXPECT_FALSE(sound({1, -1.5, -1}, {true}));
  EXPECT_FALSE(sound({1, -1}, {true}));
  EXPECT_FALSE(sound({1, -1, -1.5}, {false}));
  EXPECT_FALSE(sound({1, 2, -1, -1}, {false, false}));
  EXPECT_FALSE(sound({1, -1, -1.25}, {true}));
}

TEST(Oracle, ReadsUndeclaredDelaysOffTheEntries) {
  EXPECT_TRUE(oracle::sound(numbers({1, -1, -1.5}), std::nullopt, {}));
  EXPECT_TRUE(oracle::sound(numbers({1, -1}), std::nullopt, {}));
}

TEST(Oracle, CallsAnOrderExecutableIfItsChunksAreAChain) {
  const auto executable = [](const std::vector<double>& order) {
    return oracle::executable(numbers(order), std::nullopt, {});
  };
  EXPECT_TRUE(executable({1, 2, -2, -1}));
  EXPECT_FALSE(executable({2, 1, -2, -1}));
  EXPECT_FALSE(executable({1, 2, -1, -2}));
}

TEST(Oracle, KnowsThatTeAcceptsAnOrderThatIsWrong) {
  EXPECT_TRUE(te({1, 2, -1, -1}, {false, false}).accepts);
}

TEST(Oracle, KnowsThatTeBindsAWeightGradientToTheNewestBackward) {
  const oracle::TeAnswer answer = te({1, 1, -1, -1, -1.5, -1.5}, {true});
  EXPECT_EQ(answer.kind, "torch.RuntimeError");
  EXPECT_EQ(answer.position, 5);
}

TEST(Oracle, KnowsThatReuseLooksForAForwardBeforeEveryBackward) {
  EXPECT_EQ(te({-1, 1}, {false}, false).kind, "py.KeyError");
  EXPECT_EQ(te({-1, 1}, {false}, true).kind, "py.KeyError");
  EXPECT_EQ(te({-1, 1}, {false}, true).position, 0);
}

TEST(Oracle, KnowsPythonsErrorsForOddNumbers) {
  EXPECT_EQ(te({}, {}).kind, "py.ValueError");
  EXPECT_EQ(te({0, 0}, {}).kind, "py.ZeroDivisionError");
  EXPECT_EQ(te({1, -1, -1.25}, {false}).kind, "TE.ValueError");
}

}  // namespace
}  // namespace capo::testing
