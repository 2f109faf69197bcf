// The inputs of a step are the same for the same seed and replay and others for every other, rows
// beyond the groups are NaN, and the engine's memory holds the numbers that were drawn.

#include "run/execute/step_inputs.h"
#include "run/execute/step_outputs.h"
#include "run/host/host_engine.h"
#include "run/kernels/stored.h"
#include "run/setup/group_sizes.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace capo::run {
namespace {

using Floats = std::vector<float>;

// A step of one kind of layer, with its program.
class GivenStep {
 public:
  explicit GivenStep(Module module, const std::string& order = kOrder)
      : GivenStep(every_layer(std::move(module)), order) {}
  explicit GivenStep(const CheckOptions& declared, const std::string& order = kOrder)
      : plan(admitted(typed(order), declared)),
        layers(StepLayers::of(plan.step()).value()),
        program(program_of(table(), plan.step().replayed()).value()) {}

  [[nodiscard]] const BufferTable& table() const { return plan.step().view().table(); }
  [[nodiscard]] StepValues draw(std::uint64_t seed = 1, std::uint32_t replay = 0,
                                SizeKind sizes = SizeKind::Random) const {
    return draw_values(plan.step(), layers, program, sizes, seed, replay);
  }
  [[nodiscard]] StepInputs given(Engine& engine) const {
    return {engine, plan.step(), layers, program};
  }

  // Two stages of two layers on one rank, three microbatches.
  static constexpr const char* kOrder =
      "capo 1\nranks 1\nmicrobatches 3\nplacement chain\nlayers 2\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0 F1.1 F2.1 B2.1 B1.1 F1.2 F2.2 B2.2 B1.2\n";

