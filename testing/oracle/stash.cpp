#include "testing/oracle/stash.h"

#include <cstddef>
#include <map>
#include <optional>

namespace capo::oracle {

std::vector<int> misled_reloads(const std::vector<int>& captured,
                                const std::vector<int>& replayed) {
  std::map<int, std::optional<int>> reloads_for;  // what each graph was told when it was captured
  std::optional<int> behind;
  for (auto graph = captured.rbegin(); graph != captured.rend(); ++graph) {
    reloads_for[*graph] = behind;
    behind = *graph;
  }
  std::vector<int> misled;
  std::optional<int> hand;
  for (std::size_t at = 0; at < replayed.size(); ++at) {
    if (at > 0 && hand != replayed[at]) misled.push_back(static_cast<int>(at) - 1);
    hand = reloads_for.at(replayed[at]);
  }
  if (hand) misled.push_back(static_cast<int>(replayed.size()) - 1);  // nobody takes it
  return misled;
}

}  // namespace capo::oracle
