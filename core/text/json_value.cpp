#include "core/text/json_value.h"

#include "core/base/index.h"
#include "core/text/printable.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <set>

namespace capo {

namespace {

// An iterator that tells how far nlohmann's lexer has read.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** mirror) : at_(at), mirror_(mirror) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *mirror_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** mirror_;
};

// Takes out of "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
// those parts that the report says better.
std::string plain_reason(std::string_view what) {
  for (const std::string_view mark : {"column ", "] "}) {
    if (const std::size_t at = what.find(mark); at != what.npos)
      what.remove_prefix(at + mark.size());
  }
  if (const std::size_t colon = what.find(": "); colon != what.npos && colon < 12) {
    what.remove_prefix(colon + 2);
  }
  // The token that was read last can be the whole text.
  const std::size_t last = what.find("; last read: ");
  if (last == what.npos) return std::string(what);
  const std::size_t expected = what.rfind("; expected ");
  return std::string(what.substr(0, last)) +
         std::string(expected != what.npos && expected > last ? what.substr(expected) : "");
}

}  // namespace

// Receives nlohmann's events; returning false stops the parse with the refusal that was set.
class JsonBuilder {
 public:
  using Type = JsonValue::Type;
  using Node = JsonDocument::Node;

  JsonBuilder(std::string_view text, const Limits& limits)
      : text_(text), limits_(limits), read_(text.data()) {}

  Read<JsonDocument> build() {
    const CountingIterator begin(text_.data(), &read_);
    const CountingIterator end(text_.data() + text_.size(), &read_);
    if (nlohmann::json::sax_parse(begin, end, this)) return std::move(document_);
    if (!refusal_) return malformed(span_of(0, text_.size()), "not valid JSON");
    return std::move(*refusal_);
  }

  bool null() { return add({.type = Type::Null}); }
  bool boolean(bool value) { return add({.number = value ? 1.0 : 0.0, .type = Type::Boolean}); }
  bool number_integer(std::int64_t value) { return integer(static_cast<double>(value)); }
  bool number_unsigned(std::uint64_t value) { return integer(static_cast<double>(value)); }
  bool number_float(double value, const std::string& raw) {
    // An integer too long for 64 bits arrives here as well. The point of a float is that of the
    // process's locale by now.
    const bool written_as_float = raw.find_first_not_of("-0123456789") != std::string::npos;
    return add({.number = value,
                .type = Type::Number,
                .number_type = written_as_float ? NumberType::Float : NumberType::Integer});
  }
  bool string(std::string& value) {
    document_.texts_.push_back(std::move(value));
    return add(
        {.text = static_cast<std::uint32_t>(document_.texts_.size() - 1), .type = Type::String});
  }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }  // a text never holds one

  bool start_object(std::size_t /*elements*/) { return open(Type::Object); }
  bool start_array(std::size_t /*elements*/) { return open(Type::Array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const Span span = token();
    if (!open_.back().keys.insert(name).second) {
      refusal_ = malformed(span, fmt::format("the key {} occurs twice in one object", shown(name)),
                           "keep one of the two");
      return false;
    }
    document_.texts_.push_back(std::move(name));
    document_.key_spans_.resize(document_.texts_.size());
    document_.key_spans_.back() = span;
    pending_key_ = static_cast<std::uint32_t>(document_.texts_.size() - 1);
    return true;
  }

  template <typename Exception>
  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const Exception& error) {
    constexpr int kNumberOutOfRange = 406;
    if (error.id == kNumberOutOfRange) {
      refusal_ = malformed(token(), "this number is beyond the range of a double",
                           "an infinite entry of a TE list is written \"Infinity\"");
      return false;
    }
    const std::size_t at = std::min(position == 0 ? 0 : position - 1, text_.size());
    refusal_ = malformed(span_of(at, std::min(at + 1, text_.size())),
                         "not valid JSON: " + printable(plain_reason(error.what()), 160));
    return false;
  }

 private:
  struct Container {
    std::uint32_t node;
    std::uint32_t last_child = JsonDocument::kNone;
    std::set<std::string> keys;
  };

  bool integer(double value) { return add({.number = value, .type = Type::Number}); }

  // Returns the bytes of the token that was just read: from the first one after the last token that
  // separates nothing, to where the lexer stands. Only the byte after a number shows that it ends.
  Span token() {
    std::size_t begin = done_;
    while (begin < text_.size() &&
           (is_blank(text_[begin]) || text_[begin] == ',' || text_[begin] == ':')) {
      ++begin;
    }
    auto end = as_index(read_ - text_.data());
    const bool number = begin < text_.size() && (text_[begin] == '-' || is_digit(text_[begin]));
    if (number) {
      end = std::min(text_.find_first_not_of("+-.0123456789eE", begin), text_.size());
    }
    done_ = std::max(begin, end);
    return span_of(begin, done_);
  }

  bool add(Node node) {
    node.span = token();
    if (document_.nodes_.size() >= limits_.entries + kNodesBesideEntries) {
      refusal_ = too_many_entries(node.span, limits_);
      return false;
    }
    node.key = pending_key_;
    pending_key_ = JsonDocument::kNone;
    const auto index = static_cast<std::uint32_t>(document_.nodes_.size());
    if (!open_.empty()) {
      Container& parent = open_.back();
      std::uint32_t& link = parent.last_child == JsonDocument::kNone
                                ? document_.nodes_[parent.node].first_child
                                : document_.nodes_[parent.last_child].next_sibling;
      link = index;
      parent.last_child = index;
    }
    document_.nodes_.push_back(node);
    return true;
  }

  bool open(Type type) {
    if (open_.size() >= limits_.depth) {
      refusal_ =
          over_limit(token(), fmt::format("the JSON is nested more than {} deep", limits_.depth),
                     "--max-depth");
      return false;
    }
    if (!add({.type = type})) return false;
    open_.push_back({.node = static_cast<std::uint32_t>(document_.nodes_.size() - 1)});
    return true;
  }

  bool close() {
    const Span end = token();
    Node& node = document_.nodes_[open_.back().node];
    node.span.length = end.offset + end.length - node.span.offset;
    open_.pop_back();
    return true;
  }

  // These values of a schedule are no entries: counts, lists of layers and stages, keys.
  static constexpr std::size_t kNodesBesideEntries = 1 << 20;

  std::string_view text_;
  const Limits& limits_;
  const char* read_;
  std::size_t done_ = 0;
  std::uint32_t pending_key_ = JsonDocument::kNone;
  std::vector<Container> open_;
  JsonDocument document_;
  std::optional<Refusal> refusal_;
};

