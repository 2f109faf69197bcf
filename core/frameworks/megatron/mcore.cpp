#include "core/frameworks/megatron/mcore.h"

#include "core/base/index.h"

#include <cmath>

namespace capo::mcore {

std::optional<std::string> refusal(const Configuration& configuration) {
  const std::int64_t pp = configuration.pipeline;
  const bool interleaved = configuration.virtual_stages.has_value();
  if (interleaved && pp == 1) return "parallel_state needs PP>1 when VP is set";
  if (configuration.ep_overlap && pp > 1 && !interleaved) return "EP overlap needs VP when PP>1";
  if (!interleaved) return std::nullopt;
  const std::int64_t group = configuration.group_size.value_or(pp);
  if (group < pp || group > configuration.microbatches) {
    return "interleaved schedule needs PP <= group_size <= num_microbatches";
  }
  const std::int64_t last = configuration.microbatches % group;
  if (last != 0 && last < pp) return "last microbatch group is smaller than PP";
  return std::nullopt;
}

std::optional<LooseWeight> first_loose_weight(const TeList& order,
                                              const std::vector<bool>& need_wgrad) {
  std::optional<std::size_t> waiting;  // a backward whose weight gradient must come next
  for (std::size_t i = 0; i < order.entries.size(); ++i) {
    const double value = order.entries[i].value;
    if (!(value < 0)) continue;
    if (waiting) {
      if (value != order.entries[*waiting].value - 0.5) return LooseWeight{*waiting, i};
      waiting.reset();
      continue;
    }
    const bool backward =
        std::floor(value) == value && -value <= static_cast<double>(need_wgrad.size());
    const bool delays = backward && need_wgrad[static_cast<std::size_t>(-value) - 1];
    if (delays) waiting = i;
  }
  if (waiting) return LooseWeight{*waiting, std::nullopt};
  return std::nullopt;
}

}  // namespace capo::mcore
