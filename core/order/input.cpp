#include "core/order/input.h"

#include "core/base/index.h"

#include <algorithm>

namespace capo {

std::span<const TeEntry> te_list_of(const Input& input, std::size_t rank) {
  const std::span<const TeEntry> all = input.te_list.entries;
  if (input.te_begins.empty()) return all;
  const bool last = rank + 1 == input.te_begins.size();
  const std::size_t begin = input.te_begins[rank];
  return all.subspan(begin, (last ? all.size() : input.te_begins[rank + 1]) - begin);
}

TePlace place_in_lists(const Input& input, std::size_t position) {
  if (input.te_begins.empty()) return {.rank = 0, .index = position};
  // An empty list begins where the next one does, and holds nothing.
  const auto behind = std::upper_bound(input.te_begins.begin(), input.te_begins.end(), position);
  const auto rank = as_index(behind - input.te_begins.begin()) - 1;
  return {.rank = rank, .index = position - input.te_begins[rank]};
}

}  // namespace capo
