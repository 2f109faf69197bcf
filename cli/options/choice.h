// An option that takes one of a few words, each of which stands for a value.
//
//   add_choice(app, "--format", request.format,
//              {{"text", Format::Text}, {"json", Format::Json}}, "text or json");
//
// CLI11's own transformers print the values' numbers beside their words, in help and in errors;
// these options print the words alone. Tested by tests/cli/usage_test.cpp.

#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capo::cli {

template <typename Value>
struct Word {
  std::string word;
  Value value;
};

template <typename Value>
using Words = std::vector<Word<Value>>;

/// The word for a value that is among `words`.
template <typename Value>
[[nodiscard]] std::string word_for(Value value, const Words<Value>& words) {
  return std::find_if(words.begin(), words.end(),
                      [&](const Word<Value>& each) { return each.value == value; })
      ->word;
}

/// The value of a word that is among `words`.
template <typename Value>
[[nodiscard]] Value value_for(const std::string& word, const Words<Value>& words) {
  return std::find_if(words.begin(), words.end(),
                      [&](const Word<Value>& each) { return each.word == word; })
      ->value;
}

/// Words for values that have a name_of().
template <typename Value>
[[nodiscard]] Words<Value> words_of(std::initializer_list<Value> values) {
  Words<Value> words;
  for (const Value value : values) words.push_back({std::string(name_of(value)), value});
  return words;
}

/// An option with these words alone, handed to `keep`; `standard` is shown as the default, unless
/// it is empty.
CLI::Option* add_words(CLI::App& app, const std::string& name,
                       const std::vector<std::string>& words, const std::string& standard,
                       const std::string& help, std::function<void(const std::string& word)> keep);

template <typename Value>
[[nodiscard]] std::vector<std::string> texts_of(const Words<Value>& words) {
  std::vector<std::string> texts;
  for (const Word<Value>& each : words) texts.push_back(each.word);
  return texts;
}

/// Sets `value`, whose first value is the default. It outlives the parsing.
template <typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        std::type_identity_t<Words<Value>> words, const std::string& help) {
  return add_words(app, name, texts_of(words), word_for(value, words), help,
                   [&value, words](const std::string& word) { value = value_for(word, words); });
}

/// Sets `value`, which stays nullopt unless the option is given.
template <typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::optional<Value>& value,
                        std::type_identity_t<Words<Value>> words, const std::string& help) {
  return add_words(app, name, texts_of(words), "", help,
                   [&value, words](const std::string& word) { value = value_for(word, words); });
}

enum class TextOrJson { Text, Json };

/// --format of commands that print text or JSON.
void add_format(CLI::App& app, TextOrJson& format);

}  // namespace capo::cli