Read<JsonDocument> JsonDocument::parse(std::string_view text, const Limits& limits) {
  if (auto refusal = refuse_bytes(text, limits)) return std::move(*refusal);
  if (std::all_of(text.begin(), text.end(), is_blank)) {
    return malformed(span_of(0, text.size()), "the input is empty");
  }
  return JsonBuilder(text, limits).build();
}

JsonValue::Type JsonValue::type() const {
  return document_->nodes_[index_].type;
}
Span JsonValue::span() const {
  return document_->nodes_[index_].span;
}
bool JsonValue::boolean() const {
  return document_->nodes_[index_].number != 0;
}
double JsonValue::number() const {
  return document_->nodes_[index_].number;
}
NumberType JsonValue::number_type() const {
  return document_->nodes_[index_].number_type;
}
const std::string& JsonValue::string() const {
  CAPO_ASSERT(type() == Type::String, "only a string has a text");
  return document_->texts_[document_->nodes_[index_].text];
}

std::optional<JsonValue> JsonValue::first() const {
  const std::uint32_t child = document_->nodes_[index_].first_child;
  if (child == JsonDocument::kNone) return std::nullopt;
  return JsonValue(document_, child);
}
std::optional<JsonValue> JsonValue::next() const {
  const std::uint32_t sibling = document_->nodes_[index_].next_sibling;
  if (sibling == JsonDocument::kNone) return std::nullopt;
  return JsonValue(document_, sibling);
}
const std::string& JsonValue::key() const {
  CAPO_ASSERT(document_->nodes_[index_].key != JsonDocument::kNone, "only a member has a key");
  return document_->texts_[document_->nodes_[index_].key];
}
Span JsonValue::key_span() const {
  return document_->key_spans_[document_->nodes_[index_].key];
}
std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  for (auto member = first(); member; member = member->next()) {
    if (member->key() == key) return member;
  }
  return std::nullopt;
}

std::string json_quoted(std::string_view text) {
  // Bytes that are no UTF-8 become U+FFFD, so that the text can always be read again.
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace capo
