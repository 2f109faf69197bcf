// Runs of layers that need only some of their gradients: the weights' alone, the input's alone; and
// of one that cannot be given any, because its main_grad cannot be written.
//
// How many products of each kind a graph holds is counted in the graphs themselves: what nobody
// needs is not computed.

#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

namespace capo::run {
namespace {

constexpr const char* kWhole = "[1, 1, -1, -1]";
constexpr const char* kDelayed = "[1, 1, -1, -1.5, -1, -1.5]";

struct Products {
  std::size_t forward = 0;
  std::size_t input = 0;
  std::size_t weight = 0;

  friend bool operator==(const Products&, const Products&) = default;
};

void PrintTo(const Products& products, std::ostream* out) {
  *out << products.forward << " forward, " << products.input << " of inputs, " << products.weight
       << " of weights";
}

// The counts are those of one microbatch of two, in all graphs together.
Products products_of(const Inspection& at) {
  Products all;
  for (const Stepper::Captured& captured : at.graphs) {
    for (const GraphNode& node : at.engine.inspect(captured.graph)) {
      const auto* product = std::get_if<GroupedProduct>(&node.call);
      if (product == nullptr) continue;
      auto& count = product->kind == GroupedProduct::Kind::Forward         ? all.forward
                    : product->kind == GroupedProduct::Kind::InputGradient ? all.input
                                                                           : all.weight;
      ++count;
    }
  }
  EXPECT_EQ(all.forward % 2 + all.input % 2 + all.weight % 2, 0U);
  return {all.forward / 2, all.input / 2, all.weight / 2};
}

// A run that has to come out right, and what its graphs compute.
struct Ran {
  RunReport report;
  Products products;
};
Ran run_right(const Module& module, const char* order, Granularity graphs) {
  Ran ran;
  RunOptions options{.graphs = graphs};
  options.inspect = [&](const Inspection& at) { ran.products = products_of(at); };
  ran.report = run_verified(typed(order), every_layer(module), options);
  EXPECT_TRUE(ran.report.bit_equal);
  EXPECT_TRUE(ran.report.within_bounds);
  return ran;
}

template <typename Visit>
void each_run(Visit visit) {
  for (const ModuleKind kind : kRunKinds) {
    for (const char* order : {kWhole, kDelayed}) {
      for (const Granularity graphs : kGranularities) {
        SCOPED_TRACE(std::string(capo::name_of(kind)) + " " + order);
        visit(kind, order, graphs);
      }
    }
  }
}

std::size_t weights_of(ModuleKind kind) {
  return has_two_halves(kind) ? 4 : has_router(kind) ? 3 : has_two_weights(kind) ? 2 : 1;
}

// Not counting those of probabilities, which there are in any case.
std::size_t inputs_of(const RunReport& report) {
  return static_cast<std::size_t>(std::count_if(
      report.input_gradients.begin(), report.input_gradients.end(),
      [](const TensorReport& tensor) { return tensor.name.starts_with("input of"); }));
}

TEST(PartialGradients, WithAllOfThemEachWeightHasItsTwoProducts) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    const Ran ran = run_right(small(kind), order, graphs);
    const std::size_t weights = weights_of(kind);
    EXPECT_EQ(ran.products, (Products{weights, weights, weights}));
    EXPECT_EQ(inputs_of(ran.report), 2U);
  });
}

TEST(PartialGradients, WeightsAloneLeaveOutTheInputsProduct) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    Module module = small(kind);
    module.flags.input_requires_grad = false;
    const Ran ran = run_right(module, order, graphs);
    const std::size_t weights = weights_of(kind);
    // A norm needs it for its own parameters, and the first of two weights that of the second.
    const bool norm = has_norm(kind) || has_two_halves(kind);
    const std::size_t needed = weights - 1 + (norm ? 1 : 0);
    EXPECT_EQ(ran.products, (Products{weights, needed, weights}));
    EXPECT_EQ(inputs_of(ran.report), 0U);
  });
}

