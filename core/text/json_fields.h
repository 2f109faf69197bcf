// Readers of JSON objects share tables of members and readers of values: a table lists the keys of
// an object, and its reader puts each value into a slot or says what is wrong with it, and where.
//
//   constexpr std::array<JsonMember<EpOverlap>, 1> kSlots{{
//       {"early_release", put<&EpOverlap::early_release, read_boolean>}}};
//   read_members(object, "", kSlots, slots)
//
// Rules between members are not said here. Tested by tests/core/input/json_reader_test.cpp and
// model_reader_test.cpp.

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
#include <type_traits>
#include <utility>
#include <vector>

namespace capo {

inline constexpr std::string_view kScheduleSchema = "docs/schema/schedule.schema.json";
inline constexpr std::string_view kModelSchema = "docs/schema/model.schema.json";

/// "`chunks` is a float, not a whole number".
[[nodiscard]] Refusal wrong_type(const JsonValue& value, std::string_view what,
                                 std::string_view wanted);

/// Refuses the first key of `object` that is not among `known`; `page` lists them.
[[nodiscard]] std::optional<Refusal> refuse_unknown_keys(const JsonValue& object,
                                                         std::span<const std::string_view> known,
                                                         std::string_view page);

/// Refuses a `schema` that this capo does not read; it may be left out.
[[nodiscard]] std::optional<Refusal> refuse_schema(const JsonValue& root);

/// Reads a whole number of at least `least`, under the limit for counts.
[[nodiscard]] Read<std::int32_t> read_count(const JsonValue& value, std::string_view what,
                                            const Limits& limits, double least = 0);
[[nodiscard]] Read<std::vector<std::int32_t>> read_counts(const JsonValue& value,
                                                          std::string_view what,
                                                          const Limits& limits, double least = 0);

/// Reads a whole number between the two, both allowed; below 2^53, so that none is rounded.
[[nodiscard]] Read<std::int64_t> read_whole(const JsonValue& value, std::string_view what,
                                            std::int64_t least, std::int64_t most);
/// The sizes of a model fit 31 bits.
inline constexpr std::int64_t kLargestExtent = 0x7fffffff;
/// Reads a size of a model, of at least `kLeast`.
template <std::int64_t kLeast>
[[nodiscard]] Read<std::int64_t> read_extent(const JsonValue& value, std::string_view what) {
  return read_whole(value, what, kLeast, kLargestExtent);
}
/// Reads any number between the two, both allowed.
[[nodiscard]] Read<double> read_real(const JsonValue& value, std::string_view what, double least,
                                     double most);
/// Reads a whole number from 0 to 2^53 - 1.
[[nodiscard]] Read<std::int64_t> read_bytes(const JsonValue& value, std::string_view what);
/// Reads a number from 0 to 10^12, which are eleven days.
[[nodiscard]] Read<double> read_microseconds(const JsonValue& value, std::string_view what);
[[nodiscard]] Read<bool> read_boolean(const JsonValue& value, std::string_view what);
/// Reads a string that is not empty.
[[nodiscard]] Read<std::string> read_name(const JsonValue& value, std::string_view what);
/// Reads a string that is one of `words`, as its index.
[[nodiscard]] Read<std::size_t> read_word(const JsonValue& value, std::string_view what,
                                          std::span<const std::string_view> words);

/// A member of an object: its key, and the reader that puts its value into a slot of `into`. `what`
/// names the value in messages.
template <typename Into>
struct JsonMember {
  std::string_view key;
  std::optional<Refusal> (*read)(const JsonValue& value, std::string_view what, Into& into);
};

/// Reads the value with kRead into the slot.
template <auto kSlot, auto kRead, typename Into>
[[nodiscard]] std::optional<Refusal> put(const JsonValue& value, std::string_view what,
                                         Into& into) {
  auto read = kRead(value, what);
  if (!read) return read.error();
  into.*kSlot = *std::move(read);
  return std::nullopt;
}

/// Reads a word that is the name_of() one of the values.
template <const auto& kValues>
[[nodiscard]] auto read_choice(const JsonValue& value, std::string_view what)
    -> Read<typename std::decay_t<decltype(kValues)>::value_type> {
  std::array<std::string_view, kValues.size()> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = name_of(kValues[i]);
  const auto word = read_word(value, what, words);
  if (!word) return word.error();
  return kValues[*word];
}

/// The keys of a table whose rows have one, in its order.
template <typename Row, std::size_t kSize>
[[nodiscard]] constexpr std::array<std::string_view, kSize> keys_of(
    const std::array<Row, kSize>& table) {
  std::array<std::string_view, kSize> keys;
  for (std::size_t i = 0; i < kSize; ++i) keys[i] = table[i].key;
  return keys;
}

/// Refuses what is no object, and keys that are not among `known`; `what` is the object in
/// messages.
[[nodiscard]] std::optional<Refusal> refuse_other_object(const JsonValue& value,
                                                         std::string_view what,
                                                         std::span<const std::string_view> known,
                                                         std::string_view page);

/// Reads the members that the object has, in the order of the table. Messages name a value by its
/// key behind the prefix, "`shape.tokens`".
template <typename Into, std::size_t kSize>
[[nodiscard]] std::optional<Refusal> read_members(const JsonValue& object, std::string_view prefix,
                                                  const std::array<JsonMember<Into>, kSize>& table,
                                                  Into& into) {
  for (const JsonMember<Into>& member : table) {
    const auto value = object.find(member.key);
    if (!value) continue;
    const std::string what = std::string("`").append(prefix).append(member.key).append("`");
    if (auto refusal = member.read(*value, what, into)) return refusal;
  }
  return std::nullopt;
}

/// Puts the reading into its slot, or returns its refusal.
template <typename T, typename Reading>
[[nodiscard]] std::optional<Refusal> take(std::optional<T>& slot, Reading&& reading) {
  if (!reading) return reading.error();
  slot = *std::forward<Reading>(reading);
  return std::nullopt;
}

}  // namespace capo
