// `capo help [COMMAND]`: the page of the program or of a command, as --help prints it.

#include "cli/commands/commands.h"
#include "cli/options/files.h"
#include "cli/options/mistakes.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

namespace capo::cli {

namespace {

std::string page_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const CLI::App* below = command_named(*command, word);
    if (below == nullptr) refuse_command(*command, word);
    command = below;
    name += " " + word;
  }
  // CLI11's own help() is about the command that was typed, which is `help`.
  return app.get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal);
}

}  // namespace

Run add_help(CLI::App& command) {
  command.footer("Example: capo help check");
  auto words = std::make_shared<std::vector<std::string>>();
  command.add_option("COMMAND", *words, "A command, such as `check` or `generate megatron`");
  const CLI::App& app = *command.get_parent();
  return [&app, words] { return exit_code_after(write_stdout(page_of(app, *words))); };
}

}  // namespace capo::cli
