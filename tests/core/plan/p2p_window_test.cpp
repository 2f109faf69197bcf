// The window in which the input gradient that a chunk of the model sends may be overwritten: as
// predicted, and as it was seen on an H200 with the order of TransformerEngine pull request 2376.
//
//   layer 2, microbatch 0:   made at 10, overwritten at 15, the next chunk's backward ends at 16
//
// Which block PyTorch's allocator takes is assumed in core/frameworks/te/reuse.h; how often that
// comes out as seen is printed here. No window that was seen there is missed.

#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/te/from_te_list.h"
#include "core/input/load.h"
#include "core/plan/accesses.h"
#include "tests/core/plan/planned.h"
#include "tests/support/data.h"
#include "tests/support/file_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::all_of;
using testing_support::PlannedStep;
using testing_support::read_data;

Schedule order_of_2376() {
  std::string text = testing_support::read_file(CAPO_SOURCE_DIR "/examples/te2376/fixed.te");
  return load(Source{.name = "fixed.te", .text = std::move(text)}, {.form = TextForm::TeList})
      .value()
      .schedule;
}

// What stood in for the modules on the H200.
Module stand_in(const std::string& name, std::optional<std::int64_t> tokens,
                std::optional<std::int64_t> features) {
  Module module{.name = name,
                .kind = ModuleKind::Linear,
                .dtype = DataType::Bf16,
                .shape = {.tokens = tokens, .hidden = features, .ffn = features}};
  if (name == "copying") module.recipe = Recipe::Current;
  if (name == "grouped_linear") module.kind = ModuleKind::GroupedLinear;
  if (name == "layernorm_linear") module.kind = ModuleKind::LayerNormLinear;
  return module;
}

// Where a buffer's memory is first written by another; nothing if that never happens.
std::optional<std::uint32_t> overwritten_at(const PlannedStep& step, const Plan& plan, BufferId id,
                                            std::uint32_t produced) {
  const BufferTable& table = step.table();
  const std::int64_t begin = plan.address[id];
  const std::int64_t end = begin + table.bytes(table.at(id));
  std::optional<std::uint32_t> found;
  for (const Work& work : step.course().work.at(0)) {
    if (work.entry <= produced || found) continue;
    const auto write = [&](BufferId other) {
      const std::int64_t at = plan.address[other];
      if (at == kNowhere) return;
      if (at < end && begin < at + table.bytes(table.at(other))) found = work.entry;
    };
    for_each_layer(table, 0, work, [&](std::int32_t layer) {
      for_each_access(table, 0, work, layer, write, [](BufferId) {});
    });
  }
  return found;
}

std::uint32_t backward_of(const PlannedStep& step, std::int32_t chunk, std::int32_t microbatch) {
  for (const Work& work : step.course().work.at(0)) {
    if (work.kind == Kind::Backward && work.chunk == chunk && work.microbatch == microbatch) {
      return work.entry;
    }
  }
  ADD_FAILURE() << "no backward of " << chunk << "." << microbatch;
  return 0;
}

struct Positions {
  std::size_t all = 0;
  std::size_t agree = 0;
  std::size_t windows_agree = 0;
  std::size_t windows_missed = 0;  ///< overwritten there, and not here
};

