#include "cli/options/mistakes.h"

#include "cli/options/command_tree.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/text/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

// Holds what was typed, of which CLI11 understood a part.
struct Typed {
  const CLI::App& app;
  const CLI::App& command;  ///< the innermost that CLI11 got to; `app` if it got to none
  const std::function<void()>& declare_others;
};

// Flags that people type who know other programs, and their meaning here. The first word on the
// right is a flag, which a command must have for the row to be about it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 39> kMeant{{
    {"--json", "--format json"},
    {"--sarif", "--format sarif"},
    {"--text", "--format text"},
    {"--grid", "--format grid"},
    {"--csv", "--format csv"},
    {"--out", "--output"},
    {"--outfile", "--output"},
    {"--output-file", "--output"},
    {"--input", "FILE"},
    {"--input-file", "FILE"},
    {"--file", "FILE"},
    {"-i", "FILE"},
    {"-f", "--format"},
    {"--list", "NAME"},
    {"-j", "--threads"},
    {"--jobs", "--threads"},
    {"-v", "--version"},
    {"-V", "--version"},
    {"-p", "--pp"},
    {"-m", "--microbatches"},
    {"--mb", "--microbatches"},
    {"--mbs", "--microbatches"},
    {"--micro-batches", "--microbatches"},
    {"--num-micro-batches", "--microbatches"},
    {"--n-microbatches", "--microbatches"},
    {"--world-size", "--ranks"},
    {"--stages", "--ranks"},
    {"--num-stages", "--ranks"},
    {"--colour", "--color"},
    {"--no-color", "--color never"},
    {"--te", "--plan te"},
    {"--safe", "--plan safe"},
    {"--fail-on-error", "--fail-on rejected"},
    {"--profiles", "--profile"},
    {"--costs", "--cost"},
    {"--memory-limit", "--memory"},
    {"--max-memory", "--memory"},
    {"--schedule", "NAME"},
    {"--name", "NAME"},
}};

// Commands by the names that other programs give them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kCommandsMeant{{
    {"verify", "capo check"},
    {"validate", "capo check"},
    {"lint", "capo check"},
    {"test", "capo check"},
    {"sim", "capo simulate"},
    {"draw", "capo graph"},
    {"plot", "capo graph"},
    {"dot", "capo graph"},
    {"reduce", "capo minimise"},
    {"shrink", "capo minimise"},
    {"bench", "capo measure"},
    {"list", "capo generate --list"},
    {"version", "capo --version"},
    {"gen", "capo generate"},
}};

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find(' ')));
}

// The command that was typed: the innermost one that CLI11 got to.
const CLI::App& typed_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

std::string name_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : name_of(*parent) + " " + command.get_name();
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool has(const CLI::App& command, const std::string& option) {
  return command.get_option_no_throw(option) != nullptr;
}

std::vector<std::string> long_flags_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& word : option->get_lnames()) names.push_back("--" + word);
  }
  return names;
}

bool is_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

// The names of other commands that have the flag, as words of a sentence; empty if none has.
std::string others_with(const std::string& flag, const Typed& typed) {
  typed.declare_others();
  std::vector<std::string> found;
  for (const CLI::App* other : commands_of(typed.app)) {
    if (other != &typed.command && has(*other, flag)) found.push_back(other->get_name());
  }
  constexpr std::size_t kMost = 3;
  const std::size_t more = found.size() - std::min(found.size(), kMost);
  found.resize(found.size() - more);
  if (more > 0) found.push_back(fmt::format("{} more", more));
  if (found.empty()) return "";
  if (found.size() == 1) return fmt::format("`capo {}` has it", found.front());
  return fmt::format("{} have it",
                     listed(std::vector<std::string_view>(found.begin(), found.end())));
}

// The command that a word may stand for: one that other programs have, or one of a similar name.
std::string command_meant(const CLI::App& app, const std::string& word) {
  const auto* row = std::find_if(kCommandsMeant.begin(), kCommandsMeant.end(),
                                 [&](const auto& each) { return each.first == word; });
  if (row != kCommandsMeant.end()) return std::string(row->second);
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return std::string(nearest(word, std::vector<std::string_view>(names.begin(), names.end())));
}