  UncheckedPlan plan;
  StepLayers layers;
  Program program;
};

Module experts() {
  Module module = small(ModuleKind::GroupedMlp);
  module.shape = {.tokens = 40, .hidden = 4, .ffn = 4, .groups = 5};
  return module;
}

// To the bit, NaN included.
std::vector<std::byte> bits(const Floats& values) {
  return to_stored(values, DataType::Fp32);
}

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::vector<std::byte> bits(const DrawnTensor& tensor) {
  return to_stored(values_of(tensor), DataType::Fp32);
}

// From which row on all is NaN; -1 if a NaN stands before a number.
std::int64_t rows_there(const Floats& values, std::size_t columns) {
  const auto first =
      std::find_if(values.begin(), values.end(), [](float v) { return std::isnan(v); });
  const auto count = static_cast<std::size_t>(first - values.begin());
  const bool tail = std::all_of(first, values.end(), [](float v) { return std::isnan(v); });
  return tail && count % columns == 0 ? static_cast<std::int64_t>(count / columns) : -1;
}

TEST(StepInputs, TheSameSeedAndReplayGiveTheSameNumbers) {
  const GivenStep step(experts());
  const StepValues once = step.draw(3, 2);
  const StepValues again = step.draw(3, 2);
  ASSERT_EQ(once.inputs.size(), 6U);
  ASSERT_EQ(once.sides.size(), 4U);
  for (std::size_t cell = 0; cell < 6; ++cell) {
    EXPECT_EQ(bits(once.inputs[cell]), bits(again.inputs[cell]));
    EXPECT_EQ(bits(once.grad_outputs[cell]), bits(again.grad_outputs[cell]));
  }
  for (std::size_t layer = 0; layer < 4; ++layer) {
    for (std::size_t m = 0; m < 3; ++m) {
      EXPECT_EQ(once.sides[layer][m].sizes, again.sides[layer][m].sizes);
      EXPECT_EQ(once.sides[layer][m].probabilities, again.sides[layer][m].probabilities);
    }
  }
}

// No two of all that a seed and three replays draw are alike.
TEST(StepInputs, EveryTensorOfEveryReplayAndSeedIsAnother) {
  const GivenStep step(experts());
  std::set<Floats> seen;
  std::size_t drawn = 0;
  for (const std::uint64_t seed : {1, 2}) {
    for (const std::uint32_t replay : {0, 1, 2}) {
      const StepValues given = step.draw(seed, replay, SizeKind::Balanced);
      for (const auto* tensors : {&given.inputs, &given.grad_outputs}) {
        for (const DrawnTensor& tensor : *tensors) seen.insert(values_of(tensor));
        drawn += tensors->size();
      }
      for (const auto& layer : given.sides) {
        for (const StepValues::Side& side : layer) seen.insert(side.probabilities);
        drawn += layer.size();
      }
    }
  }
  EXPECT_EQ(drawn, 6U * (6 + 6 + 4 * 3));
  EXPECT_EQ(seen.size(), drawn);
}

TEST(StepInputs, SizesDifferFromReplayToReplayAndFromLayerToLayer) {
  const GivenStep step(experts());
  for (const SizeKind kind : {SizeKind::Random, SizeKind::Zipf}) {
    std::set<std::vector<std::int64_t>> seen;
    for (const std::uint32_t replay : {0, 1, 2, 3}) {
      for (const auto& layer : step.draw(1, replay, kind).sides) {
        for (const StepValues::Side& side : layer) seen.insert(side.sizes);
      }
    }
    // Of 48 with 40 rows in 5 groups a few may meet.
    EXPECT_GT(seen.size(), kind == SizeKind::Random ? 40U : 25U);
  }
}

TEST(StepInputs, EveryLayerOfAMicrobatchHasAsManyRows) {
  const GivenStep step(experts());
  for (std::uint32_t replay = 0; replay < 10; ++replay) {
    const StepValues given = step.draw(1, replay);
    for (std::size_t m = 0; m < 3; ++m) {
      const std::int64_t rows = sum(given.sides[0][m].sizes);
      EXPECT_GE(rows, 20);
      EXPECT_LE(rows, 40);
      for (const auto& layer : given.sides) EXPECT_EQ(sum(layer[m].sizes), rows);
      // Cells are chunk by chunk.
      for (const std::size_t cell : {m, m + 3}) {
        EXPECT_EQ(rows_there(values_of(given.inputs[cell]), 4), rows);
        EXPECT_EQ(rows_there(values_of(given.grad_outputs[cell]), 4), rows);
      }
    }
  }
}

TEST(StepInputs, MicrobatchesAndReplaysHaveRowsOfTheirOwn) {
  const GivenStep step(experts());
  std::set<std::int64_t> seen;
  for (std::uint32_t replay = 0; replay < 10; ++replay) {
    const StepValues given = step.draw(1, replay);
    for (std::size_t m = 0; m < 3; ++m) seen.insert(sum(given.sides[0][m].sizes));
  }
  EXPECT_GT(seen.size(), 10U);
  EXPECT_LT(*seen.begin(), 25);
  EXPECT_GT(*seen.rbegin(), 35);
}

TEST(StepInputs, WhereSizesAreNotRandomAllRowsAreThere) {
  const GivenStep step(experts());
  for (const SizeKind kind : {SizeKind::Balanced, SizeKind::Zipf}) {
    const StepValues given = step.draw(1, 0, kind);
    for (const DrawnTensor& input : given.inputs) EXPECT_EQ(rows_there(values_of(input), 4), 40);
    for (const auto& layer : given.sides) {
      for (const StepValues::Side& side : layer) EXPECT_EQ(sum(side.sizes), 40);
    }
  }
}

// A linear reads them all.
TEST(StepInputs, WhereALayerHasNoGroupsAllRowsAreThere) {
  CheckOptions declared = every_layer(experts());
  Module linear = small(ModuleKind::Linear);
  linear.shape = {.tokens = 40, .hidden = 4, .ffn = 4};
  declared.modules.list.push_back(linear);
  declared.modules.layers = {{{0, 1}}};
  const GivenStep step(declared);
  for (std::uint32_t replay = 0; replay < 5; ++replay) {
    const StepValues given = step.draw(1, replay);
    for (const DrawnTensor& input : given.inputs) EXPECT_EQ(rows_there(values_of(input), 4), 40);
    for (const StepValues::Side& side : given.sides[0]) EXPECT_EQ(sum(side.sizes), 40);
    for (const StepValues::Side& side : given.sides[1]) EXPECT_TRUE(side.sizes.empty());
  }
}

TEST(StepInputs, NumbersAreAroundZeroAndOfTheLayersType) {
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    Module module = small(ModuleKind::Linear);
    module.dtype = type;
    const GivenStep step(module);
    for (const DrawnTensor& tensor : step.draw().inputs) {
      const Floats input = values_of(tensor);
      ASSERT_EQ(input.size(), 8U * 16);
      EXPECT_EQ(from_stored(to_stored(input, type), type), input);
      EXPECT_GE(*std::min_element(input.begin(), input.end()), -1.0F);
      EXPECT_LE(*std::max_element(input.begin(), input.end()), 1.0F);
      EXPECT_LT(*std::min_element(input.begin(), input.end()), -0.8F);
      EXPECT_GT(*std::max_element(input.begin(), input.end()), 0.8F);
    }
  }
}

