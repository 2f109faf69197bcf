#include "cli/options/command_tree.h"

#include "cli/options/help_page.h"
#include "core/rules/rule.h"
#include "schedules/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace capo::cli {

namespace {

void add_below(const CommandNode& node, std::vector<CommandNode>& nodes) {
  nodes.push_back(node);
  for (const CLI::App* below : node.app->get_subcommands([](const CLI::App*) { return true; })) {
    CommandNode next{.words = node.words, .app = below};
    next.words.push_back(below->get_name());
    add_below(next, nodes);
  }
}

// CLI11 keeps the words that an option takes in the name of its type: "TEXT:{text,json}".
std::vector<std::string> values_of(const CLI::Option& option) {
  std::vector<std::string> values;
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{');
  if (open == std::string::npos || !type.ends_with('}')) return values;
  for (std::size_t begin = open + 1; begin < type.size();) {
    const std::size_t end = type.find_first_of(",}", begin);
    values.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return values;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const schedules::Entry& entry : schedules::entries()) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names{"contract"};
  for (const Rule& rule : catalogue()) {
    names.emplace_back(rule.id);
    names.emplace_back(rule.name);
  }
  return names;
}

void append(std::vector<std::string>& to, std::vector<std::string> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

std::string CommandNode::name(const std::string& between) const {
  return fmt::format("{}", fmt::join(words, between));
}

std::vector<CommandNode> command_tree(const CLI::App& app) {
  std::vector<CommandNode> nodes;
  add_below({.words = {}, .app = &app}, nodes);
  return nodes;
}

std::vector<Flag> flags_of(const CLI::App& command) {
  std::vector<Flag> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    Flag flag{.description = description_of(*option),
              .takes_value = option->get_type_size() != 0 && !option->get_type_name().empty(),
              .values = values_of(*option)};
    for (const std::string& word : option->get_lnames()) flag.names.push_back("--" + word);
    for (const std::string& letter : option->get_snames()) flag.names.push_back("-" + letter);
    flags.push_back(std::move(flag));
  }
  return flags;
}

std::vector<std::string> words_of(const CommandNode& command) {
  std::vector<std::string> words;
  for (const CLI::App* below : command.app->get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(below->get_name());
  }
  const std::string name = command.name();
  if (name == "generate" || name == "sweep" || name == "compare") append(words, schedule_names());
  if (name == "sweep" || name == "compare") words.emplace_back("all");
  if (name == "explain") append(words, rule_names());
  if (name == "completion") append(words, {"bash", "zsh", "fish"});
  if (name != "help" && name != "man") return words;
  for (const CLI::App* other :
       command.app->get_parent()->get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(other->get_name());
  }
  return words;
}

}  // namespace capo::cli
