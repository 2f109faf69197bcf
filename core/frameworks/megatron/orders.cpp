#include "core/frameworks/megatron/orders.h"

#include "core/base/index.h"
#include "core/frameworks/megatron/chunk_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace capo::megatron {

namespace {

bool without_pipeline(const Request& request) {
  return request.configuration.pipeline <= 1;
}

// If every microbatch runs the same graph, one is captured: forwards and backwards alternate.
std::optional<NoOrder> capture_one_microbatch(mcore::Configuration& configuration) {
  if (chunks_of(configuration) != 1) {
    return Raised{
        .function = "_get_cuda_graph_input_data",
        .place = fmt::format("{} virtual stages without a pipeline", chunks_of(configuration)),
        .exception = "AssertionError: If PP is not enabled, there should be only one model chunk."};
  }
  configuration.microbatches = 1;
  return std::nullopt;
}

Made<ForwardCounts> counts_of(const Request& request, const mcore::Configuration& configuration,
                              std::int64_t rank, const Limits& limits) {
  const bool runs = request.which == Which::Runtime;
  auto counts =
      forward_counts(configuration, rank, runs ? OverlapFlag::Told : OverlapFlag::Untold, limits);
  const bool one_ahead = runs && configuration.ep_overlap && without_pipeline(request) &&
                         !configuration.virtual_stages;
  if (!counts || !one_ahead || counts->total < 1) return counts;
  return ForwardCounts{.total = counts->total,
                       .warmup = 1,
                       .remaining = counts->total - 1,
                       .all_in_warmup = counts->total == 1};
}

TeList list_of(const std::vector<std::int64_t>& order) {
  TeList list;
  list.entries.reserve(order.size());
  for (const std::int64_t entry : order) {
    list.entries.push_back({.value = static_cast<double>(entry), .type = NumberType::Integer});
  }
  return list;
}

// An exception on one rank of many says which; the rest of a limit is no limit to name.
NoOrder on_rank(NoOrder why, std::int64_t rank, const Limits& left, const Limits& limits) {
  if (auto* raised = std::get_if<Raised>(&why)) {
    raised->place = fmt::format("rank {}, {}", rank, raised->place);
  } else if (std::get<Error>(why) == too_many_entries(left)) {
    return too_many_entries(limits);
  }
  return why;
}

}  // namespace

Made<Generated> orders_of(const Request& request, const Limits& limits) {
  Generated made{.request = request};
  mcore::Configuration configuration = request.configuration;
  const std::int64_t chunks = chunks_of(configuration);
  const bool one_for_all =
      request.which == Which::Capture && without_pipeline(request) && !configuration.ep_overlap;
  if (one_for_all) {
    if (auto failure = capture_one_microbatch(configuration)) return std::move(*failure);
  }
  made.microbatches = configuration.microbatches;

  const std::int64_t first = request.rank.value_or(0);
  if (auto limit = beyond("rank", first, limits)) return NoOrder{std::move(*limit)};
  const std::int64_t end = request.rank ? first + 1 : configuration.pipeline;
  if (end > first && static_cast<std::uint64_t>(end - first) > limits.ranks) {
    return NoOrder{
        Error{.kind = ErrorKind::Limit,
              .message = fmt::format("the pipeline has more than {} ranks", limits.ranks),
              .help = "raise the limit with --max-ranks"}};
  }
  const auto table =
      schedule_table(configuration.microbatches, chunks,
                     configuration.group_size.value_or(configuration.pipeline), limits);
  if (!table) return table.error();
  if (end > first && table->size() > limits.entries / 2 / static_cast<std::uint64_t>(end - first)) {
    return NoOrder{too_many_entries(limits)};
  }
  const std::vector<std::int64_t> layers =
      request.layers_per_chunk.empty()
          ? std::vector<std::int64_t>(as_index(std::max<std::int64_t>(chunks, 0)), 1)
          : request.layers_per_chunk;

  Limits left = limits;  // for the ranks that are still to come
  for (std::int64_t rank = first; rank < end; ++rank) {
    const auto counts = counts_of(request, configuration, rank, limits);
    if (!counts) return counts.error();
    const auto order = chunk_order(counts->warmup, chunks, *table, left);
    if (!order) return on_rank(order.error(), rank, left, limits);
    std::size_t entries = order->size();
    if (request.by_layer()) {
      auto expanded = layer_order(*order, layers, request.weight_gradients, left);
      if (!expanded) return on_rank(expanded.error(), rank, left, limits);
      entries = std::max(entries, expanded->order.entries.size());
      made.orders.push_back(std::move(expanded->order));
    } else {
      made.orders.push_back(list_of(*order));
    }
    left.entries -= entries;
  }
  return made;
}

std::optional<std::string> nonsense_in(const Generated& generated) {
  const bool empty = std::all_of(generated.orders.begin(), generated.orders.end(),
                                 [](const TeList& list) { return list.entries.empty(); });
  if (empty) return "there is nothing to order: no chunk has a layer that could be captured";
  for (std::size_t r = 0; r < generated.orders.size(); ++r) {
    std::unordered_map<double, std::int64_t> waiting;  // forwards without a backward, by chunk
    const std::vector<TeEntry>& entries = generated.orders[r].entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const double value = entries[i].value;
      if (entries[i].type == NumberType::Float) continue;
      if (value > 0) {
        ++waiting[value];
      } else if (--waiting[-value] < 0) {
        return fmt::format("rank {} runs {} at index {} before the forward that it belongs to",
                           static_cast<std::int64_t>(r) + generated.request.rank.value_or(0), value,
                           i);
      }
    }
  }
  return std::nullopt;
}

}  // namespace capo::megatron