Positions positions_as_seen(const char* file) {
  auto [all, agree, windows_agree, windows_missed] = Positions();
  const Schedule schedule = order_of_2376();
  const json data = read_data(file);
  for (const json& row : data.at("grad_input_overwrites")) {
    const auto name = row.at("module").get<std::string>();
    SCOPED_TRACE(name);
    const PlannedStep step(schedule,
                           all_of(stand_in(name, row.at("rows").get<std::int64_t>(),
                                           row.at("features").get<std::int64_t>())),
                           {.model_chunks = {1, 2}});
    const Plan plan = step.plan(PlanKind::Te);
    std::size_t of_row = 0;
    for (const json& seen : row.at("first_layer_grad_inputs")) {
      const auto layer = seen.at("layer").get<std::int32_t>();
      const auto microbatch = seen.at("microbatch").get<std::int32_t>();
      const BufferId id = step.table().id(0, layer, 0, microbatch, BufferKind::GradInput);
      const std::uint32_t produced = backward_of(step, layer, microbatch);
      EXPECT_EQ(produced, seen.at("produced").get<std::uint32_t>());
      const auto at = overwritten_at(step, plan, id, produced);
      const json& there = seen.at("overwritten");
      const auto expected =
          there.is_null() ? std::nullopt : std::optional(there.get<std::uint32_t>());
      of_row += at == expected ? 1 : 0;
      ++all;
      const json& end = seen.at("next_model_chunk_end");
      if (end.is_null()) continue;
      const auto last = end.get<std::uint32_t>();
      const bool here = at && *at <= last;
      const bool seen_there = expected && *expected <= last;
      windows_agree += here == seen_there ? 1 : 0;
      windows_missed += seen_there && !here ? 1 : 0;
    }
    std::printf("%s, %lld x %lld: %zu of 16 positions as seen\n", name.c_str(),
                row.at("rows").get<long long>(), row.at("features").get<long long>(), of_row);
    agree += of_row;
  }
  std::printf("%zu of %zu positions as seen, %zu of 120 windows, %zu missed\n", agree, all,
              windows_agree, windows_missed);
  return {all, agree, windows_agree, windows_missed};
}

TEST(P2pWindow, GradientsAreOverwrittenMostlyWhereTheDeviceShowedIt) {
  const Positions of_2_19 = positions_as_seen("te_gpu_truth.json");
  EXPECT_EQ(of_2_19.all, 128U);
  EXPECT_EQ(of_2_19.agree, 103U);
  EXPECT_EQ(of_2_19.windows_missed, 0U);
  const Positions of_2_20 = positions_as_seen("te_gpu_2.20.json");
  EXPECT_EQ(of_2_20.all, 128U);
  EXPECT_EQ(of_2_20.agree, 55U);
  EXPECT_EQ(of_2_20.windows_missed, 0U);
}

TEST(P2pWindow, OfTheFirstSentGradientEndsTooLate) {
  const Schedule schedule = order_of_2376();
  for (const auto& [name, position] : {std::pair<std::string, std::uint32_t>{"linear", 15},
                                       {"grouped_linear", 15},
                                       {"layernorm_linear", 15},
                                       {"copying", 14}}) {
    SCOPED_TRACE(name);
    const PlannedStep step(schedule, all_of(stand_in(name, std::nullopt, std::nullopt)),
                           {.model_chunks = {1, 2}});
    const auto hazards = step.hazards(PlanKind::Te);
    const auto first = std::find_if(hazards.begin(), hazards.end(), [](const Hazard& hazard) {
      return hazard.window && hazard.victim.chunk == 2 && hazard.victim.microbatch == 0;
    });
    ASSERT_NE(first, hazards.end());
    EXPECT_EQ(first->victim.kind, BufferKind::GradInput);
    EXPECT_EQ(backward_of(step, 2, 0), 10U);
    EXPECT_EQ(first->writer.entry, position);
    EXPECT_EQ(first->reader.entry, 16U);
    EXPECT_TRUE(step.hazards(PlanKind::Safe).empty());
    // Its weight gradients lose nothing: what there is are windows.
    for (const Hazard& hazard : hazards) EXPECT_TRUE(hazard.window);
  }
}

// --- Megatron's orders ---------------------------------------------------------------------------

// One rank's order for groups as large as the pipeline, with weight gradients of their own.
struct MegatronOrder {
  std::int64_t pipeline = 2;
  std::int64_t rank = 0;
  std::int64_t microbatches = 4;
  std::vector<std::int64_t> layers;
};

