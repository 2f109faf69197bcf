#include "cli/commands/commands.h"
#include "cli/options/files.h"
#include "core/report/rules_page.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace capo::cli {

Run add_rules(CLI::App& app) {
  auto* command = app.add_subcommand("rules", "List the rules");
  command->footer("Example: capo rules --markdown > docs/rules.md");
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "As the page docs/rules.md");
  return [markdown]() -> int {
    return exit_code_after(write_stdout(*markdown ? rules_as_markdown() : rules_as_text()));
  };
}

}  // namespace capo::cli
