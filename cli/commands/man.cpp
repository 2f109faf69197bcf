// `capo man [COMMAND]`: the manual page of the program or of a command, for man(1).
//
//   capo man check | man -l -          capo man --pages share/man/man1
//
// Pages are made from the tree of commands, so that they say what --help says.

#include "cli/commands/commands.h"
#include "cli/options/command_tree.h"
#include "cli/options/files.h"
#include "cli/options/help_page.h"
#include "cli/options/mistakes.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::cli {

namespace {

// A text as roff takes it: a hyphen is a minus that can be copied, and no line begins a request.
std::string for_roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string page_name(const CommandNode& node) {
  return node.words.empty() ? "capo" : "capo-" + node.name("-");
}

std::string in_capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string options_of(const CLI::App& command, const std::string& group) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() || option->get_group() != group) continue;
    text += fmt::format(".TP\n.B {}\n{}\n", for_roff(heading_of(*option)),
                        for_roff(description_of(*option)));
  }
  return text;
}

std::string synopsis(const CommandNode& node) {
  std::string text = for_roff(node.words.empty() ? "capo" : "capo " + node.name());
  text = ".B " + text + "\n[OPTIONS]";
  for (const CLI::Option* option : node.app->get_options()) {
    if (option->get_positional()) text += fmt::format(" [{}]", for_roff(heading_of(*option)));
  }
  return text + (node.words.empty() ? " COMMAND" : "") + "\n";
}

std::string below(const CommandNode& node) {
  std::string text;
  for (const CLI::App* command : node.app->get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format(".TP\n.B {}\n{}\n", for_roff(command->get_name()),
                        for_roff(command->get_description()));
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

std::string page_of(const CommandNode& node) {
  const CLI::App& command = *node.app;
  std::string text =
      fmt::format(".TH {} 1 \"\" \"capo {}\" \"capo\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}",
                  for_roff(in_capitals(page_name(node))), CAPO_VERSION, for_roff(page_name(node)),
                  for_roff(command.get_description()), synopsis(node));
  std::string positionals;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    positionals += fmt::format(".TP\n.B {}\n{}\n", for_roff(heading_of(*option)),
                               for_roff(description_of(*option)));
  }
  if (!positionals.empty()) text += ".SH ARGUMENTS\n" + positionals;
  for (const std::string& group : command.get_groups()) {
    const std::string options = options_of(command, group);
    if (!options.empty()) text += fmt::format(".SH {}\n{}", for_roff(in_capitals(group)), options);
  }
  text += below(node);
  // The page of the program ends with exit codes, those of commands with examples.
  text += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", for_roff(command.get_footer()));
  if (!node.words.empty()) text += ".SH SEE ALSO\n.BR capo (1)\n";
  return text;
}

std::optional<Error> write_pages(const CLI::App& app, const std::string& folder) {
  for (const CommandNode& node : command_tree(app)) {
    if (auto failed = write_file(fmt::format("{}/{}.1", folder, page_name(node)), page_of(node))) {
      return failed;
    }
  }
  return std::nullopt;
}

struct ManRequest {
  std::vector<std::string> words;
  std::string folder;
};

int print_page(const CLI::App& app, const ManRequest& request) {
  if (!request.folder.empty()) return exit_code_after(write_pages(app, request.folder));
  const CLI::App* above = &app;
  for (const std::string& word : request.words) {
    const CLI::App* command = command_named(*above, word);
    if (command == nullptr) refuse_command(*above, word);
    above = command;
  }
  return exit_code_after(write_stdout(page_of({.words = request.words, .app = above})));
}

}  // namespace

Run add_man(CLI::App& command) {
  command.footer("Example: capo man check | man -l -");
  auto request = std::make_shared<ManRequest>();
  command.add_option("COMMAND", request->words, "A command, such as `check`");
  command
      .add_option("--pages", request->folder,
                  "Write the pages of all commands into this folder, capo-check.1 and so on")
      ->excludes("COMMAND");
  const CLI::App& app = *command.get_parent();
  return [&app, request] { return print_page(app, *request); };
}

}  // namespace capo::cli
