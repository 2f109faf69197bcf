// The published schedules by name.
//
//   1f1b, zb-h1, dualpipev, ...     as capo explains them
//   zb-1.5p, zbv-2p, gis-g8         with their number in the name, as in papers and their data
//   torch:Interleaved1F1B           PyTorch's own table
//
// A name and a setting make a Schedule, placed, its microbatches named; or the reason why there is
// no such schedule. Searches look at costs and memory; the other generators are functions of the
// counts alone. Memory is counted in microbatches of one rank: a chunk has its share, 1/chunks.
// Megatron's orders are not here but in core/frameworks/megatron/orders.h, since they are a
// framework's and not a publication's.
//
// Tested by catalogue_test.cpp, against the authors' own orders by golden_orders_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/schedule.h"
#include "schedules/orders.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::schedules {

struct Request {
  std::string name;
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;
  std::optional<std::int32_t> chunks;  ///< chunks of each rank; nullopt is the schedule's default
  /// For interleaved schedules, or segments; nullopt is their default.
  std::optional<std::int32_t> group;
  Costs costs;                    ///< the times of one chunk's tasks
  std::vector<Costs> rank_costs;  ///< the times of each rank if ranks differ; else empty
  /// Memory of one microbatch on a rank; nullopt is the publication's.
  std::optional<Memory> memory;
  std::optional<double> memory_limit;  ///< counted in the unit of `memory`
  /// In PyTorch's tables an input half and the weight half right behind it become one whole
  /// backward, as PyTorch's lowering (_merge_bw) makes of them.
  bool merge_halves = false;
  unsigned threads = 1;  ///< of searches; they change the speed alone
};

/// One line of `capo generate --list`.
struct Entry {
  std::string_view name;
  std::string_view summary;
  Topology topology;
  std::string_view chunks;  ///< "1", "2", "any", "even"
  /// The settings that it looks at besides counts: "", "group", "costs", "costs, memory".
  std::string_view uses;
};
[[nodiscard]] const std::vector<Entry>& entries();

/// Says that no schedule goes by this name, and which may be meant; nullopt if one does.
[[nodiscard]] std::optional<std::string> unknown_name(const std::string& name);

/// Whether the schedule is searched for within Request::memory_limit; others take what they need.
[[nodiscard]] bool takes_memory_limit(const std::string& name);

/// The size of the schedule that a request asks for, known before it is made.
struct Size {
  std::int64_t chunks = 1;        ///< the chunks of each rank
  std::int64_t microbatches = 1;  ///< each chunk runs so many forward and backward
  std::int32_t pipelines = 1;     ///< a microbatch passes the chunks of one of them
};
/// The error is the one that schedule_named() returns.
[[nodiscard]] Result<Size, std::string> size_of(const Request& request);

/// The error is one sentence for the user who typed the request.
[[nodiscard]] Result<Schedule, std::string> schedule_named(const Request& request);

/// The schedule of orders that a generator made; every rank holds `chunks`.
[[nodiscard]] Schedule schedule_of(const PublishedOrders& orders, Topology topology,
                                   std::int32_t chunks);

}  // namespace capo::schedules
