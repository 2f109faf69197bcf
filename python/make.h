// Makes schedules for Python: published ones by name, and Megatron-LM's own orders.
//
// A schedule that was made is held as its .order text read, so that a finding in it has a place to
// show. Tested by python/tests/test_make.py.

#pragma once

#include "core/frameworks/megatron/orders.h"
#include "python/take.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace capo::python {

/// A schedule held as its .order text read.
[[nodiscard]] std::shared_ptr<HeldSchedule> held(const Schedule& schedule);

/// Throws std::invalid_argument if there is no such schedule, or it is larger than what is read.
[[nodiscard]] std::shared_ptr<HeldSchedule> generate(const std::string& name, std::int32_t ranks,
                                                     std::int32_t microbatches,
                                                     std::optional<std::int32_t> chunks,
                                                     std::optional<std::int32_t> group,
                                                     std::optional<double> memory_limit);

[[nodiscard]] std::vector<std::string> schedule_names();

struct MegatronOrders {
  megatron::Generated generated;

  /// The orders of all ranks as one schedule, with Megatron's calls of that name around them
  /// (nullopt: its default). Throws std::invalid_argument if they are of one rank, or no calls have
  /// the name.
  [[nodiscard]] std::shared_ptr<HeldSchedule> schedule(
      const std::optional<std::string>& calls) const;
  /// The reason why Megatron's runtime refuses the configuration, if it does.
  [[nodiscard]] std::optional<std::string> refusal() const;
  /// The reason why nothing can run the orders, though no function of Megatron's objected.
  [[nodiscard]] std::optional<std::string> nonsense() const;
};

/// Throws std::invalid_argument with Megatron's own exception if its functions raise one.
[[nodiscard]] MegatronOrders megatron_orders(std::int64_t pp, std::optional<std::int64_t> vp,
                                             std::int64_t microbatches,
                                             std::optional<std::int64_t> group_size, bool overlap,
                                             bool delayed_wgrad, std::vector<std::int64_t> layers,
                                             std::optional<std::int64_t> rank, bool runtime);

/// Lists as Python's ints and floats.
[[nodiscard]] nanobind::list numbers_of(const std::vector<TeList>& lists);

}  // namespace capo::python
