// Every run in a failing world is held to these rules, whatever failed.

#pragma once

#include "tests/failing/failing_world.h"
#include "tests/failing/scenarios.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace capo::failing {

/// write_file() gives its files this name until they are whole.
inline constexpr std::string_view kUnfinished = ".capo.";

/// Whether the run ended as if no call had failed.
[[nodiscard]] inline bool ends_as(const FailedRun& run, const FailedRun& sound) {
  return run.outcome.exit_code == sound.outcome.exit_code && run.outcome.out == sound.outcome.out &&
         run.outcome.err == sound.outcome.err && run.files == sound.files;
}

/// Standard error without the lines that told how far a search is, which may come before an error.
[[nodiscard]] inline std::string_view told_in_the_end(const FailedRun& run) {
  std::string_view said = run.outcome.err;
  while (said.starts_with("capo: ") && said.find('\n') != said.npos) {
    said.remove_prefix(said.find('\n') + 1);
  }
  return said;
}

/// Every file is as it was, or as it is where nothing fails.
[[nodiscard]] inline bool files_are_whole(const FailedRun& run, const Scenario& scenario,
                                          const FailedRun& sound) {
  for (const auto& [name, text] : run.files) {
    if (name.starts_with(kUnfinished)) continue;
    const auto before = scenario.files.find(name);
    const auto after = sound.files.find(name);
    const bool old = before != scenario.files.end() && before->second == text;
    if (!old && (after == sound.files.end() || after->second != text)) return false;
  }
  return std::all_of(scenario.files.begin(), scenario.files.end(),
                     [&](const auto& file) { return run.files.contains(file.first); });
}

/// Something lies there that was to become a file.
[[nodiscard]] inline bool leaves_unfinished(const FailedRun& run) {
  return std::any_of(run.files.begin(), run.files.end(),
                     [](const auto& file) { return file.first.starts_with(kUnfinished); });
}

}  // namespace capo::failing
