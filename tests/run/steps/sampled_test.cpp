// A sample of the comparison with float64: what it says of right engines, and which wrong products
// of an engine it sees.
//
// A row that is all wrong is seen where it is in the sample, which is so for samples / rows of all
// seeds; a single element in a row of the sample is seen however long the row is.

#include "run/reference/sampled_reference.h"
#include "tests/run/labelled_engine.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {
namespace {

constexpr const char* kTwoStages =
    "capo 1\nplacement chain\nrank 0 chunks 2\nrank 0: F1 F1 F2 B2 B1 F2 B2 B1\n";

// An engine some of whose products are wrong: `fault` is called behind each of a kind.
class FaultyEngine final : public LabelledEngine {
 public:
  using Fault = std::function<void(Engine&, const GroupedProduct&)>;
  FaultyEngine(GroupedProduct::Kind kind, Fault fault)
      : LabelledEngine(test_engine()), kind_(kind), fault_(std::move(fault)) {}

  void launch(StreamId stream, const Call& call) override {
    LabelledEngine::launch(stream, call);
    const auto* product = std::get_if<GroupedProduct>(&call);
    if (product != nullptr && product->kind == kind_) fault_(*this, *product);
  }

 private:
  GroupedProduct::Kind kind_;
  Fault fault_;
};

// Elements from one on become 0.75, or nearly so. A row of zeros would make a gradient of zeros in
// front of it, and rightly so.
void spoil(Engine& engine, void* memory, std::int64_t from, std::int64_t count,
           std::int64_t element) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(count * element), std::byte{0x3f});
  engine.write(static_cast<std::byte*>(memory) + from * element, bytes.data(), count * element);
}

FaultyEngine::Fault wrong_output_row(std::int64_t row) {
  return [row](Engine& engine, const GroupedProduct& of) {
    spoil(engine, of.y, row * of.out, of.out, 2);
  };
}

FaultyEngine::Fault wrong_input_gradient_row(std::int64_t row) {
  return [row](Engine& engine, const GroupedProduct& of) {
    spoil(engine, of.x, row * of.in, of.in, 2);
  };
}

// The gradient of the first group.
void* gradient_of(Engine& engine, const GroupedProduct& of) {
  void* first = nullptr;
  engine.read(static_cast<void*>(&first), static_cast<const void*>(of.w), sizeof(void*));
  return first;
}

RunOptions eagerly(std::int64_t samples, std::uint64_t seed = 1) {
  return {.replays = 0,
          .seed = seed,
          .sizes = SizeKind::Balanced,
          .float64 = Float64::Sampled,
          .float64_samples = samples};
}

Module linear(std::int64_t width) {
  Module module = small(ModuleKind::Linear);
  module.shape.hidden = module.shape.ffn = width;
  return module;
}

VerifiedPlan two_stages(Module module) {
  return verified(typed(kTwoStages), every_layer(std::move(module)));
}

bool names(const RunReport& report, std::string_view part) {
  return std::any_of(report.beyond.begin(), report.beyond.end(), [&](const BeyondBound& one) {
    return one.name.find(part) != std::string::npos;
  });
}

// For how many of all rows a wrong one is seen by a sample of so many, over some seeds.
template <typename Fault>
void expect_seen_where_sampled(GroupedProduct::Kind kind, Fault fault, std::string_view name) {
  constexpr std::int64_t kRows = 8;
  constexpr std::int64_t kSamples = 2;
  constexpr std::uint64_t kSeeds = 4;
  const VerifiedPlan plan = two_stages(small(ModuleKind::Linear));
  std::int64_t seen = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (std::int64_t row = 0; row < kRows; ++row) {
      FaultyEngine engine(kind, fault(row));
      const RunReport report = report_on(engine, plan, eagerly(kSamples, seed));
      EXPECT_EQ(report.within_bounds, report.beyond.empty());
      // Each microbatch has rows of its own.
      seen += names(report, std::string(name) + ", microbatch 0") ? 1 : 0;
    }
  }
  EXPECT_EQ(seen, kSamples * static_cast<std::int64_t>(kSeeds));
}

