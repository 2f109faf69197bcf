// The mcore profile against Megatron's own orders and configurations.

#include "core/frameworks/megatron/mcore.h"
#include "core/frameworks/te/predict.h"
#include "tests/support/check_text.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

namespace capo::mcore {
namespace {

using testing_support::read_data;
using testing_support::te_list_of;

std::vector<bool> delaying(const TeList& list) {
  std::vector<bool> need;
  for (const TeEntry& entry : list.entries) {
    if (entry.value >= 0 || std::floor(entry.value) == entry.value) continue;
    const auto chunk = static_cast<std::size_t>(-entry.value);
    if (need.size() < chunk) need.resize(chunk);
    need[chunk - 1] = true;
  }
  return need;
}

TEST(McoreProfile, RefusesTheConfigurationsThatMegatronRefusesWithItsReason) {
  std::size_t rows = 0;
  const nlohmann::json data = read_data("megatron_orders.json");
  for (const auto& row : data.at("rows")) {
    if (row.at("kind") != "schedule") continue;
    const auto& in = row.at("inputs");
    Configuration configuration{.pipeline = in.at("pp"),
                                .microbatches = in.at("num_microbatches"),
                                .ep_overlap = in.at("overlap")};
    if (!in.at("vp").is_null()) configuration.virtual_stages = in.at("vp").get<std::int64_t>();
    if (!in.at("group_size").is_null())
      configuration.group_size = in.at("group_size").get<std::int64_t>();
    const auto reason = refusal(configuration);
    EXPECT_EQ(reason ? "rejected: " + *reason : "accepted",
              row.at("runtime").at(0).get<std::string>())
        << row.at("id");
    ++rows;
  }
  std::printf("%zu configurations are judged as Megatron does\n", rows);
  EXPECT_EQ(rows, 272U);
}

TEST(McoreProfile, KeepsMegatronsRuleForEveryOrderThatMegatronMakes) {
  std::size_t orders = 0;
  const nlohmann::json data = read_data("megatron_orders.json");
  for (const auto& row : data.at("rows")) {
    if (row.at("kind") != "schedule" || row.at("layer_order").is_null()) continue;
    const TeList list = te_list_of(row.at("layer_order"));
    EXPECT_FALSE(first_loose_weight(list, delaying(list))) << row.at("id");
    ++orders;
  }
  std::printf("%zu layer orders keep the rule\n", orders);
  EXPECT_GT(orders, 100U);
}

TEST(McoreProfile, AcceptsTheThreeOrdersOfTransformerEngine2376Everywhere) {
  std::size_t orders = 0;
  const nlohmann::json data = read_data("megatron_orders.json");
  for (const auto& row : data.at("rows")) {
    if (row.at("source") != "seed000") continue;
    const auto& order =
        row.at("layer_order").is_null() ? row.at("chunk_order") : row.at("layer_order");
    const TeList list = te_list_of(order);
    std::string text = order.dump();
    EXPECT_TRUE(testing_support::check_te(text).accepted()) << text;
    const auto prediction = te::predict(list, {}, delaying(list), {.reuse = true});
    EXPECT_TRUE(prediction && prediction->accepts()) << prediction->reason;
    EXPECT_FALSE(first_loose_weight(list, delaying(list)));
    ++orders;
  }
  EXPECT_EQ(orders, 3U);
}

TEST(McoreProfile, NamesTheFirstBackwardWhoseWeightGradientIsNotNext) {
  const auto loose = [](const nlohmann::json& order) {
    const TeList list = te_list_of(order);
    return first_loose_weight(list, delaying(list));
  };
  const auto late = loose({1, 2, -2, -1, -2.5, -1.5});
  ASSERT_TRUE(late);
  EXPECT_EQ(late->backward, 2U);
  EXPECT_EQ(late->next, 3U);
  const auto never = loose({1, 1, -1, -1.5, -1});
  ASSERT_TRUE(never);
  EXPECT_EQ(never->backward, 4U);
  EXPECT_FALSE(never->next);
  EXPECT_FALSE(loose({1, 2, -1, 2, -1.5, -2}));
}

}  // namespace
}  // namespace capo::mcore
