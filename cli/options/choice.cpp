#include "cli/options/choice.h"

#include "core/base/nearest.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

namespace capo::cli {

CLI::Option* add_words(CLI::App& app, const std::string& name,
                       const std::vector<std::string>& words, const std::string& standard,
                       const std::string& help, std::function<void(const std::string& word)> keep) {
  const auto refuse_others = [words](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
    const std::vector<std::string_view> known(words.begin(), words.end());
    const std::string hint = did_you_mean(word, known);
    return fmt::format("{} is none of {}{}{}", shown(word), fmt::join(words, ", "),
                       hint.empty() ? "" : "; ", hint);
  };
  CLI::Option* option =
      app.add_option_function<std::string>(name, std::move(keep), help)
          ->check(CLI::Validator(refuse_others, fmt::format("{{{}}}", fmt::join(words, ","))));
  return standard.empty() ? option : option->default_str(standard);
}

void add_format(CLI::App& app, TextOrJson& format) {
  add_choice(app, "--format", format, {{"text", TextOrJson::Text}, {"json", TextOrJson::Json}},
             "text or json");
}

}  // namespace capo::cli