// A guess at the meaning of a flag that the command does not have; empty if there is none.
std::string guess(const std::string& flag, const Typed& typed) {
  const CLI::App& command = typed.command;
  const auto* row = std::find_if(kMeant.begin(), kMeant.end(), [&](const auto& each) {
    return each.first == flag && has(command, first_word(each.second));
  });
  if (row != kMeant.end() &&
      row->second.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos) {
    return fmt::format("{} is given without a flag, as in `{} {}`", row->second, name_of(command),
                       row->second);
  }
  if (row != kMeant.end()) return fmt::format("did you mean {}?", row->second);
  const std::vector<std::string> known = long_flags_of(command);
  const std::vector<std::string_view> flags(known.begin(), known.end());
  const std::string_view near = nearest(flag, flags);
  if (!near.empty() && edit_distance(flag, near) == 1) return fmt::format("did you mean {}?", near);
  if (const std::string others = others_with(flag, typed); !others.empty()) return others;
  if (!near.empty()) return fmt::format("did you mean {}?", near);
  const std::string word = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::string meant = &command == &typed.app ? command_meant(typed.app, word) : "";
  return meant.empty() ? "" : fmt::format("did you mean the command `{}`?", meant);
}

Error usage(std::string message, std::string help) {
  return {.kind = ErrorKind::Environment, .message = std::move(message), .help = std::move(help)};
}

std::string help_of(const CLI::App& command) {
  if (command.get_parent() == nullptr)
    return "`capo help` lists the commands, `capo help COMMAND` the flags of one";
  return fmt::format("`{} --help` lists what there is", name_of(command));
}

std::string named(const std::string& word) {
  return printable(word, 100);
}

Error unknown_flags(const std::vector<std::string>& flags, const Typed& typed) {
  std::string message =
      fmt::format("`{}` has no flag{} ", name_of(typed.command), flags.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string flag = flags[i].substr(0, flags[i].find('='));
    const std::string cure = guess(flag, typed);
    if (i > 0) message += i + 1 == flags.size() ? " and " : ", ";
    message += named(flag);
    if (cure.empty()) continue;
    message += flags.size() == 1 ? "; " + cure : " (" + cure + ")";
  }
  return usage(std::move(message), help_of(typed.command));
}

std::string positionals_of(const CLI::App& command) {
  std::string names;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    names += (names.empty() ? "" : " ") + option->get_name(true, false);
  }
  return names;
}

// The flags that take this word, with it: "--form order or --to order"; empty if none does.
std::string flags_with(const std::string& word, const CLI::App& command) {
  std::vector<std::string> found;
  for (const Flag& flag : flags_of(command)) {
    if (std::find(flag.values.begin(), flag.values.end(), word) != flag.values.end()) {
      found.push_back(flag.names.front() + " " + word);
    }
  }
  return fmt::format("{}", fmt::join(found, " or "));
}

Error too_many_words(const std::vector<std::string>& words, const CLI::App& command) {
  const std::string takes = positionals_of(command);
  const std::string word = named(words.front());
  const std::string flag = flags_with(words.front(), command);
  const bool number = words.front().find_first_not_of("0123456789") == std::string::npos;
  std::error_code why;
  const bool begins_with_it = command.get_option_no_throw("--from") != nullptr &&
                              std::filesystem::exists(words.front(), why);
  const std::string hint = !flag.empty() ? fmt::format("; did you mean {}?", flag)
                           : begins_with_it
                               ? fmt::format("; --from {} begins with that order", word)
                           : number ? "; numbers stand behind their flags"
                                    : "";
  return usage(takes.empty() ? fmt::format("`{}` takes flags only, and `{}` is none{}",
                                           name_of(command), word, hint)
                             : fmt::format("`{}` takes one {}, and `{}` is one word too many{}",
                                           name_of(command), takes, word, hint),
               help_of(command));
}

std::string no_command(const CLI::App& app, const std::string& word) {
  std::error_code why;
  const bool file = std::filesystem::exists(word, why);
  const std::string meant = command_meant(app, word);
  const std::string hint = file            ? fmt::format("`capo check {}` judges that file", word)
                           : meant.empty() ? ""
                                           : fmt::format("did you mean `{}`?", meant);
  return "there is no command `" + printable(word, 40) + "`" + (hint.empty() ? "" : "; " + hint);
}

std::optional<Error> not_understood(const Typed& typed) {
  const CLI::App& app = typed.app;
  const std::vector<std::string> left = app.remaining(true);
  if (left.empty()) return std::nullopt;
  const bool no_command_yet = &typed.command == &app;
  if (no_command_yet && !is_flag(left.front())) {
    return usage(no_command(app, left.front()), help_of(app));
  }
  std::vector<std::string> flags;
  std::copy_if(left.begin(), left.end(), std::back_inserter(flags), is_flag);
  return flags.empty() ? too_many_words(left, typed.command) : unknown_flags(flags, typed);
}

