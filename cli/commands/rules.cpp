// `capo rules`: the catalogue as a table for a terminal, or as the page docs/rules.md, which a test
// compares.

#include "cli/commands/commands.h"
#include "cli/options/files.h"
#include "core/base/embedded_text.h"
#include "core/rules/rule.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace capo::cli {

namespace {

// The first paragraph below the essay's title.
std::string_view first_paragraph(std::string_view id) {
  for (const EmbeddedText& essay : embedded_essays()) {
    if (essay.name != id) continue;
    std::string_view text =
        essay.text.substr(std::min(essay.text.find("\n\n") + 2, essay.text.size()));
    return text.substr(0, std::min(text.find("\n\n"), text.size()));
  }
  return {};
}

std::string rules_as_text() {
  std::string out;
  for (const Rule& rule : catalogue()) {
    out += fmt::format("{:<4} {:<24} {:<13} {}\n", rule.id, rule.name, name_of(rule.family),
                       rule.title);
  }
  return out;
}

std::string rules_as_markdown() {
  std::string out =
      "# The rules\n\n"
      "Made by `capo rules --markdown`; a test compares. `capo explain ID` tells more about each, "
      "with an\n"
      "order that breaks it and its cure. What a clean report promises is in "
      "[model.md](model.md).\n\n"
      "Rules run in passes. An error in the pass *entries* skips the later ones, which would count "
      "and\n"
      "order what cannot be read.\n";
  Family family = Family::Input;
  bool first = true;
  for (const Rule& rule : catalogue()) {
    if (first || rule.family != family) {
      std::string title(name_of(rule.family));
      title.front() = static_cast<char>(title.front() - 'a' + 'A');
      out += fmt::format("\n## {}\n", title);
    }
    first = false;
    family = rule.family;
    out += fmt::format("\n### {} {}\n\n*{}* (pass: {})\n\n{}\n", rule.id, rule.name, rule.title,
                       name_of(rule.pass), first_paragraph(rule.id));
  }
  return out;
}

}  // namespace

Run add_rules(CLI::App& command) {
  command.footer("Example: capo rules --markdown > docs/rules.md");
  auto markdown = std::make_shared<bool>(false);
  command.add_flag("--markdown", *markdown, "As the page docs/rules.md");
  return [markdown]() -> int {
    return exit_code_after(write_stdout(*markdown ? rules_as_markdown() : rules_as_text()));
  };
}

}  // namespace capo::cli
