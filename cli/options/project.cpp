#include "cli/options/project.h"

#include "cli/options/files.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

namespace capo::cli {

namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& file) {
  return !file.empty() && file != "-";
}

// The path as it is written, or made absolute where it has to be followed upwards.
std::optional<fs::path> nearest_project(const std::string& file) {
  std::error_code none;
  const fs::path beside = is_file(file) ? fs::path(file).parent_path() : fs::path();
  fs::path folder = fs::absolute(beside.empty() ? fs::path(".") : beside, none);
  folder = folder.lexically_normal();
  for (; !none && !folder.empty(); folder = folder.parent_path()) {
    if (fs::path path = folder / kProjectFile; fs::is_regular_file(path, none)) return path;
    if (folder == folder.root_path()) break;
    none.clear();
  }
  return std::nullopt;
}

// The path as messages show it: from the working directory if it lies below.
std::string shown_path(const fs::path& path) {
  std::error_code none;
  const fs::path near = path.lexically_relative(fs::current_path(none));
  const bool below = !none && !near.empty() && *near.begin() != "..";
  return below ? near.string() : path.string();
}

// A suppression of a file that is not there covers nothing, and never will.
std::optional<Refusal> missing_file(const Project& project, const fs::path& folder) {
  std::error_code none;
  for (const Project::InFile& one : project.suppressions) {
    if (fs::exists(folder / one.file, none)) continue;
    return malformed(one.span, fmt::format("there is no file {} beside this", shown(one.file)),
                     "name it from the folder of capo.toml, or take the suppression away");
  }
  return std::nullopt;
}

}  // namespace

Result<ProjectFiles::Found, CommandError> ProjectFiles::found_for(const std::string& file,
                                                                  const Limits& limits) {
  const auto path = nearest_project(file);
  if (!path) return Found{};
  if (const auto known = read_.find(*path); known != read_.end()) return known->second;
  auto source = read_source(shown_path(*path), limits.bytes);
  if (!source) return CommandError(source.error());
  auto project = read_project(*source);
  if (!project) return CommandError(RefusedInput{*std::move(source), project.error()});
  const fs::path folder = path->parent_path();
  if (auto refusal = missing_file(*project, folder))
    return CommandError(RefusedInput{*std::move(source), *std::move(refusal)});
  if (!project->model.empty()) project->model = shown_path(folder / project->model);
  return read_.try_emplace(*path, Found{*std::move(project), folder}).first->second;
}

Result<Project, CommandError> ProjectFiles::project_of(const std::string& file,
                                                       const Limits& limits) {
  auto found = found_for(file, limits);
  if (!found) return found.error();
  return std::move(found->project);
}

Result<std::vector<Suppression>, CommandError> ProjectFiles::suppressions_of(
    const Input& input, const std::string& file, const Limits& limits) {
  auto suppressions = suppressions_in(input.source, notation_of(input));
  if (!suppressions) return CommandError(RefusedInput{input.source, suppressions.error()});
  if (!is_file(file)) return *std::move(suppressions);
  auto found = found_for(file, limits);
  if (!found) return found.error();
  std::error_code none;
  const fs::path path = fs::absolute(file, none).lexically_normal();
  const std::string inside = path.lexically_relative(found->folder).generic_string();
  for (Suppression& one : found->project.suppressions_of(inside))
    suppressions->push_back(std::move(one));
  return *std::move(suppressions);
}

}  // namespace capo::cli