// Far from zero, so that a factor that was left out shows.
TEST(StepInputs, ProbabilitiesAndScalesAreFromAQuarterToOne) {
  Module scaling = small(ModuleKind::GroupedLinearOp);
  scaling.flags.bias = true;
  scaling.flags.scale_bias = true;
  const StepValues with_scales = GivenStep(scaling).draw();
  const StepValues with_probabilities = GivenStep(experts()).draw();
  for (const auto& [values, count] :
       {std::pair{with_scales.sides[0][0].scales, 8U},
        std::pair{with_probabilities.sides[0][0].probabilities, 40U}}) {
    ASSERT_EQ(values.size(), count);
    EXPECT_GE(*std::min_element(values.begin(), values.end()), 0.25F);
    EXPECT_LT(*std::max_element(values.begin(), values.end()), 1.0F);
  }
  EXPECT_TRUE(with_scales.sides[0][0].probabilities.empty());
  EXPECT_TRUE(with_probabilities.sides[0][0].scales.empty());
}

TEST(StepInputs, OnTheEngineItIsWhatWasDrawn) {
  const GivenStep step(experts());
  host::HostEngine engine;
  StepInputs given = step.given(engine);
  for (const std::uint32_t replay : {0, 1}) {
    const StepValues values = step.draw(1, replay);
    given.write(values);
    const auto read = [&](const void* from, std::size_t bytes) {
      std::vector<std::byte> memory(bytes);
      engine.read(memory.data(), from, static_cast<std::int64_t>(bytes));
      return memory;
    };
    const std::size_t bytes = 40U * 4 * 2;
    for (std::uint32_t cell = 0; cell < 3; ++cell) {
      EXPECT_EQ(read(given.input(cell), bytes),
                to_stored(values_of(values.inputs[cell]), DataType::Bf16));
    }
    for (std::uint32_t cell = 3; cell < 6; ++cell) {
      EXPECT_EQ(read(given.grad_output(cell), bytes),
                to_stored(values_of(values.grad_outputs[cell]), DataType::Bf16));
    }
    for (std::size_t layer = 0; layer < 4; ++layer) {
      for (std::int32_t m = 0; m < 3; ++m) {
        const StepValues::Side& from = values.sides[layer][static_cast<std::size_t>(m)];
        const LayerSide side = given.side(layer, m);
        std::vector<std::int64_t> sizes(5);
        engine.read(sizes.data(), side.sizes, 5 * 8);
        EXPECT_EQ(sizes, from.sizes);
        EXPECT_EQ(side.sizes_on_host, from.sizes);
        EXPECT_EQ(read(side.probabilities, 40U * 4), bits(from.probabilities));
        EXPECT_EQ(side.scales, nullptr);
      }
    }
  }
  EXPECT_EQ(engine.error(), std::nullopt);
}

TEST(StepInputs, AddressesStayAndDiffer) {
  const GivenStep step(experts());
  host::HostEngine engine;
  StepInputs given = step.given(engine);
  const auto addresses = [&] {
    std::vector<const void*> all;
    for (std::uint32_t cell = 0; cell < 3; ++cell)
      all.insert(all.end(), {given.input(cell), given.grad_output(cell + 3)});
    for (std::size_t layer = 0; layer < 4; ++layer) {
      for (std::int32_t m = 0; m < 3; ++m) {
        all.insert(all.end(), {given.side(layer, m).sizes, given.side(layer, m).probabilities});
      }
    }
    return all;
  };
  const auto before = addresses();
  given.write(step.draw(1, 0));
  given.write(step.draw(1, 1));
  EXPECT_EQ(addresses(), before);
  EXPECT_EQ(std::set<const void*>(before.begin(), before.end()).size(), before.size());
  EXPECT_FALSE(std::count(before.begin(), before.end(), nullptr));
}

