// Megatron's orders against Megatron's own functions, row by row and field by field, and what the
// functions do with input that they are not made for.

#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/megatron/chunk_order.h"
#include "core/frameworks/te/list_text.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <limits>

namespace capo::megatron {
namespace {

using nlohmann::json;
using testing_support::read_data;
using testing_support::te_list_of;

using Numbers = std::vector<std::int64_t>;

mcore::Configuration configuration_of(const json& in) {
  mcore::Configuration configuration{.pipeline = in.at("pp"),
                                     .microbatches = in.at("num_microbatches"),
                                     .ep_overlap = in.at("overlap")};
  if (!in.at("vp").is_null()) configuration.virtual_stages = in.at("vp").get<std::int64_t>();
  if (!in.at("group_size").is_null())
    configuration.group_size = in.at("group_size").get<std::int64_t>();
  return configuration;
}

WeightGradients gradients(bool delayed) {
  return delayed ? WeightGradients::Delayed : WeightGradients::InBackward;
}

std::vector<TableEntry> table_of(const json& rows) {
  std::vector<TableEntry> table;
  for (const json& row : rows) table.push_back({.microbatch = row.at(0), .chunk = row.at(1)});
  return table;
}

json json_of(const std::vector<TableEntry>& table) {
  json rows = json::array();
  for (const TableEntry& entry : table) rows.push_back({entry.microbatch, entry.chunk});
  return rows;
}

json json_of(const TeList& list) {
  json out = json::array();
  for (const TeEntry& entry : list.entries) {
    if (entry.type == NumberType::Integer) {
      out.push_back(static_cast<std::int64_t>(entry.value));
    } else {
      out.push_back(entry.value);
    }
  }
  return out;
}

json flat(const LayerOrder& made) {
  json out = json::array();
  for (std::size_t i = 0; i < made.places.size(); ++i) {
    const auto& place = made.places[i];
    EXPECT_EQ(place.has_value(), made.order.entries[i].value > 0) << i;
    if (!place) continue;
    out.push_back(place->chunk);
    out.push_back(place->layer == kNoLayer ? json(nullptr) : json(place->layer));
  }
  return out;
}

template <typename T>
std::string exception_of(const Made<T>& made) {
  if (made) return "nothing";
  const auto* raised = std::get_if<Raised>(&made.error());
  return raised ? raised->exception : "limit: " + std::get<Error>(made.error()).message;
}

template <typename T>
json raised_by(const Made<T>& made) {
  return made ? json(nullptr) : json(exception_of(made));
}

json rows_of(const std::string& kind) {
  const json data = read_data("megatron_orders.json");
  json rows = json::array();
  for (const json& row : data.at("rows")) {
    if (row.at("kind") == kind) rows.push_back(row);
  }
  return rows;
}

// --- the rows -----------------------------------------------------------------------------------

void expect_counts(const json& row, const ForwardCounts& runtime, const ForwardCounts& capture) {
  EXPECT_EQ(row.at("total_num_microbatches"), runtime.total);
  EXPECT_EQ(row.at("are_all_microbatches_in_warmup"), runtime.all_in_warmup);
  EXPECT_EQ(row.at("num_warmup"), runtime.warmup);
  EXPECT_EQ(row.at("num_remaining"), runtime.remaining);
  EXPECT_EQ(row.at("num_warmup_capture"), capture.warmup);
}

void expect_microbatches(const json& row, const std::vector<TableEntry>& table) {
  json microbatches = json::array();
  for (const TableEntry& entry : table) microbatches.push_back(entry.microbatch);
  EXPECT_EQ(row.at("microbatch_id_table"), microbatches);
}

TEST(MegatronRows, EveryScheduleIsMadeStepByStepAsMegatronMakesIt) {
  std::size_t rows = 0;
  for (const json& row : rows_of("schedule")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& in = row.at("inputs");
    const mcore::Configuration configuration = configuration_of(in);
    const std::int64_t chunks = chunks_of(configuration);
    const auto runtime = forward_counts(configuration, in.at("rank"), OverlapFlag::Told);
    const auto capture = forward_counts(configuration, in.at("rank"), OverlapFlag::Untold);
    ASSERT_TRUE(runtime && capture);
    expect_counts(row, *runtime, *capture);

    const auto table =
        schedule_table(configuration.microbatches, chunks, configuration.group_size.value());
    ASSERT_TRUE(table);
    expect_microbatches(row, *table);

    const auto order = chunk_order(capture->warmup, chunks, *table);
    const auto executed = chunk_order(runtime->warmup, chunks, *table);
    ASSERT_TRUE(order && executed);
    EXPECT_EQ(row.at("chunk_order"), json(*order));
    const json& differs = row.at("chunk_order_runtime");
    EXPECT_EQ(differs.is_null() ? row.at("chunk_order") : differs, json(*executed));

    const bool expanded = in.at("overlap");
    EXPECT_EQ(row.at("layer_order").is_null(), !expanded);
    EXPECT_TRUE(row.at("raises").is_null());
    ++rows;
    if (!expanded) continue;
    const auto layers = in.at("layers_per_chunk").get<Numbers>();
    const auto by_layer = layer_order(*order, layers, gradients(in.at("wgrad")));
    ASSERT_TRUE(by_layer);
    EXPECT_EQ(row.at("layer_order"), json_of(by_layer->order));
    EXPECT_EQ(row.at("forward_places"), flat(*by_layer));
  }
  std::printf("%zu schedules\n", rows);
  EXPECT_EQ(rows, 272U);
}

TEST(MegatronRows, EveryScheduleIsMadeInOneCall) {
  std::size_t captured = 0;
  std::size_t executed = 0;
  for (const json& row : rows_of("schedule")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& in = row.at("inputs");
    Request request{.configuration = configuration_of(in),
                    .rank = in.at("rank").get<std::int64_t>(),
                    .layers_per_chunk = in.at("layers_per_chunk").get<Numbers>(),
                    .weight_gradients = gradients(in.at("wgrad"))};
    const auto capture = orders_of(request);
    ASSERT_TRUE(capture);
    ASSERT_EQ(capture->orders.size(), 1U);
    const bool by_layer = in.at("overlap");
    EXPECT_EQ(row.at(by_layer ? "layer_order" : "chunk_order"), json_of(capture->orders[0]));
    ++captured;

    // Without a pipeline the runtime does not make its order by these functions.
    if (request.configuration.pipeline == 1 && !request.configuration.virtual_stages) continue;
    request.which = Which::Runtime;
    const auto runtime = orders_of(request);
    ASSERT_TRUE(runtime);
    const json& differs = row.at("chunk_order_runtime");
    EXPECT_EQ(differs.is_null() ? row.at("chunk_order") : differs, json_of(runtime->orders[0]));
    ++executed;
  }
  std::printf("%zu capture orders, %zu runtime orders\n", captured, executed);
  EXPECT_EQ(captured, 272U);
  EXPECT_EQ(executed, 266U);
}

TEST(MegatronRows, TheRuntimeRefusesWhatMegatronRefuses) {
  std::size_t refused = 0;
  for (const json& row : rows_of("schedule")) {
    const auto reason = mcore::refusal(configuration_of(row.at("inputs")));
    EXPECT_EQ(reason ? "rejected: " + *reason : "accepted",
              row.at("runtime").at(0).get<std::string>())
        << row.at("id");
    refused += reason ? 1 : 0;
  }
  std::printf("%zu of 272 schedules are refused by the runtime\n", refused);
  EXPECT_EQ(refused, 93U);
}

TEST(MegatronRows, EveryOrderIsExpandedOrRaisesAsInMegatron) {
  std::size_t rows = 0;
  std::size_t raising = 0;
  for (const json& row : rows_of("overlap_direct")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& in = row.at("inputs");
    const auto order = in.at("chunk_order").get<Numbers>();
    const auto layers = in.at("layers_per_chunk").get<Numbers>();
    const auto made = layer_order(order, layers, gradients(in.at("wgrad")));
    EXPECT_EQ(row.at("raises"), raised_by(made));
    EXPECT_EQ(row.at("layer_order"), made ? json_of(made->order) : json(nullptr));
    if (made) {
      EXPECT_EQ(row.at("forward_places"), flat(*made));
    }
    raising += made ? 0 : 1;
    ++rows;
  }
  std::printf("%zu direct expansions, %zu of them raise\n", rows, raising);
  EXPECT_EQ(rows, 20U);
  EXPECT_EQ(raising, 2U);
}

TEST(MegatronRows, EveryTableIsConvertedOrRaisesAsInMegatron) {
  std::size_t rows = 0;
  for (const json& row : rows_of("convert_direct")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& in = row.at("inputs");
    const auto made = chunk_order(in.at("num_warmup"), in.at("num_model_chunks"),
                                  table_of(in.at("schedule_table")));
    EXPECT_EQ(row.at("raises"), raised_by(made));
    EXPECT_EQ(row.at("chunk_order"), made ? json(*made) : json(nullptr));
    ++rows;
  }
  EXPECT_EQ(rows, 4U);
}

TEST(MegatronRows, EveryTableIsMadeAsInMegatron) {
  std::size_t rows = 0;
  for (const json& row : rows_of("table_direct")) {
    SCOPED_TRACE(row.at("id").get<std::string>());
    const json& in = row.at("inputs");
    const auto made =
        schedule_table(in.at("num_microbatches"), in.at("num_model_chunks"), in.at("group_size"));
    EXPECT_EQ(row.at("raises"), raised_by(made));
    ASSERT_TRUE(made);
    EXPECT_EQ(row.at("schedule_table"), json_of(*made));
    ++rows;
  }
  EXPECT_EQ(rows, 4U);
}

// --- what the functions are not made for --------------------------------------------------------

TEST(MegatronTable, AGroupOfNothingRaisesAndOneOfLessIsEmpty) {
  EXPECT_EQ(exception_of(schedule_table(4, 2, 0)), "ValueError: range() arg 3 must not be zero");
  EXPECT_EQ(exception_of(schedule_table(0, 2, 0)), "ValueError: range() arg 3 must not be zero");
  for (const auto& [microbatches, chunks, group] : std::vector<std::array<std::int64_t, 3>>{
           {4, 2, -1}, {0, 2, 2}, {-4, 2, -1}, {4, 0, 2}, {4, -1, 2}}) {
    const auto table = schedule_table(microbatches, chunks, group);
    ASSERT_TRUE(table);
    EXPECT_TRUE(table->empty()) << microbatches << " " << chunks << " " << group;
  }
}

TEST(MegatronChunkOrder, ANegativeWarmUpRunsOutOfBackwards) {
  const std::vector<TableEntry> table = schedule_table(2, 2, 2).value();
  for (const std::int64_t warmup : {std::int64_t{-1}, std::int64_t{-4}, std::int64_t{-5},
                                    std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(exception_of(chunk_order(warmup, 2, table)), "IndexError: list index out of range");
  }
  const Numbers all{1, 1, 2, 2, -2, -2, -1, -1};
  for (const std::int64_t warmup :
       {std::int64_t{4}, std::int64_t{5}, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(chunk_order(warmup, 2, table).value(), all);
  }
}

// A rank beyond the pipeline has a negative warm-up, and an order of a wrong shape.
TEST(MegatronCounts, ARankBeyondThePipelineWarmsUpLessThanNothing) {
  const mcore::Configuration plain{.pipeline = 2, .microbatches = 4};
  EXPECT_EQ(forward_counts(plain, 3, OverlapFlag::Told)->warmup, -2);
  const auto made = orders_of({.configuration = plain, .rank = 3});
  EXPECT_EQ(exception_of(made), "IndexError: list index out of range");
  EXPECT_EQ(std::get<Raised>(made.error()).place, "rank 3, -2 forwards of warm-up");
}

TEST(MegatronCounts, TheOverlapIsAForwardMoreOnlyWithVirtualStages) {
  mcore::Configuration configuration{
      .pipeline = 4, .virtual_stages = 2, .microbatches = 8, .ep_overlap = true};
  EXPECT_EQ(forward_counts(configuration, 1, OverlapFlag::Untold)->warmup, 8);
  EXPECT_EQ(forward_counts(configuration, 1, OverlapFlag::Told)->warmup, 9);
  configuration.virtual_stages.reset();
  EXPECT_EQ(forward_counts(configuration, 1, OverlapFlag::Told)->warmup, 2);
}

std::string expanded(const Numbers& order, const Numbers& layers, bool delayed) {
  const auto made = layer_order(order, layers, gradients(delayed));
  if (!made) return exception_of(made);
  std::string text = print_te_list(made->order);
  text.pop_back();
  return text;
}

TEST(MegatronLayerOrder, RaisesWithoutABackwardOrAForward) {
  const std::string words = "TypeError: '<' not supported between instances of ";
  EXPECT_EQ(expanded({}, {1}, false), words + "'NoneType' and 'NoneType'");
  EXPECT_EQ(expanded({1, 1}, {1}, false), words + "'NoneType' and 'int'");
  EXPECT_EQ(expanded({-1}, {1}, false), words + "'int' and 'NoneType'");
}

// The unknown chunk is met before the missing backward.
TEST(MegatronLayerOrder, RaisesAtAChunkWithoutALayerCount) {
  const std::string words = "IndexError: list index out of range";
  for (const Numbers& order : std::vector<Numbers>{{1, 3}, {1, -3}, {1, -1, 3, -3}, {3, -1}, {3}}) {
    EXPECT_EQ(expanded(order, {1, 1}, true), words) << json(order);
  }
  EXPECT_EQ(expanded({0, 1, -1}, {}, true), words);
  const auto made = layer_order(Numbers{1, -1, 3, -3}, Numbers{1, 1}, gradients(true));
  const Raised raised = std::get<Raised>(made.error());
  EXPECT_EQ(raised.function, "get_overlap_moe_expert_parallel_comm_order");
  EXPECT_EQ(raised.place, "index 2 of the chunk order: chunk 3 of 2");
}

TEST(MegatronLayerOrder, SurplusCountsAreIgnoredAndNegativeOnesAreNoLayers) {
  EXPECT_EQ(expanded({1, -1}, {2, 7, -3}, false), "[1, 2, -2, -1]");
  EXPECT_EQ(expanded({1, -1}, {-2}, true), "[]");
  EXPECT_EQ(expanded({1, 2, -2, -1}, {-1, 2}, false), "[0, 1, -1, 0]");
}

// Python counts from the end: what is called 0 is the last chunk, read as a backward.
TEST(MegatronLayerOrder, AChunkZeroIsTheLastOne) {
  EXPECT_EQ(expanded({0, 1, -1}, {1, 2}, false), "[-3, -2, 1, -1]");
}

TEST(MegatronLayerOrder, TheWeightGradientOfTheLastLayerWaitsForAllForwardsOfThePair) {
  EXPECT_EQ(expanded({1, 2, -2, 1, -1, 2, -2, -1}, {2, 1}, true),
            "[1, 2, 3, 1, -3, 2, -3.5, 3, -2, -2.5, -1, -1.5, -3, -3.5, -2, -2.5, -1, -1.5]");
}

// --- limits -------------------------------------------------------------------------------------

TEST(MegatronLimits, EntriesHoldOnBothSides) {
  const mcore::Configuration plain{.pipeline = 2, .virtual_stages = 2, .microbatches = 4};
  EXPECT_TRUE(orders_of({.configuration = plain}, {.entries = 32}));
  EXPECT_EQ(exception_of(orders_of({.configuration = plain}, {.entries = 31})),
            "limit: the orders would have more than 31 entries");
  mcore::Configuration overlap = plain;
  overlap.ep_overlap = true;
  const Request layered{.configuration = overlap,
                        .rank = 0,
                        .layers_per_chunk = {1, 2},
                        .weight_gradients = WeightGradients::Delayed};
  EXPECT_TRUE(orders_of(layered, {.entries = 36}));
  EXPECT_EQ(exception_of(orders_of(layered, {.entries = 35})),
            "limit: the orders would have more than 35 entries");
}

// An order that vanishes in the expansion was made all the same.
TEST(MegatronLimits, LayersOfNothingAreNoWayAroundThem) {
  const mcore::Configuration overlap{
      .pipeline = 2, .virtual_stages = 2, .microbatches = 4, .ep_overlap = true};
  const Request nothing{.configuration = overlap, .layers_per_chunk = {0, 0}};
  EXPECT_TRUE(orders_of(nothing, {.entries = 32}));
  EXPECT_FALSE(orders_of(nothing, {.entries = 31}));
}

TEST(MegatronLimits, RanksHoldOnBothSides) {
  const mcore::Configuration plain{.pipeline = 8, .microbatches = 8};
  EXPECT_TRUE(orders_of({.configuration = plain}, {.ranks = 8}));
  EXPECT_EQ(exception_of(orders_of({.configuration = plain}, {.ranks = 7})),
            "limit: the pipeline has more than 7 ranks");
  EXPECT_TRUE(orders_of({.configuration = plain, .rank = 3}, {.ranks = 1}));
}

TEST(MegatronLimits, CountsHoldOnBothSides) {
  const Limits five{.counts = 5};
  const mcore::Configuration fits{
      .pipeline = 5, .virtual_stages = 5, .microbatches = 5, .group_size = 5, .ep_overlap = true};
  EXPECT_TRUE(orders_of({.configuration = fits, .layers_per_chunk = {5, 5, 5, 5, 5}}, five));
  const auto with = [&](auto change) {
    mcore::Configuration configuration = fits;
    change(configuration);
    return exception_of(orders_of({.configuration = configuration}, five));
  };
  EXPECT_EQ(with([](auto& c) { c.pipeline = 6; }), "limit: the pipeline size is beyond 5");
  EXPECT_EQ(with([](auto& c) { c.virtual_stages = 6; }),
            "limit: the number of virtual stages is beyond 5");
  EXPECT_EQ(with([](auto& c) { c.microbatches = 6; }),
            "limit: the number of microbatches is beyond 5");
  EXPECT_EQ(with([](auto& c) { c.group_size = 6; }), "limit: the group size is beyond 5");
  EXPECT_EQ(
      exception_of(orders_of({.configuration = fits, .layers_per_chunk = {5, 5, 5, 5, 6}}, five)),
      "limit: the number of layers is beyond 5");
}

// Nothing here is near an answer; each ends at once, and with a reason.
TEST(MegatronLimits, NoNumberIsTooLargeToBeRefused) {
  const Numbers extremes{std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max(),
                         -(std::int64_t{1} << 31),
                         std::int64_t{1} << 31,
                         -1,
                         0};
  const Limits widest{.entries = 1000, .ranks = 10, .counts = std::uint64_t{1} << 63};
  for (const std::int64_t a : extremes) {
    for (const std::int64_t b : extremes) {
      const std::vector<mcore::Configuration> configurations{
          {.pipeline = a, .virtual_stages = b, .microbatches = 4, .ep_overlap = true},
          {.pipeline = 2, .virtual_stages = a, .microbatches = b},
          {.pipeline = 2, .virtual_stages = 2, .microbatches = a, .group_size = b},
          {.pipeline = 1, .virtual_stages = a, .microbatches = b},
          {.pipeline = a, .microbatches = 4, .group_size = b}};
      for (const mcore::Configuration& configuration : configurations) {
        for (const Which which : {Which::Capture, Which::Runtime}) {
          const auto all = orders_of({.configuration = configuration, .which = which}, widest);
          EXPECT_TRUE(!all || all->orders.size() <= 10);
          EXPECT_NO_FATAL_FAILURE(
              (void)orders_of({.configuration = configuration, .which = which, .rank = a}, widest));
          (void)forward_counts(configuration, b, OverlapFlag::Told, widest);
        }
      }
      (void)schedule_table(a, b, 3, widest);
      (void)schedule_table(3, a, b, widest);
      (void)chunk_order(a, b, {{.microbatch = 0, .chunk = a}, {.microbatch = 0, .chunk = 0}},
                        widest);
      (void)layer_order(Numbers{a, b, 1, -1}, Numbers{a, b}, gradients(true), widest);
      (void)layer_order(Numbers{1, 2, -2, a, b, -1}, Numbers{2, 2}, gradients(true), widest);
    }
  }
}

// --- a whole request ----------------------------------------------------------------------------

std::string order_of(const Request& request) {
  const auto made = orders_of(request);
  if (!made) return exception_of(made);
  std::string text;
  for (const TeList& list : made->orders) text += print_te_list(list);
  return text;
}

TEST(MegatronOrders, AreOfAllRanksInTheirOrderOrOfOne) {
  Request request{.configuration = {.pipeline = 2, .virtual_stages = 2, .microbatches = 2}};
  EXPECT_EQ(order_of(request), "[1, 1, 2, 2, -2, -2, -1, -1]\n[1, 1, 2, -2, 2, -2, -1, -1]\n");
  request.rank = 1;
  EXPECT_EQ(order_of(request), "[1, 1, 2, -2, 2, -2, -1, -1]\n");
  EXPECT_EQ(order_of({.configuration = {.pipeline = 0, .group_size = 1}}), "");
}

TEST(MegatronOrders, TheGroupSizeIsThePipelineSizeUnlessSaid) {
  Request request{.configuration = {.pipeline = 3, .virtual_stages = 2, .microbatches = 9}};
  const std::string unsaid = order_of(request);
  request.configuration.group_size = 3;
  EXPECT_EQ(order_of(request), unsaid);
  request.configuration.group_size = 4;
  EXPECT_NE(order_of(request), unsaid);
}

// One captured graph is replayed for every microbatch, which is right as long as they alternate.
TEST(MegatronOrders, WithoutAPipelineOneMicrobatchIsCapturedForAll) {
  Request request{.configuration = {.pipeline = 1, .microbatches = 3}};
  EXPECT_EQ(order_of(request), "[1, -1]\n");
  EXPECT_EQ(orders_of(request)->microbatches, 1);
  request.which = Which::Runtime;
  EXPECT_EQ(order_of(request), "[1, -1, 1, -1, 1, -1]\n");
  EXPECT_EQ(orders_of(request)->microbatches, 3);
  request.which = Which::Capture;
  request.configuration.virtual_stages = 2;
  EXPECT_EQ(order_of(request),
            "AssertionError: If PP is not enabled, there should be only one model chunk.");
}

// What is captured layer by layer is what runs: a forward, then pairs of a forward and a backward.
TEST(MegatronOrders, WithoutAPipelineTheOverlapRunsOneForwardAhead) {
  Request request{.configuration = {.pipeline = 1, .microbatches = 3, .ep_overlap = true}};
  EXPECT_EQ(order_of(request), "[1, 1, -1, 1, -1, -1]\n");
  request.which = Which::Runtime;
  EXPECT_EQ(order_of(request), "[1, 1, -1, 1, -1, -1]\n");
  request.configuration.microbatches = 1;
  EXPECT_EQ(order_of(request), "[1, -1]\n");
}

TEST(MegatronOrders, NonsenseIsSaidToBe) {
  const auto nonsense = [](const Request& request) {
    return nonsense_in(orders_of(request).value()).value_or("none");
  };
  Request request{.configuration = {.pipeline = 1, .virtual_stages = 2, .microbatches = 2},
                  .which = Which::Runtime};
  EXPECT_EQ(nonsense(request), "rank 0 runs -2 at index 1 before the forward that it belongs to");
  request.which = Which::Capture;
  request.configuration.ep_overlap = true;
  EXPECT_EQ(nonsense(request), "none") << "the expansion puts the forward first";
  request.layers_per_chunk = {1, 3};
  EXPECT_EQ(nonsense(request), "rank 0 runs -4 at index 2 before the forward that it belongs to");
  request.layers_per_chunk = {0, 0};
  EXPECT_EQ(nonsense(request),
            "there is nothing to order: no chunk has a layer that could be captured");
}

}  // namespace
}  // namespace capo::megatron
