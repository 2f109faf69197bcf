#include "core/text/model_printer.h"
#include "core/text/model_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

constexpr const char* kModel =
    R"({"schema": 1, "comment": "mine", "modules": {"b": {"kind": "linear"}, "a": {"kind": "linear", "cost": {"forward": 1, "combine": 7}}}, "layers": ["b", "a"]})";

TEST(ModelCosts, AreStatedAndTheRestStaysAsItWasWritten) {
  const std::string text = with_costs(
      kModel,
      {.modules = {{"a", {.forward = 1.23456789, .backward = 2, .weight = 3}}}, .transfer = {}});
  EXPECT_EQ(text, R"({
  "schema": 1,
  "comment": "mine",
  "modules": {
    "b": {
      "kind": "linear"
    },
    "a": {
      "kind": "linear",
      "cost": {
        "forward": 1.23457,
        "combine": 7,
        "backward": 2.0,
        "weight": 3.0
      }
    }
  },
  "layers": [
    "b",
    "a"
  ]
}
)");
}

TEST(ModelCosts, AreReadBackAsTheyWereGiven) {
  const MeasuredCosts costs{.modules = {{"a",
                                         {.forward = 1.5,
                                          .backward = 2.5,
                                          .weight = 3.5,
                                          .dispatch = 4,
                                          .combine = 5,
                                          .reduce = 8,
                                          .autograd = 6,
                                          .whole = 7,
                                          .rest = 0.25,
                                          .quantize_forward = 0.5,
                                          .quantize_backward = 2}},
                                        {"b", {.forward = 0.25, .backward = 0, .weight = 1e6}}},
                            .transfer = TransferCost{.latency = 2,
                                                     .bandwidth = 1000,
                                                     .bytes = 4096,
                                                     .crowded = 1.25,
                                                     .slowdown = 1.125,
                                                     .ahead = 1024},
                            .paces = {1, 1.0625}};
  const auto model = read_model(with_costs(kModel, costs), {});
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->transfer, *costs.transfer);
  EXPECT_EQ(model->paces, costs.paces);
  for (const Module& module : model->modules.list) {
    EXPECT_EQ(module.cost, costs.modules.at(module.name)) << module.name;
  }
}

TEST(ModelCosts, APartIsNoMoreThanWhatItIsAPartOf) {
  const auto refused = [](const std::string& cost) -> std::string {
    const auto model =
        read_model(R"({"schema": 1, "modules": {"m": {"cost": {)" + cost + "}}}}", {});
    return model ? "" : model.error().finding.message;
  };
  EXPECT_EQ(
      refused(R"("forward": 2, "quantize_forward": 2, "backward": 3, "quantize_backward": 0)"), "");
  EXPECT_EQ(refused(R"("forward": 2, "quantize_forward": 2.5)"),
            "`cost.quantize_forward` is a part of `cost.forward`, and 2.5 is more than 2");
  EXPECT_EQ(refused(R"("backward": 2, "quantize_forward": 1)"),
            "`cost.quantize_forward` is a part of `cost.forward`, which is not said");
  EXPECT_EQ(refused(R"("quantize_backward": 1)"),
            "`cost.quantize_backward` is a part of `cost.backward`, which is not said");
  EXPECT_EQ(refused(R"("backward": 3, "quantize_backward": 2, "whole": 2)"), "");
  EXPECT_EQ(refused(R"("backward": 3, "quantize_backward": 2, "whole": 1)"),
            "`cost.quantize_backward` is a part of `cost.whole`, and 2 is more than 1");
}

TEST(ModelCosts, RestIsFromZeroToBelowOne) {
  const auto read = [](const std::string& rest) -> std::string {
    const auto model =
        read_model(R"({"schema": 1, "modules": {"m": {"cost": {"rest": )" + rest + "}}}}", {});
    if (!model) return model.error().finding.message;
    return std::to_string(*model->modules.list.front().cost.rest);
  };
  EXPECT_EQ(read("0"), "0.000000");
  EXPECT_EQ(read("0.9375"), "0.937500");
  EXPECT_EQ(read("0.99999999"), "1.000000");
  EXPECT_EQ(read("1"), "`cost.rest` must be below 1");
  EXPECT_EQ(read("1.5"), "`cost.rest` must be at most 1");
  EXPECT_EQ(read("-0.1"), "`cost.rest` must be at least 0");
}

TEST(ModelCosts, OfAnotherMeasurementGo) {
  const MeasuredCosts first{
      .modules = {{"a",
                   {.forward = 3, .backward = 4, .weight = 5, .rest = 0.5, .quantize_forward = 2}}},
      .transfer =
          TransferCost{.latency = 2, .bytes = 16, .crowded = 1.5, .slowdown = 1.1, .ahead = 8},
      .paces = {1, 2}};
  const MeasuredCosts second{.modules = {{"a", {.forward = 1, .backward = 4, .weight = 5}}},
                             .transfer = TransferCost{.latency = 3, .bytes = 16}};
  const auto model = read_model(with_costs(with_costs(kModel, first), second), {});
  ASSERT_TRUE(model.has_value());
  EXPECT_EQ(model->transfer, *second.transfer);
  EXPECT_TRUE(model->paces.empty());
  EXPECT_EQ(model->modules.list.front().cost.quantize_forward, std::nullopt);
  EXPECT_EQ(model->modules.list.front().cost.rest, std::nullopt);
}

TEST(ModelCosts, WithoutABandwidthThereIsNone) {
  const std::string text =
      with_costs(kModel, {.modules = {}, .transfer = TransferCost{.latency = 2, .bytes = 16}});
  EXPECT_EQ(text.find("bandwidth"), std::string::npos);
  EXPECT_NE(text.find("\"bytes\": 16"), std::string::npos);
}

}  // namespace
}  // namespace capo
