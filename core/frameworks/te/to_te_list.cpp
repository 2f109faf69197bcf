#include "core/frameworks/te/to_te_list.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace capo {

Result<TeList, Inexpressible> to_te_list(const RankOrder& rank, const std::vector<Entry>& order,
                                         Beside beside) {
  const auto fails = [](const char* reason, const Entry& entry, bool droppable = false) {
    return Inexpressible{.reason = reason, .span = entry.span(), .droppable = droppable};
  };
  const std::vector<Delay> delay = resolved_delay(rank);
  std::vector<std::array<std::int32_t, 4>> next(delay.size());
  TeList list;
  list.entries.reserve(order.size());
  for (const Entry& entry : order) {
    if (!is_compute(entry.kind)) {
      if (beside == Beside::Drop) continue;
      return fails(
          is_exchange(entry.kind)
              ? "a TE list has no notation for dispatch and combine"
              : "a TE list has no notation for idle slots, transfers and actions of whole stages",
          entry, true);
    }
    if (entry.group != Group::Alone && beside == Beside::Refuse) {
      return fails("a TE list has no composites", entry, true);
    }
    const bool known = entry.chunk >= 1 && as_index(std::int32_t{entry.chunk}) <= delay.size();
    if (known) {
      const auto chunk = entry.chunk.index();
      if (delay[chunk] == Delay::Mixed || entry.kind == Kind::BackwardInput) {
        return fails("in a TE list a chunk splits all of its backwards or none", entry);
      }
      if (entry.microbatch != next[chunk][as_index(entry.kind)]++) {
        return fails("a TE list runs the microbatches of a chunk first in, first out", entry);
      }
    }
    const double chunk = entry.chunk;
    const bool weight = entry.kind == Kind::BackwardWeight;
    const double value = entry.kind == Kind::Forward ? chunk : weight ? -chunk - 0.5 : -chunk;
    list.entries.push_back({.value = value,
                            .offset = entry.offset,
                            .length = entry.length,
                            .type = weight ? NumberType::Float : NumberType::Integer});
  }
  return list;
}

std::string te_token(const Action& action) {
  const std::string_view sign = action.kind == Kind::Forward ? "" : "-";
  const bool weight = action.kind == Kind::BackwardWeight;
  return fmt::format("{}{}{}", sign, action.chunk, weight ? ".5" : "");
}

}  // namespace capo