// CLI11 says "--order: 1 required TEXT missing", "--order excludes FILE".
std::string in_plain_words(const CLI::App& command, const CLI::ParseError& thrown) {
  std::string text = thrown.what();
  const std::string option = text.substr(0, text.find_first_of(": "));
  if (dynamic_cast<const CLI::RequiredError*>(&thrown) != nullptr) {
    return fmt::format("`{}` needs {}", name_of(command),
                       text.substr(0, text.rfind(" is required")));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&thrown) != nullptr) {
    if (text.ends_with("missing")) return fmt::format("{} needs a value behind it", option);
    return fmt::format("{} stands there more than once", option);
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&thrown) != nullptr) {
    const std::string other = text.substr(text.rfind(' ') + 1);
    return fmt::format("{} and {} cannot be given together", option, other);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&thrown) != nullptr) {
    return fmt::format("{} needs {}", option, text.substr(text.rfind(' ') + 1));
  }
  return text;
}

// Cuts a long piece of the command line wherever a message echoes it. Paths mostly stay whole.
void shorten(std::string& message, std::string_view piece) {
  constexpr std::size_t kLongest = 100;
  if (piece.size() <= kLongest) return;
  const std::string shortened = printable(piece, kLongest);
  for (std::size_t at = message.find(piece); at != std::string::npos;
       at = message.find(piece, at + shortened.size())) {
    message.replace(at, piece.size(), shortened);
  }
}

// CLI11 echoes a whole argument, or the value behind its `=`, or one item of a list.
std::string with_short_arguments(std::string message, std::span<char* const> arguments) {
  for (const std::string_view argument : arguments) {
    shorten(message, argument);
    shorten(message, argument.substr(std::min(argument.find('=') + 1, argument.size())));
    for (std::size_t begin = 0; begin < argument.size();) {
      const std::size_t end = std::min(argument.find_first_of("=,", begin), argument.size());
      shorten(message, argument.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return message;
}

// The name of a command's option that reads an input, for messages; empty if it reads none. Only
// `capo measure` reads its --trace; `capo simulate` writes one.
std::string name_of_input(const CLI::App& command, const CLI::Option& option) {
  constexpr std::array<std::string_view, 9> kInputs{"FILE",      "MORE",    "--capture",
                                                    "--replay",  "--model", "--topology",
                                                    "--plan-in", "--batch", "--against"};
  const std::string name = option.get_name();
  const bool reads = std::find(kInputs.begin(), kInputs.end(), name) != kInputs.end() ||
                     (name == "--trace" && command.get_name() == "measure");
  if (!reads) return "";
  return name == "MORE" ? "FILE" : name;
}

}  // namespace

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  const auto all = commands_of(app);
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const CLI::App* command) { return command->get_name() == name; });
  return found == all.end() ? nullptr : *found;
}

void refuse_command(const CLI::App& app, const std::string& word) {
  throw CLI::ValidationError(no_command(app, word), CLI::ExitCodes::ValidationError);
}

std::string two_from_standard_input(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of_input(command, *option);
    if (name.empty()) continue;
    for (const std::string& value : option->results()) {
      if (value == "-") names.push_back(name);
    }
  }
  if (names.size() < 2) return "";
  return names[0] == names[1]
             ? fmt::format("{} names standard input twice, which can be read once", names[0])
             : fmt::format("{} and {} both read standard input, which can be read once", names[0],
                           names[1]);
}

Error mistake_of(const CLI::App& app, const CLI::ParseError& thrown,
                 std::span<char* const> arguments, const std::function<void()>& declare_others) {
  const CLI::App& command = typed_command(app);
  const bool hidden = dynamic_cast<const CLI::ExtrasError*>(&thrown) != nullptr ||
                      dynamic_cast<const CLI::RequiredError*>(&thrown) != nullptr ||
                      dynamic_cast<const CLI::RequiresError*>(&thrown) != nullptr ||
                      dynamic_cast<const CLI::ExcludesError*>(&thrown) != nullptr;
  if (hidden) {
    if (auto error = not_understood({app, command, declare_others})) return *std::move(error);
  }
  return usage(with_short_arguments(in_plain_words(command, thrown), arguments), help_of(command));
}

}  // namespace capo::cli
