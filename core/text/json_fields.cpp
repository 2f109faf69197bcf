#include "core/text/json_fields.h"

#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace capo {

namespace {

using Type = JsonValue::Type;

std::string name_of(Type type) {
  constexpr std::array<std::string_view, 6> kNames{"null",     "a boolean", "a number",
                                                   "a string", "an array",  "an object"};
  return std::string(kNames[as_index(type)]);
}

}  // namespace

Refusal wrong_type(const JsonValue& value, std::string_view what, std::string_view wanted) {
  const bool fraction = value.type() == Type::Number && value.number_type() == NumberType::Float;
  return malformed(value.span(), fmt::format("{} is {}, not {}", what,
                                             fraction ? "a float" : name_of(value.type()), wanted));
}

std::optional<Refusal> refuse_unknown_keys(const JsonValue& object,
                                           std::span<const std::string_view> known,
                                           std::string_view page) {
  for (auto member = object.first(); member; member = member->next()) {
    if (std::find(known.begin(), known.end(), member->key()) != known.end()) continue;
    return malformed(member->key_span(), fmt::format("unknown key {}", shown(member->key())),
                     did_you_mean(member->key(), known, fmt::format("{} lists the keys", page)));
  }
  return std::nullopt;
}

std::optional<Refusal> refuse_other_object(const JsonValue& value, std::string_view what,
                                           std::span<const std::string_view> known,
                                           std::string_view page) {
  if (value.type() != Type::Object) return wrong_type(value, what, "an object");
  return refuse_unknown_keys(value, known, page);
}

std::optional<Refusal> refuse_schema(const JsonValue& root) {
  const auto schema = root.find("schema");
  if (!schema || (schema->type() == Type::Number && schema->number() == 1)) return std::nullopt;
  return malformed(schema->span(), "this capo reads schema 1", "write `\"schema\": 1`");
}

Read<std::int32_t> read_count(const JsonValue& value, std::string_view what, const Limits& limits,
                              double least) {
  if (value.type() != Type::Number || value.number_type() != NumberType::Integer) {
    return wrong_type(value, what, "a whole number");
  }
  if (value.number() < least) {
    return malformed(value.span(), fmt::format("{} must be at least {}", what, least));
  }
  if (value.number() > static_cast<double>(std::min<std::uint64_t>(limits.counts, 0x7fffffff))) {
    return over_limit(value.span(), fmt::format("{} is above the limit of {}", what, limits.counts),
                      "--max-count");
  }
  return static_cast<std::int32_t>(value.number());
}

Read<std::vector<std::int32_t>> read_counts(const JsonValue& value, std::string_view what,
                                            const Limits& limits, double least) {
  if (value.type() != Type::Array) return wrong_type(value, what, "an array of whole numbers");
  std::vector<std::int32_t> counts;
  for (auto item = value.first(); item; item = item->next()) {
    auto count = read_count(*item, fmt::format("an item of {}", what), limits, least);
    if (!count) return count.error();
    counts.push_back(*count);
  }
  return counts;
}

Read<std::int64_t> read_whole(const JsonValue& value, std::string_view what, std::int64_t least,
                              std::int64_t most) {
  if (value.type() != Type::Number || value.number_type() != NumberType::Integer) {
    return wrong_type(value, what, "a whole number");
  }
  if (value.number() < static_cast<double>(least)) {
    return malformed(value.span(), fmt::format("{} must be at least {}", what, least));
  }
  if (value.number() > static_cast<double>(most)) {
    return malformed(value.span(), fmt::format("{} must be at most {}", what, most));
  }
  return static_cast<std::int64_t>(value.number());
}

Read<double> read_real(const JsonValue& value, std::string_view what, double least, double most) {
  if (value.type() != Type::Number) return wrong_type(value, what, "a number");
  if (value.number() < least) {
    return malformed(value.span(), fmt::format("{} must be at least {}", what, least));
  }
  if (value.number() > most) {
    return malformed(value.span(), fmt::format("{} must be at most {}", what, most));
  }
  return value.number() + 0.0;  // -0 is 0
}

Read<std::int64_t> read_bytes(const JsonValue& value, std::string_view what) {
  return read_whole(value, what, 0, (std::int64_t{1} << 53) - 1);
}

Read<double> read_microseconds(const JsonValue& value, std::string_view what) {
  return read_real(value, what, 0, 1e12);
}

Read<bool> read_boolean(const JsonValue& value, std::string_view what) {
  if (value.type() != Type::Boolean) return wrong_type(value, what, "a boolean");
  return value.boolean();
}

Read<std::string> read_name(const JsonValue& value, std::string_view what) {
  if (value.type() != Type::String) return wrong_type(value, what, "a string");
  if (value.string().empty()) return malformed(value.span(), fmt::format("{} is empty", what));
  return value.string();
}

Read<std::size_t> read_word(const JsonValue& value, std::string_view what,
                            std::span<const std::string_view> words) {
  const std::string message = fmt::format("{} is one of {}", what, fmt::join(words, ", "));
  if (value.type() != Type::String) return malformed(value.span(), message);
  const auto found = std::find(words.begin(), words.end(), value.string());
  if (found != words.end()) return as_index(found - words.begin());
  return malformed(value.span(), message, did_you_mean(value.string(), words, ""));
}

}  // namespace capo
