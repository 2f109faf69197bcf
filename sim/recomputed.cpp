// Which chunks recompute, as text and of a schedule. Tested by recomputed_test.cpp.

#include "core/base/index.h"
#include "sim/durations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace capo {

namespace {

// Takes the number behind a letter off the text; nullopt if there is none.
std::optional<std::int32_t> take_numbered(std::string_view& text, char letter) {
  if (!text.starts_with(letter)) return std::nullopt;
  std::int32_t value = 0;
  const auto result = std::from_chars(text.data() + 1, text.data() + text.size(), value);
  if (result.ec != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(as_index(result.ptr - text.data()));
  return value;
}

// nullopt if it is none of r0, c1 and r0c1.
std::optional<CostScope> read_chunks(std::string_view item) {
  CostScope scope;
  scope.rank = take_numbered(item, 'r').value_or(-1);
  scope.chunk = take_numbered(item, 'c').value_or(-1);
  return item.empty() && !scope.everything() && scope.chunk != 0 ? std::optional(scope)
                                                                 : std::nullopt;
}

}  // namespace

bool Recomputed::has(std::int32_t rank, std::int32_t chunk) const {
  return std::ranges::any_of(scopes, [&](const CostScope& scope) {
    return (scope.rank < 0 || scope.rank == rank) && (scope.chunk < 0 || scope.chunk == chunk);
  });
}

Result<Recomputed, std::string> read_recomputed(std::string_view text) {
  if (text == "all") return Recomputed{.scopes = {CostScope{}}};
  Recomputed recomputed;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const auto scope = read_chunks(item);
    if (!scope) {
      return fmt::format(
          "`{}` names no chunks; write all, or a list such as r0c1,r2,c2 of chunks from 1 on ranks "
          "from 0, of ranks and of chunks on every rank",
          item);
    }
    recomputed.scopes.push_back(*scope);
    begin = end + 1;
  }
  return recomputed;
}

std::string to_text(const Recomputed& recomputed) {
  std::string text;
  for (const CostScope& scope : recomputed.scopes) {
    if (!text.empty()) text += ',';
    if (scope.everything()) text += "all";
    if (scope.rank >= 0) text += fmt::format("r{}", scope.rank);
    if (scope.chunk >= 0) text += fmt::format("c{}", scope.chunk);
  }
  return text;
}

std::optional<std::string> misfit_of(const Recomputed& recomputed, const Schedule& schedule,
                                     const ModuleTable& modules) {
  std::vector<CostSetting> settings;
  for (const CostScope& scope : recomputed.scopes) settings.push_back({.scope = scope});
  if (auto why = misfit_of(settings, schedule)) return why;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto r = static_cast<std::int32_t>(rank);
    for (std::int32_t chunk = 1; chunk <= schedule.ranks[rank].chunks; ++chunk) {
      const std::size_t layers = recomputed.has(r, chunk) ? modules.layers_told_apart(r, chunk) : 0;
      for (std::size_t layer = 0; layer < layers; ++layer) {
        const Module& module = *modules.of(r, chunk, static_cast<std::int32_t>(layer));
        if (!module.remakes) continue;
        return fmt::format(
            "names chunk {} of rank {}, but the configuration of its module `{}` says `recompute`: "
            "its backward has the forward already",
            chunk, r, module.name);
      }
    }
  }
  return std::nullopt;
}

}  // namespace capo
