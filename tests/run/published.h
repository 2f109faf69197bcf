// The published schedules by name, for tests that run all of them.

#pragma once

#include "schedules/catalogue.h"
#include "schedules/generators.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace capo::run {

/// The names of the catalogue, then PyTorch's classes as "torch:Interleaved1F1B".
inline std::vector<std::string> published_names() {
  std::vector<std::string> names;
  for (const schedules::Entry& entry : schedules::entries()) names.emplace_back(entry.name);
  for (const schedules::TorchClass each : schedules::kTorchClasses) {
    names.push_back(fmt::format("torch:{}", schedules::name_of(each)));
  }
  return names;
}

/// Without a limit of memory, or, for a search that needs one, with room for two microbatches a
/// rank.
inline std::optional<Schedule> published(schedules::Request request) {
  auto schedule = schedules::schedule_named(request);
  if (!schedule) {
    request.memory_limit = 2 * request.ranks;
    schedule = schedules::schedule_named(request);
  }
  return schedule ? std::optional(*std::move(schedule)) : std::nullopt;
}

}  // namespace capo::run