TEST(SampledFloat64, AWrongRowOfAnOutputIsSeenWhereItIsInTheSample) {
  expect_seen_where_sampled(GroupedProduct::Kind::Forward, wrong_output_row,
                            "input that layer 0 of chunk 2 of rank 0 read");
}

TEST(SampledFloat64, AWrongRowOfAnInputsGradientIsSeenWhereItIsInTheSample) {
  expect_seen_where_sampled(GroupedProduct::Kind::InputGradient, wrong_input_gradient_row,
                            "gradient that layer 0 of chunk 1 of rank 0 read");
}

TEST(SampledFloat64, AWrongRowOfAGradientThatLeavesTheStepIsSeenWhereItIsInTheSample) {
  expect_seen_where_sampled(GroupedProduct::Kind::InputGradient, wrong_input_gradient_row,
                            "input of chunk 1 of rank 0");
}

TEST(SampledFloat64, AWrongRowOfAWeightsGradientIsSeenWhereItIsInTheSample) {
  const VerifiedPlan plan = two_stages(small(ModuleKind::Linear));
  std::int64_t seen = 0;
  for (std::int64_t row = 0; row < 16; ++row) {
    FaultyEngine engine(GroupedProduct::Kind::WeightGradient,
                        [row](Engine& on, const GroupedProduct& of) {
                          spoil(on, gradient_of(on, of), row * of.in, of.in, 4);
                        });
    const RunReport report = report_on(engine, plan, eagerly(4));
    seen += names(report, "layer 0 of chunk 1 of rank 0: weight") ? 1 : 0;
  }
  EXPECT_EQ(seen, 4);
}

// A row of the sample has all columns.
TEST(SampledFloat64, AWrongColumnOfAWeightsGradientIsAlwaysSeen) {
  const VerifiedPlan plan = two_stages(small(ModuleKind::Linear));
  for (std::int64_t column = 0; column < 16; ++column) {
    FaultyEngine engine(GroupedProduct::Kind::WeightGradient,
                        [column](Engine& on, const GroupedProduct& of) {
                          for (std::int64_t row = 0; row < of.out; ++row) {
                            spoil(on, gradient_of(on, of), row * of.in + column, 1, 4);
                          }
                        });
    EXPECT_TRUE(names(report_on(engine, plan, eagerly(1)), "chunk 1 of rank 0: weight")) << column;
  }
}

// In two rows of 1,024 an element that is as far off as the others are large makes an error of 2 %,
// and in a tensor of real size none that is seen.
TEST(SampledFloat64, ASingleElementOfALongRowIsSeen) {
  constexpr std::int64_t kWidth = 1024;
  const VerifiedPlan plan = two_stages(linear(kWidth));
  for (const std::int64_t column : {0, 511, 1023}) {
    FaultyEngine engine(GroupedProduct::Kind::Forward,
                        [column](Engine& on, const GroupedProduct& of) {
                          for (std::int64_t row = 0; row < 8; ++row) {
                            spoil(on, of.y, row * of.out + column, 1, 2);
                          }
                        });
    const RunReport report = report_on(engine, plan, eagerly(1));
    EXPECT_FALSE(report.within_bounds);
    EXPECT_TRUE(names(report, "one element of input that layer 0 of chunk 2")) << column;
    ASSERT_TRUE(report.sampled);
    EXPECT_GT(report.sampled->worst_element, kElementBounds * 5e-3);
    // A row of each weight; of two microbatches a row of what each layer reads, forward and back,
    // and of the gradient that leaves the step.
    EXPECT_EQ(report.sampled->elements, (2 + 2 * (4 + 1)) * kWidth);
    EXPECT_EQ(report.sampled->tensors, 12U);
  }
}

class SampleOfAKind : public ::testing::TestWithParam<ModuleKind> {};

