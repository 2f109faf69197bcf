// Grouped products whose weight gradients have a stream of their own race for a workspace only
// where they share one and something comes behind; that they do race else is among the faults of
// plans.

#include "testing/generators/sound_planned.h"
#include "testing/laws/checked.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

namespace capo::testing {
namespace {

// Every layer gets a grouped product of its own: `groups` of the chunk, and weight gradients on a
// stream of their own.
template <typename Groups>
Declared with_grouped_layers(const Declared& sound, Groups groups) {
  Declared declared = sound;
  declared.options.environment.weight_stream = true;
  ModuleTable& modules = declared.options.modules;
  modules.list.clear();
  for (std::size_t r = 0; r < declared.schedule.ranks.size(); ++r) {
    for (std::size_t c = 0; c < modules.layers[r].size(); ++c) {
      Module module =
          sound.options.modules
              .list[static_cast<std::size_t>(sound.options.modules.layers[r][c].front())];
      module.name = fmt::format("rank {} chunk {}", r, c + 1);
      module.kind = ModuleKind::GroupedLinear;
      module.splits = Splits::Device;
      module.shape.groups = groups(c);
      modules.layers[r][c] = {static_cast<std::int32_t>(modules.list.size())};
      modules.list.push_back(std::move(module));
    }
  }
  return declared;
}

bool is_said_to_race(const Declared& declared) {
  const std::vector<Diagnostic> found = checked(declared).of(Family::Streams);
  return std::any_of(found.begin(), found.end(),
                     [](const Diagnostic& finding) { return finding.rule == "E02"; });
}

// With one microbatch nothing of a chunk comes behind its weight gradient.
RC_GTEST_PROP(Workspaces, DoNotRaceAmongProductsOfOtherNumbersOfGroups, ()) {
  const Declared sound = *sound_planned();
  if (*sound.schedule.microbatches != 1) return;
  const auto of_its_own = [](std::size_t chunk) { return static_cast<std::int64_t>(chunk) + 1; };
  RC_ASSERT(!is_said_to_race(with_grouped_layers(sound, of_its_own)));
}

RC_GTEST_PROP(Workspaces, DoNotRaceWhereWeightGradientsComeLast, ()) {
  Declared sound = *sound_planned();
  for (RankOrder& rank : sound.schedule.ranks) {
    std::stable_partition(rank.order.begin(), rank.order.end(),
                          [](const Entry& entry) { return entry.kind != Kind::BackwardWeight; });
  }
  const auto alike = [](std::size_t) { return std::int64_t{4}; };
  RC_ASSERT(!is_said_to_race(with_grouped_layers(sound, alike)));
}

}  // namespace
}  // namespace capo::testing
