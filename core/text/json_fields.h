// What the readers of JSON objects share: which keys there are, what a value has to be and how
// large it may be. Each says in the reader's words what is wrong and where. Tested through
// json_reader_test.cpp and model_reader_test.cpp.

#pragma once

#include "core/text/json_value.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo {

inline constexpr std::string_view kScheduleSchema = "docs/schema/schedule.schema.json";
inline constexpr std::string_view kModelSchema = "docs/schema/model.schema.json";

/// "`chunks` is a float, not a whole number".
[[nodiscard]] Refusal wrong_type(const JsonValue& value, std::string_view what,
                                 std::string_view wanted);

/// "did you mean `chunks`?", or else the words to fall back to.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string_view> known,
                                       std::string_view otherwise);

/// The first key of `object` that is not among `known`; `page` lists them.
[[nodiscard]] std::optional<Refusal> refuse_unknown_keys(const JsonValue& object,
                                                         std::span<const std::string_view> known,
                                                         std::string_view page);

/// A `schema` that this capo does not read; it may be left out.
[[nodiscard]] std::optional<Refusal> refuse_schema(const JsonValue& root);

/// A whole number of at least `least`, under the limit for counts.
[[nodiscard]] Read<std::int32_t> read_count(const JsonValue& value, std::string_view what,
                                            const Limits& limits, double least = 0);
[[nodiscard]] Read<std::vector<std::int32_t>> read_counts(const JsonValue& value,
                                                          std::string_view what,
                                                          const Limits& limits, double least = 0);

/// A whole number between the two, both allowed; below 2^53, so that none is rounded.
[[nodiscard]] Read<std::int64_t> read_whole(const JsonValue& value, std::string_view what,
                                            std::int64_t least, std::int64_t most);
/// Any number between the two, both allowed.
[[nodiscard]] Read<double> read_real(const JsonValue& value, std::string_view what, double least,
                                     double most);
/// From 0 to 2^53 - 1.
[[nodiscard]] Read<std::int64_t> read_bytes(const JsonValue& value, std::string_view what);
/// From 0 to 10^12, which are eleven days.
[[nodiscard]] Read<double> read_microseconds(const JsonValue& value, std::string_view what);
[[nodiscard]] Read<bool> read_boolean(const JsonValue& value, std::string_view what);
/// A string that is not empty.
[[nodiscard]] Read<std::string> read_name(const JsonValue& value, std::string_view what);
/// A string that is one of `words`: its index.
[[nodiscard]] Read<std::size_t> read_word(const JsonValue& value, std::string_view what,
                                          std::span<const std::string_view> words);

/// The member of `object` under `key` as the one of `values` that it names (by name_of) into the
/// slot; nothing happens where there is no such member.
template <typename Value, std::size_t kSize>
[[nodiscard]] std::optional<Refusal> read_choice(const JsonValue& object, std::string_view key,
                                                 const std::array<Value, kSize>& values,
                                                 std::optional<Value>& slot) {
  const auto member = object.find(key);
  if (!member) return std::nullopt;
  std::array<std::string_view, kSize> words;
  for (std::size_t i = 0; i < kSize; ++i) words[i] = name_of(values[i]);
  const auto word = read_word(*member, "`" + std::string(key) + "`", words);
  if (!word) return word.error();
  slot = values[*word];
  return std::nullopt;
}

/// Puts what was read into its slot, or says why there is nothing.
template <typename T, typename Reading>
[[nodiscard]] std::optional<Refusal> take(std::optional<T>& slot, Reading&& reading) {
  if (!reading) return reading.error();
  slot = *std::forward<Reading>(reading);
  return std::nullopt;
}

}  // namespace capo