// A sample of everything compares what the first replay's comparison does.
TEST_P(SampleOfAKind, AllOfItIsTheFirstReplaysComparison) {
  for (const bool bias : {false, true}) {
    for (const char* order : {kTwoStages, "[1, 1, -1, -1.5, -1, -1.5]"}) {
      Module module = small(GetParam());
      module.flags.bias = bias;
      const VerifiedPlan plan = verified(typed(order), every_layer(module));
      RunOptions options{.replays = 1, .float64 = Float64::FirstReplay};
      const RunReport all = report_of(plan, options);
      options.float64 = Float64::Sampled;
      options.float64_samples = 1000;
      const RunReport sample = report_of(plan, options);
      EXPECT_TRUE(sample.bit_equal);
      EXPECT_EQ(sample.within_bounds, all.within_bounds) << order;
      EXPECT_TRUE(sample.within_bounds) << (sample.beyond.empty() ? "" : sample.beyond[0].name);
      EXPECT_EQ(sample.other_ways, all.other_ways);
      ASSERT_EQ(sample.parameters.size(), all.parameters.size());
      for (std::size_t i = 0; i < all.parameters.size(); ++i) {
        const TensorReport& one = sample.parameters[i];
        EXPECT_EQ(one.float64_elements, one.elements) << one.name;
        EXPECT_NEAR(one.float64_error, all.parameters[i].float64_error, 1e-12) << one.name;
        EXPECT_EQ(one.zero, all.parameters[i].zero);
      }
      for (std::size_t i = 0; i < all.input_gradients.size(); ++i) {
        const TensorReport& one = sample.input_gradients[i];
        EXPECT_LE(*one.float64_elements, one.elements) << "rows beyond are in no sample";
        EXPECT_NEAR(one.float64_error, all.input_gradients[i].float64_error, 1e-12) << one.name;
      }
    }
  }
}

// Small samples of several seeds are within the bounds as well, those of single elements included.
TEST_P(SampleOfAKind, ARightEngineIsWithinTheBoundsOfASample) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    Module module = small(GetParam());
    module.dtype = type;
    if (type == DataType::Fp32 && is_grouped(GetParam())) continue;  // C01
    const VerifiedPlan plan = two_stages(module);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      for (const SizeKind sizes : {SizeKind::Zipf, SizeKind::Random}) {
        RunOptions options = eagerly(3, seed);
        options.sizes = sizes;
        const RunReport report = report_of(plan, options);
        EXPECT_TRUE(report.within_bounds)
            << seed << " " << report.beyond[0].name << " " << report.beyond[0].error;
        EXPECT_GT(report.sampled->elements, 0);
        const RunReport again = report_of(plan, options);
        EXPECT_EQ(again.worst_relative_error, report.worst_relative_error);
        EXPECT_EQ(again.sampled->worst_element, report.sampled->worst_element);
      }
    }
  }
}

// All but layers with a router and transformer layers, of which no sample is taken.
std::vector<ModuleKind> sampled_kinds() {
  std::vector<ModuleKind> kinds(kRunKinds.begin(), kRunKinds.end());
  std::erase_if(kinds, is_made_of_modules);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Kinds, SampleOfAKind, ::testing::ValuesIn(sampled_kinds()),
                         [](const auto& of) {
                           std::string name(name_of(of.param));
                           std::erase(name, '-');
                           return name;
                         });

// Gradients of norms are sums over all rows.
TEST(SampledFloat64, ANormsGradientsAreLeftOutUnlessAllRowsAreInTheSample) {
  const VerifiedPlan plan = two_stages(small(ModuleKind::LayerNormMlp));
  const auto elements = [&](std::int64_t samples) {
    return parameter(report_of(plan, eagerly(samples)), "chunk 1 of rank 0: norm weight")
        .float64_elements;
  };
  EXPECT_EQ(elements(7), 0);
  EXPECT_EQ(elements(8), 16);
}

}  // namespace
}  // namespace capo::run
