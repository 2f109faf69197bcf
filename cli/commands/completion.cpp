// `capo completion bash|zsh|fish`: a script that makes a shell complete capo's command lines.
//
//   source <(capo completion bash)
//
// Scripts are made from the tree of commands: commands, their flags with the words that they take,
// names of schedules and rules; where none of these can stand, the shell completes names of files.

#include "cli/commands/commands.h"
#include "cli/options/command_tree.h"
#include "cli/options/files.h"
#include "core/base/assert.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace capo::cli {

namespace {

using Nodes = std::vector<CommandNode>;

// --- bash ---------------------------------------------------------------------------------------

std::vector<std::string> all_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const Flag& flag : flags_of(command)) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return names;
}

// The words of flags that take no others, as branches of a `case` on the word before.
std::string bash_values(const CLI::App& command) {
  std::string text;
  for (const Flag& flag : flags_of(command)) {
    if (!flag.takes_value) continue;
    text += fmt::format("        {}) values=\"{}\"; value=1 ;;\n", fmt::join(flag.names, "|"),
                        fmt::join(flag.values, " "));
  }
  return text;
}

std::string bash_script(const Nodes& nodes) {
  std::string text =
      "# bash completion of capo, printed by `capo completion bash`.\n"
      "_capo() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local command=\"\" flags=\"\" words=\"\" values=\"\" value=0 i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"$command/${COMP_WORDS[i]}\" in\n";
  for (const CommandNode& node : nodes) {
    if (node.words.empty()) continue;
    const std::string name = node.name(" ");
    const std::size_t blank = name.rfind(' ');
    const std::string above = blank == std::string::npos ? "" : name.substr(0, blank);
    text += fmt::format("      \"{}/{}\") command=\"{}\" ;;\n", above, node.words.back(), name);
  }
  text += "    esac\n  done\n  case \"$command\" in\n";
  for (const CommandNode& node : nodes) {
    text += fmt::format("    \"{}\")\n      flags=\"{}\"\n      words=\"{}\"\n", node.name(),
                        fmt::join(all_names(*node.app), " "), fmt::join(words_of(node), " "));
    const std::string values = bash_values(*node.app);
    if (!values.empty()) text += "      case \"$before\" in\n" + values + "      esac\n";
    text += "      ;;\n";
  }
  return text +
         "  esac\n"
         "  if [[ $value == 1 ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "  elif [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _capo capo\n";
}

// --- zsh ----------------------------------------------------------------------------------------

// A text inside single quotes in which brackets and colons have a meaning.
std::string for_zsh(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_flags(const CommandNode& node) {
  std::string text;
  for (const Flag& flag : flags_of(*node.app)) {
    for (const std::string& name : flag.names) {
      const std::string value = !flag.takes_value ? ""
                                : flag.values.empty()
                                    ? ":value:_files"
                                    : fmt::format(":value:({})", fmt::join(flag.values, " "));
      text += fmt::format(" \\\n        '*{}[{}]{}'", name, for_zsh(flag.description), value);
    }
  }
  const std::vector<std::string> words = words_of(node);
  if (words.empty()) return text + " \\\n        '*:file:_files'";
  return text + fmt::format(" \\\n        '*:word:({})'", fmt::join(words, " "));
}

std::string zsh_script(const Nodes& nodes) {
  std::string text =
      "#compdef capo\n"
      "# zsh completion of capo, printed by `capo completion zsh`.\n"
      "_capo() {\n"
      "  local command=\"\" word\n"
      "  local -a commands\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case \"$command/$word\" in\n";
  std::string commands;
  std::string cases;
  for (const CommandNode& node : nodes) {
    if (node.words.empty()) continue;
    const std::string name = node.name();
    const std::size_t blank = name.rfind(' ');
    const std::string above = blank == std::string::npos ? "" : name.substr(0, blank);
    text += fmt::format("      '{}/{}') command='{}' ;;\n", above, node.words.back(), name);
    if (above.empty()) {
      commands += fmt::format("        '{}:{}'\n", name, for_zsh(node.app->get_description()));
    }
    cases += fmt::format("    '{}')\n      _arguments{}\n      ;;\n", name, zsh_flags(node));
  }
  return text + "    esac\n  done\n  case \"$command\" in\n    '')\n      commands=(\n" + commands +
         "      )\n      _describe command commands\n      ;;\n" + cases +
         "  esac\n}\n"
         "if [ \"$funcstack[1]\" = \"_capo\" ]; then _capo; else compdef _capo capo; fi\n";
}

// --- fish ---------------------------------------------------------------------------------------

std::string for_fish(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// The condition under which a command's completions hold.
std::string fish_condition(const CommandNode& node) {
  if (node.words.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (const std::string& word : node.words) {
    condition +=
        fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
  }
  return condition;
}

std::string fish_flag(const Flag& flag, const std::string& condition) {
  std::string line = fmt::format("complete -c capo -n '{}'", condition);
  for (const std::string& name : flag.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (flag.takes_value) line += flag.values.empty() ? " -r" : " -x";
  if (!flag.values.empty()) line += fmt::format(" -a '{}'", fmt::join(flag.values, " "));
  return line + fmt::format(" -d '{}'\n", for_fish(flag.description));
}

std::string fish_script(const Nodes& nodes) {
  std::string text = "# fish completion of capo, printed by `capo completion fish`.\n";
  for (const CommandNode& node : nodes) {
    const std::string condition = fish_condition(node);
    if (node.words.size() == 1) {
      text += fmt::format("complete -c capo -f -n __fish_use_subcommand -a {} -d '{}'\n",
                          node.words.front(), for_fish(node.app->get_description()));
    }
    const std::vector<std::string> words = words_of(node);
    if (!words.empty() && !node.words.empty()) {
      text += fmt::format("complete -c capo -n '{}' -a '{}'\n", condition, fmt::join(words, " "));
    }
    for (const Flag& flag : flags_of(*node.app)) text += fish_flag(flag, condition);
  }
  return text;
}

std::string script_of(const CLI::App& app, const std::string& shell) {
  const Nodes nodes = command_tree(app);
  if (shell == "bash") return bash_script(nodes);
  if (shell == "zsh") return zsh_script(nodes);
  if (shell == "fish") return fish_script(nodes);
  if (shell.empty()) throw CLI::RequiredError("the name of a shell: bash, zsh or fish");
  throw CLI::ValidationError("SHELL", "there are bash, zsh and fish");
}

}  // namespace

Run add_completion(CLI::App& command) {
  command.footer("Example: capo completion bash > ~/.local/share/bash-completion/completions/capo");
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash, zsh or fish");
  const CLI::App& app = *command.get_parent();
  return [&app, shell] { return exit_code_after(write_stdout(script_of(app, *shell))); };
}

}  // namespace capo::cli
