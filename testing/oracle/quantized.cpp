#include "testing/oracle/quantized.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace capo::oracle {

std::vector<int> stale_forwards(const std::vector<KeptForward>& replayed) {
  std::set<int> renewed_some_time;
  for (const KeptForward& forward : replayed) {
    if (forward.microbatch == 0) renewed_some_time.insert(forward.chunk);
  }
  std::map<int, int> version;  // by chunk: 0 is the weight of the step before
  std::vector<int> stale;
  for (std::size_t at = 0; at < replayed.size(); ++at) {
    const auto [chunk, microbatch] = replayed[at];
    if (microbatch == 0) version[chunk] = 1;
    if (version[chunk] == 0 && renewed_some_time.count(chunk) > 0)
      stale.push_back(static_cast<int>(at));
  }
  return stale;
}

std::optional<int> parting_of_magnitudes(const std::vector<std::string>& members) {
  for (std::size_t other = 1; other < members.size(); ++other) {
    const std::string& one = members[0];
    const std::string& two = members[other];
    for (std::size_t k = 0; k < std::max(one.size(), two.size()); ++k) {
      const bool alike = k < one.size() && k < two.size() && one[k] == two[k];
      if (!alike) return static_cast<int>(k);
    }
  }
  return std::nullopt;
}

}  // namespace capo::oracle
