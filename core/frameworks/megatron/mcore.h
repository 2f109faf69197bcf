// The profile of Megatron-LM: TransformerEngine's checks, a stricter rule of its own, and the
// configurations that it accepts.
//
// The rule: after a backward of a chunk that delays its weight gradient, the next backward-type
// entry is that chunk's weight gradient; only forwards may stand between. Megatron's generator
// keeps it and its comments state it, so an order that breaks it does not come from Megatron.
//
// The configuration rules hold where the numbers are stated: virtual stages need a pipeline, PP <=
// group <= microbatches, a last group of at least PP, EP overlap in a pipeline needs virtual
// stages. They are read at the commit in version.h. Tested by mcore_test.cpp against Megatron's own
// orders.

#pragma once

#include "core/order/te_list.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo::mcore {

struct Configuration {
  std::int64_t pipeline = 1;                   ///< PP
  std::optional<std::int64_t> virtual_stages;  ///< VP; nullopt: the non-interleaved schedule
  std::int64_t microbatches = 1;
  std::optional<std::int64_t> group_size;  ///< microbatch_group_size_per_vp_stage; PP if not given
  bool ep_overlap = false;
};

/// The reason why Megatron refuses the configuration; nullopt if it accepts.
[[nodiscard]] std::optional<std::string> refusal(const Configuration& configuration);

/// The first backward that is followed by a backward-type entry other than its weight gradient.
struct LooseWeight {
  std::size_t backward;
  std::optional<std::size_t> next;  ///< nullopt: the order ends
};
[[nodiscard]] std::optional<LooseWeight> first_loose_weight(const TeList& order,
                                                            const std::vector<bool>& need_wgrad);

}  // namespace capo::mcore
