#include "core/frameworks/megatron/chunk_order.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::megatron {

namespace {

NoOrder raises(const char* function, std::string place, const char* exception) {
  return Raised{.function = function, .place = std::move(place), .exception = exception};
}

std::int64_t uncapped_warmup(const mcore::Configuration& configuration, std::int64_t rank,
                             OverlapFlag flag) {
  const std::int64_t pp = configuration.pipeline;
  if (pp <= 1) return 0;
  if (!configuration.virtual_stages) return pp - rank - 1;  // the flag is not looked at here
  const std::int64_t one_more = flag == OverlapFlag::Told && configuration.ep_overlap ? 1 : 0;
  const std::int64_t group = configuration.group_size.value_or(pp);
  return 2 * (pp - rank - 1) + (chunks_of(configuration) - 1) * group + one_more;
}

}  // namespace

Made<ForwardCounts> forward_counts(const mcore::Configuration& configuration, std::int64_t rank,
                                   OverlapFlag flag, const Limits& limits) {
  const std::pair<const char*, std::int64_t> numbers[] = {
      {"the pipeline size", configuration.pipeline},
      {"the number of virtual stages", chunks_of(configuration)},
      {"the number of microbatches", configuration.microbatches},
      {"the group size", configuration.group_size.value_or(1)},
      {"rank", rank}};
  for (const auto& [what, number] : numbers) {
    if (auto limit = beyond(what, number, limits)) return NoOrder{std::move(*limit)};
  }
  ForwardCounts counts{.total = configuration.microbatches * chunks_of(configuration),
                       .warmup = uncapped_warmup(configuration, rank, flag)};
  counts.all_in_warmup = counts.warmup >= counts.total;
  counts.warmup = std::min(counts.warmup, counts.total);
  counts.remaining = counts.total - counts.warmup;
  return counts;
}

Made<std::vector<TableEntry>> schedule_table(std::int64_t microbatches, std::int64_t chunks,
                                             std::int64_t group_size, const Limits& limits) {
  const std::pair<const char*, std::int64_t> numbers[] = {
      {"the number of microbatches", microbatches},
      {"the number of virtual stages", chunks},
      {"the group size", group_size}};
  for (const auto& [what, number] : numbers) {
    if (auto limit = beyond(what, number, limits)) return NoOrder{std::move(*limit)};
  }
  if (group_size == 0) {
    return raises("get_schedule_table", "group size 0",
                  "ValueError: range() arg 3 must not be zero");
  }
  std::vector<TableEntry> table;
  if (microbatches <= 0 || chunks <= 0 || group_size < 0) return table;
  const std::int64_t size = microbatches * chunks;
  if (static_cast<std::uint64_t>(size) > limits.entries) return NoOrder{too_many_entries(limits)};
  table.reserve(as_index(size));
  for (std::int64_t first = 0; first < microbatches; first += group_size) {
    const std::int64_t end = std::min(first + group_size, microbatches);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t microbatch = first; microbatch < end; ++microbatch) {
        table.push_back({.microbatch = microbatch, .chunk = chunk});
      }
    }
  }
  return table;
}

Made<std::vector<std::int64_t>> chunk_order(std::int64_t warmup, std::int64_t chunks,
                                            const std::vector<TableEntry>& table,
                                            const Limits& limits) {
  constexpr const char* kName = "convert_schedule_table_to_order";
  if (auto limit = beyond("the number of virtual stages", chunks, limits)) {
    return NoOrder{std::move(*limit)};
  }
  if (table.empty()) {
    return raises(kName, "an empty table",
                  "ValueError: not enough values to unpack (expected 2, got 0)");
  }
  // Python counts a negative index from the end, and then runs out of backwards all the same.
  if (warmup < 0) {
    return raises(kName, fmt::format("{} forwards of warm-up", warmup),
                  "IndexError: list index out of range");
  }
  if (table.size() > limits.entries / 2) return NoOrder{too_many_entries(limits)};
  for (const TableEntry& entry : table) {
    if (auto limit = beyond("chunk", entry.chunk, limits)) return NoOrder{std::move(*limit)};
  }
  const std::size_t ahead =
      static_cast<std::uint64_t>(warmup) < table.size() ? as_index(warmup) : table.size();
  const auto forward = [&](std::size_t i) { return table[i].chunk + 1; };
  const auto backward = [&](std::size_t i) { return table[i].chunk - chunks; };
  std::vector<std::int64_t> order;
  order.reserve(2 * table.size());
  for (std::size_t i = 0; i < ahead; ++i) order.push_back(forward(i));
  for (std::size_t i = ahead; i < table.size(); ++i) {
    order.push_back(forward(i));
    order.push_back(backward(i - ahead));
  }
  for (std::size_t i = table.size() - ahead; i < table.size(); ++i) order.push_back(backward(i));
  return order;
}

}  // namespace capo::megatron
