#include "core/frameworks/megatron/no_order.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::megatron {

std::optional<Error> beyond(std::string_view what, std::int64_t number, const Limits& limits) {
  constexpr std::uint64_t kLargest = 0x7fffffff;
  const auto most = static_cast<std::int64_t>(std::min(limits.counts, kLargest));
  if (number >= -most && number <= most) return std::nullopt;
  return Error{.kind = ErrorKind::Limit,
               .message = fmt::format("{} is beyond {}", what, most),
               .help = "raise the limit with --max-count"};
}

Error too_many_entries(const Limits& limits) {
  return {.kind = ErrorKind::Limit,
          .message = fmt::format("the orders would have more than {} entries", limits.entries),
          .help = "raise the limit with --max-entries"};
}

}  // namespace capo::megatron
