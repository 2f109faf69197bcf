#include "core/frameworks/te/from_te_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace capo {

Action read_large_te_entry(const TeEntry& entry) {
  if (!std::isfinite(entry.value)) return {};
  const double size = std::abs(entry.value);
  const bool whole = std::floor(size) == size;
  if (whole ? entry.type == NumberType::Float : entry.value > 0 || size - std::floor(size) != 0.5) {
    return {};
  }
  const Kind integer = entry.value > 0 ? Kind::Forward : Kind::Backward;
  const double id = std::min<double>(size, std::numeric_limits<std::int32_t>::max());
  return {.kind = whole ? integer : Kind::BackwardWeight, .chunk = static_cast<std::int32_t>(id)};
}

}  // namespace capo