// If there are two weights, the first is frozen, and of a transformer layer that of its MLP.
TEST(PartialGradients, AFrozenWeightHasNoProductOfItsOwn) {
  each_run([](ModuleKind kind, const char* order, Granularity graphs) {
    Module module = small(kind);
    module.flags.frozen_weight = true;
    const Ran ran = run_right(module, order, graphs);
    const std::size_t weights = weights_of(kind);
    EXPECT_EQ(ran.products, (Products{weights, weights, weights - 1}));
    EXPECT_EQ(inputs_of(ran.report), 2U);
    for (const TensorReport& tensor : ran.report.parameters) {
      const bool frozen =
          tensor.name.ends_with(is_attention(kind)                         ? "qkv weight"
                                : has_swiglu(kind) || has_two_halves(kind) ? "fc1 weight"
                                                                           : ": weight");
      EXPECT_EQ(tensor.ascending_error.has_value(), !frozen) << tensor.name;
    }
  });
}

// --- a main_grad that cannot be written ----------------------------------------------------------

// Whoever asks anything of it has begun.
class UntouchedEngine final : public Engine {
 public:
  std::string_view name() const override { throw begun(); }
  std::string device() const override { throw begun(); }
  std::byte* allocate(std::int64_t, std::string_view) override { throw begun(); }
  void release(std::byte*) override { throw begun(); }
  void write(void*, const void*, std::int64_t) override { throw begun(); }
  void read(void*, const void*, std::int64_t) override { throw begun(); }
  void have_streams(std::uint32_t) override { throw begun(); }
  void launch(StreamId, const Call&) override { throw begun(); }
  EventId record(StreamId) override { throw begun(); }
  void wait(StreamId, EventId) override { throw begun(); }
  void begin_capture(StreamId) override { throw begun(); }
  GraphId end_capture() override { throw begun(); }
  void replay(GraphId, StreamId) override { throw begun(); }
  std::vector<GraphNode> inspect(GraphId) override { throw begun(); }
  void synchronise() override { throw begun(); }
  double between(EventId, EventId) override { throw begun(); }
  void forget_events() override { throw begun(); }
  void label(std::string_view) override { throw begun(); }
  const std::optional<Error>& error() const override { throw begun(); }

 private:
  static std::logic_error begun() { return std::logic_error("the run began"); }
};

Module with_main_grad(ModuleKind kind, MainGrad main_grad) {
  Module module = small(kind);
  module.flags.single_weight = true;
  module.main_grad = std::move(main_grad);
  return module;
}

TEST(PartialGradients, AMainGradThatCannotBeViewedIsRefusedBeforeAnythingRuns) {
  UntouchedEngine engine;
  const auto refused = [&](const Module& module) {
    const auto report = run(engine, verified(typed(kDelayed), every_layer(module)), {});
    if (report) return std::string("it ran");
    EXPECT_EQ(report.error().kind, RunFailure::Kind::Refused);
    return report.error().message;
  };
  EXPECT_EQ(refused(with_main_grad(ModuleKind::GroupedLinear, {{3, 16, 16}, {256, 1, 16}})),
            "module `grouped-linear`: main_grad of shape (3, 16, 16) with strides (256, 1, 16) "
            "cannot be viewed as (groups 3, out 16, in 16): as that it has strides (256, 1, 16) "
            "and not (256, 16, 1), so its elements do not lie one behind another");
  for (const ModuleKind kind : {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp}) {
    EXPECT_NE(
        refused(with_main_grad(kind, {{48, 16}, {32, 1}})).find("main_grad of shape (48, 16)"),
        std::string::npos);
  }
  EXPECT_NE(refused(with_main_grad(ModuleKind::GroupedMlp, {{3, 32, 16}, {512, 1, 32}}))
                .find("main_grad of shape (3, 32, 16)"),
            std::string::npos);
  // It is this engine that says so, where nothing is refused.
  EXPECT_THROW(refused(small(ModuleKind::GroupedLinear)), std::logic_error);
}

TEST(PartialGradients, AMainGradThatCanBeViewedIsRun) {
  for (const ModuleKind kind : {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp}) {
    run_right(with_main_grad(kind, {{48, 16}, {16, 1}}), kDelayed, Granularity::PerAction);
    run_right(with_main_grad(kind, {{768}, {1}}), kWhole, Granularity::PerStep);
  }
}

}  // namespace
}  // namespace capo::run