// The first of two ranks is given rows and the last one gradients, and each gets what the other
// sends. On one rank nothing is sent.
TEST(StepInputs, HavePlacesForWhatTheProgramReads) {
  const auto places = [](const GivenStep& step) {
    host::HostEngine engine;
    const StepInputs given = step.given(engine);
    std::string words;
    for (std::uint32_t cell = 0; cell < Cells(step.table()).count(); ++cell) {
      words += given.input(cell) != nullptr ? " input" : "";
      words += given.grad_output(cell) != nullptr ? " gradient" : "";
      words += given.landing(cell, Way::Forward) != nullptr ? " received-input" : "";
      words += given.landing(cell, Way::Backward) != nullptr ? " received-gradient" : "";
      words += ",";
    }
    return words;
  };
  EXPECT_EQ(places(GivenStep(experts(),
                             "capo 1\nmicrobatches 1\nplacement loop\n"
                             "rank 0: F1.0 F2.0 B2.0 B1.0\n")),
            " input, gradient,");
  EXPECT_EQ(places(GivenStep(experts(),
                             "capo 1\nmicrobatches 1\nplacement chain\n"
                             "rank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n")),
            " input received-gradient, gradient received-input,");
  EXPECT_EQ(places(GivenStep(experts(), "capo 1\nmicrobatches 1\nrank 0: F1.0 B1.0\n")),
            " input gradient,");
}

// Rows that an exchange has moved are as stale as those that a message has brought.
TEST(StepInputs, PlacesWhereSomethingArrivesAreSpoiled) {
  const GivenStep step(experts(),
                       "capo 1\nmicrobatches 1\nplacement chain\n"
                       "rank 0: F1.0 dispatch-F1.0 combine-F1.0 B1.0\n"
                       "rank 1: F1.0 combine-B1.0 dispatch-B1.0 B1.0\n");
  ASSERT_EQ(step.program.exchanges.size(), 2U);
  host::HostEngine engine;
  StepInputs given = step.given(engine);
  given.write(step.draw());
  const std::vector<std::byte> poison(40U * 4 * 2, std::byte{kPoison});
  const auto filled = [&](std::byte* place) {
    std::vector<std::byte> bytes(poison.size());
    engine.read(bytes.data(), place, std::ssize(bytes));
    return bytes == poison;
  };
  const auto each = [&](auto visit) {
    visit(given.landing(0, Way::Backward));
    visit(given.landing(1, Way::Forward));
    for (const std::uint32_t exchange : {0U, 1U}) {
      visit(given.route(exchange).rows);
      visit(given.route(exchange).returned);
    }
  };
  const std::vector<std::byte> stale(poison.size());
  each([&](std::byte* place) { engine.write(place, stale.data(), std::ssize(stale)); });
  each([&](std::byte* place) { EXPECT_FALSE(filled(place)); });
  given.spoil_arrivals();
  each([&](std::byte* place) { EXPECT_TRUE(filled(place)); });
  EXPECT_FALSE(filled(given.input(0)));
  EXPECT_FALSE(filled(given.grad_output(1)));
}

TEST(DrawParameter, IsAFunctionOfTheSeedAndTheParameter) {
  Module module = small(ModuleKind::LayerNormMlp);
  module.flags.bias = true;
  const GivenStep step(module);
  std::set<Floats> seen;
  const auto count = static_cast<std::uint32_t>(step.layers.parameters().size());
  for (std::uint32_t parameter = 0; parameter < count; ++parameter) {
    const Floats values = values_of(draw_parameter(step.layers, parameter, 5));
    EXPECT_EQ(values, values_of(draw_parameter(step.layers, parameter, 5)));
    EXPECT_NE(values, values_of(draw_parameter(step.layers, parameter, 6)));
    EXPECT_EQ(from_stored(to_stored(values, DataType::Bf16), DataType::Bf16), values);
    const ParameterForm& form = step.layers.parameters()[parameter];
    EXPECT_EQ(values.size(), static_cast<std::size_t>(form.groups * form.elements));
    seen.insert(values);
  }
  EXPECT_EQ(seen.size(), count);
}

// A norm's weight is around one. A product of 16 columns is as large as what it reads if its
// weights are up to sqrt(3/16) = 0.433.
TEST(DrawParameter, ValuesAreAsLargeAsTheirRoleWants) {
  const GivenStep step(small(ModuleKind::LayerNormLinear));
  const auto range = [&](Role role) {
    const std::uint32_t parameter = step.layers.all()[0].parameter[static_cast<std::size_t>(role)];
    const Floats values = values_of(draw_parameter(step.layers, parameter, 1));
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return std::pair{*least, *most};
  };
  const auto expect_within = [&](Role role, float least, float most) {
    const auto [from, to] = range(role);
    const float width = most - least;
    EXPECT_GE(from, least);
    EXPECT_LE(to, most);
    EXPECT_LT(from, least + width / 4);
    EXPECT_GT(to, most - width / 4);
  };
  expect_within(Role::NormWeight, 0.5F, 1.5F);
  expect_within(Role::NormBias, -0.5F, 0.5F);
  expect_within(Role::First, -0.434F, 0.434F);
}

}  // namespace
}  // namespace capo::run
