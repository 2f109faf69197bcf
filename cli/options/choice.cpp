#include "cli/options/choice.h"

#include <CLI/CLI.hpp>

namespace capo::cli {

CLI::Option* add_words(CLI::App& app, const std::string& name,
                       const std::vector<std::string>& words, const std::string& standard,
                       const std::string& help, std::function<void(const std::string& word)> keep) {
  CLI::Option* option = app.add_option_function<std::string>(name, std::move(keep), help)
                            ->check(CLI::IsMember(words));
  return standard.empty() ? option : option->default_str(standard);
}

void add_format(CLI::App& app, TextOrJson& format) {
  add_choice(app, "--format", format, {{"text", TextOrJson::Text}, {"json", TextOrJson::Json}},
             "text or json");
}

}  // namespace capo::cli
