#include "cli/options/help_page.h"

#include "cli/options/terminal.h"
#include "core/base/plural.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace capo::cli {

namespace {

constexpr std::size_t kColumn = 30;  // where descriptions begin

// The word for an option's value. CLI11 puts the checks of a value behind the word and a colon; of
// those only a list of words is short enough to be read.
std::string value_word(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  std::string type = option.get_type_name();
  const std::size_t colon = std::min(type.find(':'), type.size());
  const std::size_t list = type.find('{');
  type = list < type.size() && type.ends_with('}') ? type.substr(list) : type.substr(0, colon);
  if (!option.get_default_str().empty()) type += "=" + option.get_default_str();
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size) type += " ...";
  return type;
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // the set is sorted by addresses
  return names;
}

// Lines of at most `width` characters, each behind `indent` blanks.
std::string indented(std::string_view text, std::size_t indent, std::size_t width) {
  if (text.empty()) return "";
  const std::string margin(indent, ' ');
  std::string out;
  for (const std::string& line : wrapped(text, width - std::min(indent, width))) {
    out += margin + line + "\n";
  }
  return out;
}

std::string paragraph(const std::string& heading, const std::string& description) {
  const std::string text = indented(description, kColumn, terminal_width());
  const std::string first = "  " + heading;
  if (first.size() + 2 > kColumn) return first + "\n" + text;
  return first + text.substr(std::min(first.size(), text.size()));
}

// The options with this title that are positionals, or that are none.
template <typename Wanted>
std::string section(const CLI::App& app, const std::string& title, Wanted wanted) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (wanted(*option)) text += paragraph(heading_of(*option), description_of(*option));
  }
  return text.empty() ? "" : "\n" + title + ":\n" + text;
}

std::string usage_of(const CLI::App& app, const std::string& name, bool commands) {
  std::string text = "Usage: " + name + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) text += " [" + heading_of(*option) + "]";
  }
  return text + (commands ? " [COMMAND]" : "") + "\n";
}

// An example is there to be pasted, so it stays on its line.
std::string footer_of(const CLI::App& app) {
  std::string text;
  const std::string footer = app.get_footer();
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', begin), footer.size());
    const std::string line = footer.substr(begin, end - begin);
    text += line.starts_with("Example") ? line + "\n" : indented(line, 0, terminal_width());
    begin = end + 1;
  }
  return text;
}

// CLI11's own formatter writes into streams, which swallow what is thrown when memory runs out.
class HelpPage : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode /*mode*/) const override {
    std::string commands;
    for (const CLI::App* below : app->get_subcommands([](const CLI::App*) { return true; })) {
      commands += paragraph(below->get_name(), below->get_description());
    }
    std::string page = indented(app->get_description(), 0, terminal_width()) + "\n" +
                       usage_of(*app, name, !commands.empty());
    page += section(*app, "Positionals",
                    [](const CLI::Option& option) { return option.get_positional(); });
    for (const std::string& group : app->get_groups()) {
      page += section(*app, group, [&](const CLI::Option& option) {
        return !option.get_positional() && option.get_group() == group;
      });
    }
    if (!commands.empty()) page += "\nCommands:\n" + commands;
    return page + "\n" + footer_of(*app);
  }
};

}  // namespace

std::string heading_of(const CLI::Option& option) {
  std::string heading;
  for (const std::string& letter : option.get_snames()) heading += "-" + letter + ",";
  if (option.get_lnames().empty()) {
    heading = option.get_positional() ? option.get_name(true, false) : heading;
  } else {
    heading += "--" + option.get_lnames().front();
  }
  const std::string value = value_word(option);
  if (option.get_positional()) return heading + (value.ends_with(" ...") ? " ..." : "");
  return heading + (value.empty() ? "" : " " + value);
}

std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  std::vector<std::string> others;
  for (std::size_t i = 1; i < option.get_lnames().size(); ++i) {
    others.push_back("--" + option.get_lnames()[i]);
  }
  if (option.get_required()) text += "; required";
  if (!others.empty()) text += fmt::format("; also {}", fmt::join(others, ", "));
  if (!option.get_needs().empty()) {
    text += fmt::format("; needs {}", fmt::join(names_of(option.get_needs()), ", "));
  }
  if (!option.get_excludes().empty()) {
    text += fmt::format("; not with {}", fmt::join(names_of(option.get_excludes()), ", "));
  }
  return text;
}

std::shared_ptr<CLI::FormatterBase> help_pages() {
  return std::make_shared<HelpPage>();
}

}  // namespace capo::cli
