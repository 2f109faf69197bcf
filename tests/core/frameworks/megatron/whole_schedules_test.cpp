// Megatron's recorded configurations as whole schedules: the orders of all ranks together, chunk by
// chunk or, with the overlap of expert-parallel communication, layer by layer. What Megatron's
// runtime accepts a pipeline can execute; what it refuses it refuses for the recorded reason.

#include "core/frameworks/megatron/orders.h"
#include "core/rules/check.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace capo::megatron {
namespace {

using nlohmann::json;
using testing_support::read_data;

Request request_of(const json& in) {
  Request request{.configuration = {.pipeline = in.at("pp"),
                                    .microbatches = in.at("num_microbatches"),
                                    .ep_overlap = in.at("overlap")},
                  .layers_per_chunk = in.at("layers_per_chunk").get<std::vector<std::int64_t>>(),
                  .weight_gradients = in.at("wgrad").get<bool>() ? WeightGradients::Delayed
                                                                 : WeightGradients::InBackward};
  mcore::Configuration& configuration = request.configuration;
  if (!in.at("vp").is_null()) configuration.virtual_stages = in.at("vp").get<std::int64_t>();
  if (!in.at("group_size").is_null())
    configuration.group_size = in.at("group_size").get<std::int64_t>();
  return request;
}

std::string findings_of(const CheckResult& result) {
  std::string text;
  for (const Diagnostic& finding : result.diagnostics.kept())
    text += std::string(finding.rule) + ": " + finding.message + "\n";
  return text;
}

CheckResult check_whole(const Request& request) {
  return check({.form = Form::OrderFile, .schedule = schedule_of(orders_of(request).value())});
}

// Chunk by chunk, a chunk without a layer stays in the order, where it would capture nothing; layer
// by layer it is gone.
bool captures_nothing_somewhere(const Request& request) {
  const auto& layers = request.layers_per_chunk;
  return !request.by_layer() && std::find(layers.begin(), layers.end(), 0) != layers.end();
}

TEST(WholeSchedules, OfAcceptedConfigurationsAreAcceptedAndOthersRefusedForTheirReason) {
  std::size_t chunkwise = 0;
  std::size_t layerwise = 0;
  std::size_t without_layer = 0;
  std::size_t refused = 0;
  const json data = read_data("megatron_orders.json");
  for (const json& row : data.at("rows")) {
    if (row.at("kind") != "schedule") continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    Request request = request_of(row.at("inputs"));
    const auto reason = mcore::refusal(request.configuration);
    if (row.at("runtime") != json::array({"accepted"})) {
      EXPECT_EQ("rejected: " + reason.value(), row.at("runtime").at(0).get<std::string>());
      ++refused;
      continue;
    }
    EXPECT_FALSE(reason);
    if (captures_nothing_somewhere(request)) {
      EXPECT_GT(check_whole(request).diagnostics.warnings(), 0U) << "S18 says so";
      ++without_layer;
    }
    const CheckResult result = check_whole(request);
    EXPECT_EQ(result.verdict, Verdict::Accepted) << findings_of(result);
    const bool communicates = request.configuration.pipeline > 1;
    EXPECT_EQ(result.finishes, communicates ? std::optional(true) : std::nullopt);
    ++(request.by_layer() ? layerwise : chunkwise);
  }
  std::printf(
      "%zu whole schedules accepted (%zu chunk by chunk, %zu layer by layer), %zu of them with a "
      "chunk that has no layer; %zu configurations refused\n",
      chunkwise + layerwise, chunkwise, layerwise, without_layer, refused);
  EXPECT_EQ(chunkwise + layerwise, 179U);
  EXPECT_EQ(without_layer, 1U);
  EXPECT_EQ(refused, 93U);
}

}  // namespace
}  // namespace capo::megatron