std::vector<MegatronOrder> megatron_orders(std::int64_t groups) {
  std::vector<MegatronOrder> orders;
  for (const std::int64_t pipeline : {2, 4}) {
    for (std::int64_t rank = 0; rank < pipeline; ++rank) {
      for (const std::vector<std::int64_t>& layers : std::vector<std::vector<std::int64_t>>{
               {1, 1}, {2, 2}, {1, 2}, {2, 1}, {1, 3}, {3, 1}, {2, 3}}) {
        orders.push_back({pipeline, rank, groups * pipeline, layers});
      }
    }
  }
  return orders;
}

enum class Chunks { Layers, OfTheModel };

// Whether a gradient that is sent is overwritten before the next chunk of the model has ended.
bool overwrites_early(const MegatronOrder& of, Chunks chunks, const std::string& module) {
  const bool by_layer = chunks == Chunks::Layers;
  megatron::Request request{.rank = of.rank,
                            .layers_per_chunk = of.layers,
                            .weight_gradients = megatron::WeightGradients::Delayed};
  request.configuration = {.pipeline = of.pipeline,
                           .virtual_stages = 2,
                           .microbatches = of.microbatches,
                           .group_size = of.pipeline,
                           .ep_overlap = by_layer};
  const auto generated = megatron::orders_of(request).value();
  TeDeclarations declarations;
  if (!by_layer) declarations.layers = {.form = Layers::Form::List, .values = of.layers};
  std::vector<std::int32_t> model_chunks{1, 1};
  if (by_layer) model_chunks.assign(of.layers.begin(), of.layers.end());
  const PlannedStep step(from_te_list(generated.orders.front(), declarations).schedule,
                         all_of(stand_in(module, std::nullopt, std::nullopt)),
                         {.model_chunks = model_chunks});
  const auto hazards = step.hazards(PlanKind::Te);
  return std::any_of(hazards.begin(), hazards.end(),
                     [](const Hazard& hazard) { return hazard.window; });
}

TEST(P2pWindow, IsMissedByAllLayerOrdersButThoseOfOneLayerAChunk) {
  for (const std::int64_t groups : {1, 2, 4}) {
    for (const std::string module : {"linear", "grouped_linear", "copying"}) {
      SCOPED_TRACE(module + ", groups " + std::to_string(groups));
      std::size_t early = 0;
      std::size_t by_chunk = 0;
      const auto orders = megatron_orders(groups);
      for (const MegatronOrder& order : orders) {
        const bool found = overwrites_early(order, Chunks::Layers, module);
        EXPECT_EQ(found, order.layers != std::vector<std::int64_t>({1, 1}));
        early += found ? 1 : 0;
        by_chunk += overwrites_early(order, Chunks::OfTheModel, module) ? 1 : 0;
      }
      std::printf("%s, %lld groups: %zu of %zu layer orders overwrite early, %zu chunk orders\n",
                  module.c_str(), static_cast<long long>(groups), early, orders.size(), by_chunk);
      EXPECT_EQ(orders.size(), 42U);
      EXPECT_EQ(early, 36U);
      EXPECT_EQ(by_chunk, 0U);
    }
  }
}

// Behind a norm a backward takes one block more for a while, which the assumed allocator knows
// nothing of; on the device all 36 overwrote early, and not all of them are found.
TEST(P2pWindow, BehindANormIsMissedByMostLayerOrders) {
  for (const std::int64_t groups : {1, 2, 4}) {
    std::size_t early = 0;
    for (const MegatronOrder& order : megatron_orders(groups)) {
      const bool found = overwrites_early(order, Chunks::Layers, "layernorm_linear");
      EXPECT_FALSE(found && order.layers == std::vector<std::int64_t>({1, 1}));
      early += found ? 1 : 0;
      EXPECT_FALSE(overwrites_early(order, Chunks::OfTheModel, "layernorm_linear"));
    }
    std::printf("layernorm_linear, %lld groups: %zu of the 36 are found\n",
                static_cast<long long>(groups), early);
  }
}

}  // namespace
}  // namespace capo
