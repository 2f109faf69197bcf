#include "core/model/group_fit.h"

#include <fmt/format.h>

namespace capo {

std::optional<std::string> misfit_of_groups(const std::vector<CollectiveGroup>& groups,
                                            std::size_t ranks) {
  for (const CollectiveGroup& group : groups) {
    for (const std::int32_t rank : group.members) {
      if (RankId(rank).index() < ranks) continue;
      return fmt::format("group {} has rank {} among its members, but the input has ranks 0 to {}",
                         group.name, rank, ranks - 1);
    }
  }
  return std::nullopt;
}

}  // namespace capo
