// A configuration is refused if sizes do not divide, or a part is larger than its whole.

#include "core/model/configuration.h"

#include "core/model/ready_models.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

// "member why", or nothing.
std::string fault_in(const ModelConfiguration& of) {
  const auto fault = fault_of(of);
  return fault ? std::string(fault->member) + " " + fault->why : "";
}

TEST(ModelConfiguration, OfAReadyModelHasNoFault) {
  for (const ReadyModel& model : ready_models()) {
    EXPECT_EQ(fault_in(model.configuration), "") << model.name;
  }
}

TEST(ModelConfiguration, ThatDeclaresNothingHasNoFault) {
  EXPECT_EQ(fault_in({}), "");
  EXPECT_EQ(fault_in({.tensor_parallel = 8, .expert_parallel = 64}), "");
}

TEST(ModelConfiguration, DividesEvenly) {
  EXPECT_EQ(fault_in({.heads = 40, .tensor_parallel = 16}),
            "heads is 40, no multiple of `tensor_parallel`, 16");
  EXPECT_EQ(fault_in({.heads = 40, .tensor_parallel = 20}), "");
  EXPECT_EQ(fault_in({.heads = 64, .kv_heads = 4, .tensor_parallel = 8}),
            "kv_heads is 4, no multiple of `tensor_parallel`, 8");
  EXPECT_EQ(fault_in({.heads = 64, .kv_heads = 5}), "heads is 64, no multiple of `kv_heads`, 5");
  EXPECT_EQ(fault_in({.ffn = 100, .tensor_parallel = 8}),
            "ffn is 100, no multiple of `tensor_parallel`, 8");
  EXPECT_EQ(fault_in({.experts = 256, .expert_parallel = 7}),
            "experts is 256, no multiple of `expert_parallel`, 7");
  EXPECT_EQ(fault_in({.expert_ffn = 100, .tensor_parallel = 8}),
            "expert_ffn is 100, no multiple of `expert_tensor_parallel`, 8")
      << "experts are divided as other products are";
  EXPECT_EQ(fault_in({.expert_ffn = 100, .tensor_parallel = 8, .expert_tensor_parallel = 1}), "");
  EXPECT_EQ(fault_in({.sequence = 4096, .tensor_parallel = 8, .context_parallel = 3}),
            "sequence is 4096, no multiple of `context_parallel` times `tensor_parallel`, 24");
}

TEST(ModelConfiguration, NeedsAHeadSizeOrEvenHeads) {
  EXPECT_EQ(fault_in({.hidden = 100, .heads = 8}), "hidden is 100, no multiple of `heads`, 8");
  EXPECT_EQ(fault_in({.hidden = 100, .heads = 8, .head_size = 16}), "");
  EXPECT_EQ(fault_in({.hidden = 100, .heads = 8, .latent = LatentAttention{}}), "");
}

TEST(ModelConfiguration, HasNoPartLargerThanItsWhole) {
  EXPECT_EQ(fault_in({.experts = 4, .top_k = 5}), "top_k is 5, more than `experts`, 4");
  EXPECT_EQ(fault_in({.experts = 4, .top_k = 4}), "");
  EXPECT_EQ(fault_in({.layers = 2, .dense_layers = 3}), "dense_layers is 3, more than `layers`, 2");
  EXPECT_EQ(fault_in({.layers = 3, .dense_layers = 3}), "");
}

TEST(SaturatedProduct, StopsAtTheLargestNumber) {
  EXPECT_EQ(saturated_product(3, 5), 15);
  EXPECT_EQ(saturated_product(std::int64_t{1} << 31, std::int64_t{1} << 31), std::int64_t{1} << 62);
  EXPECT_EQ(saturated_product(std::int64_t{1} << 32, std::int64_t{1} << 31), INT64_MAX);
  EXPECT_EQ(saturated_product(INT64_MAX, INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(saturated_product(INT64_MAX, INT64_MAX, 0), 0);
  EXPECT_EQ(saturated_sum(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(saturated_sum(1, 2), 3);
}

}  // namespace
}  // namespace capo
