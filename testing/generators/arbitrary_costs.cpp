#include "testing/generators/arbitrary_costs.h"

#include <fmt/format.h>

#include <array>
#include <ostream>
#include <utility>
#include <vector>

namespace capo {

namespace {

using Key = CostSetting::Key;

constexpr std::array<std::pair<Key, const char*>, 6> kDrawn{{{Key::Forward, "f"},
                                                             {Key::Backward, "b"},
                                                             {Key::Weight, "w"},
                                                             {Key::Latency, "comm"},
                                                             {Key::Bandwidth, "bw"},
                                                             {Key::Bytes, "bytes"}}};

const char* word_for(Key key) {
  for (const auto& [drawn, word] : kDrawn) {
    if (drawn == key) return word;
  }
  return "?";
}

std::string scope_in_words(const CostScope& scope) {
  if (scope.everything()) return "";
  if (scope.rank < 0) return fmt::format("c{}:", scope.chunk);
  if (scope.chunk < 0) return fmt::format("r{}:", scope.rank);
  return fmt::format("r{}.c{}:", scope.rank, scope.chunk);
}

}  // namespace

void showValue(const Costs& costs, std::ostream& out) {
  if (costs.per == CostPer::Chunk) out << "--cost-per chunk ";
  for (const CostSetting& setting : costs.settings) {
    out << fmt::format("--cost {}{}={} ", scope_in_words(setting.scope), word_for(setting.key),
                       setting.value);
  }
  if (costs.overlap != 1) out << fmt::format("--cost overlap={}", costs.overlap);
}

namespace testing {

namespace {

CostScope draw_scope(Dice& dice) {
  CostScope scope;
  const std::size_t which = dice.below(3);
  if (which != 1) scope.rank = dice.between(0, 3);
  if (which != 0) scope.chunk = dice.between(1, 3);
  return scope;
}

std::vector<Costs> simpler_costs(const Costs& costs) {
  std::vector<Costs> simpler;
  if (costs.overlap != 1) {
    simpler.push_back(costs);
    simpler.back().overlap = 1;
  }
  for (std::size_t at = costs.settings.size(); at-- > 0;) {
    simpler.push_back(costs);
    auto& settings = simpler.back().settings;
    settings.erase(settings.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return simpler;
}

}  // namespace

Costs draw_arbitrary_costs(Dice& dice) {
  Costs costs;
  const auto everywhere = [&](Key key, std::int32_t low, std::int32_t high) {
    costs.set({.key = key, .value = static_cast<double>(dice.between(low, high))});
  };
  everywhere(Key::Forward, 1, 20);
  everywhere(Key::Backward, 1, 20);
  const bool free_weights = dice.one_in(4);
  everywhere(Key::Weight, free_weights ? 0 : 1, free_weights ? 0 : 20);
  if (dice.one_in(2)) {
    everywhere(Key::Latency, 0, 5);
    if (dice.one_in(3)) {
      everywhere(Key::Bytes, 1, 8);
      everywhere(Key::Bandwidth, 1, 4);
    }
  }
  if (dice.one_in(3)) {
    for (std::int32_t left = dice.between(1, 3); left > 0; --left) {
      costs.set({.scope = draw_scope(dice),
                 .key = kDrawn[dice.below(3)].first,
                 .value = static_cast<double>(dice.between(1, 20))});
    }
  }
  if (dice.one_in(4)) costs.overlap = dice.between(5, 10) / 10.0;
  return costs;
}

rc::Gen<Costs> arbitrary_costs() {
  return generator(draw_arbitrary_costs, simpler_costs);
}

}  // namespace testing
}  // namespace capo
