// The entries of a TE list that stand for no action, and the finding that each rule about them
// makes.

#pragma once

#include "core/diag/diagnostics.h"
#include "core/rules/context.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace capo::rules {

/// Calls `visit(entry, index)` for the entries that from_te_list could not read.
template <typename Visit>
void for_each_odd_entry(const Context& context, Visit&& visit) {
  for (const std::uint32_t index : context.input().odd_entries) {
    visit(context.input().te_list.entries[index], index);
  }
}

/// The entry as written, without the quotes of JSON.
[[nodiscard]] inline std::string written(const Context& context, const TeEntry& entry) {
  std::string_view text = context.input().source.slice(entry.span());
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  return std::string(text);
}

/// A finding about one entry by itself.
[[nodiscard]] inline Diagnostic about_entry(const Context& context, const TeEntry& entry,
                                            std::uint32_t index, std::string_view rule,
                                            const std::string& what, Help help) {
  const std::string text = written(context, entry);
  return {.rule = rule,
          .message = fmt::format("{} at index {} {}", shown(text), index, what),
          .labels = {{entry.span(), ""}},
          .help = std::move(help),
          .witness = {.tasks = {{.index = index, .text = text, .action = ""}}}};
}

}  // namespace capo::rules
