// A JSON text as a tree whose every node knows its bytes.
//
// nlohmann/json reads it (its SAX side, which does not recurse); what is added here is what a
// linter needs: the place of each value, duplicate keys as errors, a limit on nesting, and `1` told
// from `1.0`, which Python tells apart too. Nodes live in one vector, so a list of a million
// numbers costs 40 bytes each. Tested by json_value_test.cpp.

#pragma once

#include "core/diag/span.h"
#include "core/order/te_list.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

class JsonDocument;

/// A node of a JsonDocument; valid as long as the document.
class JsonValue {
 public:
  enum class Type : std::uint8_t { Null, Boolean, Number, String, Array, Object };

  [[nodiscard]] Type type() const;
  [[nodiscard]] Span span() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] NumberType number_type() const;
  [[nodiscard]] const std::string& string() const;

  /// Children of an array or object, in the order of the text.
  [[nodiscard]] std::optional<JsonValue> first() const;
  [[nodiscard]] std::optional<JsonValue> next() const;
  /// The name under which this value stands in its object, and where that is.
  [[nodiscard]] const std::string& key() const;
  [[nodiscard]] Span key_span() const;
  /// The member of an object.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument* document, std::uint32_t index)
      : document_(document), index_(index) {}

  const JsonDocument* document_;
  std::uint32_t index_;
};

class JsonDocument {
 public:
  [[nodiscard]] static Read<JsonDocument> parse(std::string_view text, const Limits& limits);

  [[nodiscard]] JsonValue root() const { return {this, 0}; }

 private:
  friend class JsonValue;
  friend class JsonBuilder;

  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Node {
    Span span;
    double number = 0;
    std::uint32_t text = kNone;  // into texts_: the string, or the key of a member before it
    std::uint32_t key = kNone;   // into texts_ and key_spans_
    std::uint32_t first_child = kNone;
    std::uint32_t next_sibling = kNone;
    JsonValue::Type type = JsonValue::Type::Null;
    NumberType number_type = NumberType::Integer;
  };

  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
  std::vector<Span> key_spans_;
};

/// The text as it stands between quotes in JSON.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace capo
