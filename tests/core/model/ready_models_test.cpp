// Counts of parameters of the ready models, against those that their authors publish.
//
// DeepSeek-V3: README_WEIGHTS.md of github.com/deepseek-ai/DeepSeek-V3 has 671B in total and 36.7B
// active, without the module for multi-token prediction. Qwen3-235B-A22B: its card has 235B, of
// which 234B are not embeddings, and 22B active. Mixtral 8x7B: mistral.ai/news/mixtral-of-experts
// has 46.7B and 12.9B. Llama 3 70B: the files on huggingface.co/meta-llama/Meta-Llama-3-70B
// have 70.6B. A figure of two digits is met if ours rounds to it.

#include "core/model/ready_models.h"

#include "core/model/inventory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace capo {
namespace {

constexpr double kBillion = 1e9;

ParameterCounts counts_of(std::string_view name) {
  const ReadyModel* model = ready_model_named(name);
  if (model == nullptr) return {};
  const auto counts = parameter_counts(model->configuration);
  EXPECT_TRUE(counts) << name;
  return counts ? *counts : ParameterCounts{};
}

void expect_within(std::int64_t counted, double published_billions, double part) {
  const double billions = static_cast<double>(counted) / kBillion;
  EXPECT_LE(std::abs(billions - published_billions), part * published_billions)
      << billions << " against " << published_billions;
}

TEST(ReadyModels, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ReadyModel& model : ready_models()) {
    names.insert(model.name);
    EXPECT_EQ(ready_model_named(model.name), &model);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"deepseek-v3", "qwen3-235b", "mixtral-8x7b",
                                               "llama3-70b", "tiny"}));
  EXPECT_EQ(ready_model_named("deepseek"), nullptr);
}

TEST(ReadyModels, HaveAsManyParametersAsPublished) {
  constexpr double kHalfPercent = 0.005;
  expect_within(counts_of("deepseek-v3").total, 671, kHalfPercent);
  expect_within(counts_of("qwen3-235b").total, 235, kHalfPercent);
  expect_within(counts_of("mixtral-8x7b").total, 46.7, kHalfPercent);
  expect_within(counts_of("llama3-70b").total, 70.6, kHalfPercent);
}

TEST(ReadyModels, HaveAsManyParametersBesideTheirEmbeddings) {
  const ParameterCounts qwen = counts_of("qwen3-235b");
  expect_within(qwen.total - 2 * qwen.embedding, 234, 0.005);
}

TEST(ReadyModels, UseAsManyParametersForATokenAsPublished) {
  constexpr double kHalfPercent = 0.005;
  const ParameterCounts deepseek = counts_of("deepseek-v3");
  expect_within(deepseek.active - deepseek.embedding, 36.7, kHalfPercent);
  expect_within(counts_of("mixtral-8x7b").active, 12.9, kHalfPercent);
  EXPECT_EQ(std::lround(static_cast<double>(counts_of("qwen3-235b").active) / kBillion), 22);
  EXPECT_EQ(counts_of("llama3-70b").active, counts_of("llama3-70b").total) << "it has no experts";
}

// Counted by hand, there are 16384 of the embedding and as many of the output layer, 64 of the last
// norm. Attention: 64 (norm) + 64*(4+2*2)*16 (qkv) + 64*64 = 12352. Dense: 64 + 3*64*192 = 36928.
// Experts: 64 + 64*4 (router) + 3*64*32 (shared) + 4*3*64*32 = 31040.
TEST(ReadyModels, OfTinyCanBeCountedByHand) {
  const ParameterCounts tiny = counts_of("tiny");
  EXPECT_EQ(tiny.embedding, 16384);
  EXPECT_EQ(tiny.total, 2 * 16384 + 64 + 4 * 12352 + 36928 + 3 * 31040);
  EXPECT_EQ(tiny.total - tiny.active, 3 * 2 * 3 * 64 * 32) << "two of four experts rest";
}

TEST(ParameterCounts, AreThoseOfTheWholeModelHoweverItIsDivided) {
  ModelConfiguration divided = ready_model_named("deepseek-v3")->configuration;
  const auto whole = parameter_counts(divided);
  divided.expert_parallel = 8;
  divided.tensor_parallel = 4;
  divided.sequence.reset();
  divided.micro_batch.reset();
  EXPECT_EQ(parameter_counts(divided)->total, whole->total);
  EXPECT_EQ(parameter_counts(divided)->active, whole->active);
}

TEST(ParameterCounts, HaveOneEmbeddingIfTheTwoAreTied) {
  ModelConfiguration tied = ready_model_named("llama3-70b")->configuration;
  const auto apart = parameter_counts(tied);
  tied.tied_embedding = true;
  EXPECT_EQ(apart->total - parameter_counts(tied)->total, std::int64_t{128256} * 8192);
}

TEST(ParameterCounts, NameWhatIsUndeclared) {
  const auto lacking = [](void (*take_away)(ModelConfiguration&)) {
    ModelConfiguration of = ready_model_named("tiny")->configuration;
    take_away(of);
    const auto counts = parameter_counts(of);
    return counts ? std::string() : counts.error();
  };
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.layers.reset(); }), "layers");
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.vocabulary.reset(); }), "vocabulary");
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.hidden.reset(); }), "hidden");
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.heads.reset(); }), "heads");
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.ffn.reset(); }), "ffn");
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.top_k.reset(); }), "top_k");
  EXPECT_EQ(lacking([](ModelConfiguration& of) { of.expert_ffn.reset(); }), "expert_ffn");
}

}  // namespace
}  // namespace capo
