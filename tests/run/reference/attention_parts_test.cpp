// Attention in float64: a layer small enough to be right by hand, gradients against slopes of the
// forward, and the host's kernels against both.

#include "run/host/host_engine.h"
#include "run/reference/layer_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace capo::run::reference {
namespace {

Values drawn(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>(random()) / 1073741824.0 - 2);
  }
  return values;
}

std::int64_t qkv_count(const Heads& of) {
  return of.rows * (of.heads + 2 * of.kv_heads) * of.head_dim;
}
std::int64_t y_count(const Heads& of) {
  return of.rows * of.heads * of.head_dim;
}

const std::vector<Heads> kLayers{
    {.rows = 5, .sequence = 0, .heads = 1, .kv_heads = 1, .head_dim = 2},
    {.rows = 7, .sequence = 3, .heads = 4, .kv_heads = 2, .head_dim = 3},
    {.rows = 4, .sequence = 1, .heads = 2, .kv_heads = 1, .head_dim = 2},
    {.rows = 0, .sequence = 0, .heads = 2, .kv_heads = 1, .head_dim = 2},
};

TEST(AttentionParts, ByHand) {
  // The second row's scores are 0 and log 3, so it reads the first with 1/4 and itself with 3/4;
  // the third begins a sequence.
  const Heads of{.rows = 3, .sequence = 2};
  const Values y = attention_of(of, {5, 0, 8, 1, std::log(3), 4, 7, 7, 9});
  ASSERT_EQ(y.size(), 3U);
  EXPECT_DOUBLE_EQ(y[0], 8);
  EXPECT_DOUBLE_EQ(y[1], 5);
  EXPECT_DOUBLE_EQ(y[2], 9);
}

TEST(AttentionParts, TwoHeadsShareAKeyAndEachPairItsOwn) {
  // Rows alone in their sequences read their own values: v of kv head 0 for heads 0 and 1, of kv
  // head 1 for heads 2 and 3.
  const Heads of{.rows = 1, .sequence = 1, .heads = 4, .kv_heads = 2};
  EXPECT_EQ(attention_of(of, {1, 2, 3, 4, 5, 6, 7, 8}), (Values{7, 7, 8, 8}));
}

TEST(AttentionParts, GradientsAreTheSlopesOfTheForward) {
  constexpr double kStep = 1e-5;
  for (const Heads& of : kLayers) {
    SCOPED_TRACE(of.rows);
    Values qkv = drawn(qkv_count(of), 1);
    const Values dy = drawn(y_count(of), 2);
    const auto loss = [&] {
      const Values y = attention_of(of, qkv);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    const AttentionGradients gradients = attention_gradients(of, qkv, attention_of(of, qkv), dy);
    ASSERT_EQ(gradients.qkv.size(), qkv.size());
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const double at = qkv[i];
      qkv[i] = at + kStep;
      const double above = loss();
      qkv[i] = at - kStep;
      const double slope = (above - loss()) / (2 * kStep);
      qkv[i] = at;
      EXPECT_NEAR(gradients.qkv[i], slope, 1e-8) << i;
      EXPECT_GE(gradients.magnitudes[i], std::abs(gradients.qkv[i]) * (1 - 1e-12)) << i;
    }
  }
}

TEST(AttentionParts, TheHostsKernelsAgree) {
  for (const Heads& of : kLayers) {
    SCOPED_TRACE(of.rows);
    const AttentionShape shape{.rows = of.rows,
                               .sequence = of.sequence,
                               .heads = of.heads,
                               .kv_heads = of.kv_heads,
                               .head_dim = of.head_dim};
    const Values qkv = drawn(qkv_count(of), 3);
    const Values dy = drawn(y_count(of), 4);
    const std::vector<float> stored(qkv.begin(), qkv.end());
    const std::vector<float> incoming(dy.begin(), dy.end());
    std::vector<float> y(dy.size());
    std::vector<float> log_sums(static_cast<std::size_t>(of.rows * of.heads));
    std::vector<float> inner(log_sums.size());
    std::vector<float> dqkv(qkv.size());
    host::execute(Attention{.type = DataType::Fp32,
                            .shape = shape,
                            .qkv = stored.data(),
                            .y = y.data(),
                            .log_sums = log_sums.data()});
    host::execute(AttentionQueryGradient{.type = DataType::Fp32,
                                         .shape = shape,
                                         .qkv = stored.data(),
                                         .y = y.data(),
                                         .log_sums = log_sums.data(),
                                         .dy = incoming.data(),
                                         .dqkv = dqkv.data(),
                                         .inner = inner.data()});
    host::execute(AttentionKeyGradient{.type = DataType::Fp32,
                                       .shape = shape,
                                       .qkv = stored.data(),
                                       .log_sums = log_sums.data(),
                                       .inner = inner.data(),
                                       .dy = incoming.data(),
                                       .dqkv = dqkv.data()});
    const Values wanted = attention_of(of, qkv);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 2e-6) << i;
    const AttentionGradients gradients = attention_gradients(of, qkv, wanted, dy);
    for (std::size_t i = 0; i < dqkv.size(); ++i) {
      EXPECT_NEAR(dqkv[i], gradients.qkv[i], 2e-6 * gradients.magnitudes[i] + 1e-7) << i;
    }
  }
}

}  // namespace
}  // namespace capo::run::reference
