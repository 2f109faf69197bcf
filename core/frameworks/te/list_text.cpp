#include "core/frameworks/te/list_text.h"

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/frameworks/te/logged_lists.h"
#include "core/text/number.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>

namespace capo {

namespace {

using Maybe = std::optional<Refusal>;

constexpr std::string_view kMinus = "\xe2\x88\x92";  // U+2212

// The functions by whose names NumPy and PyTorch print their values.
constexpr std::array<std::string_view, 20> kArrays{
    "array",   "asarray", "tensor",  "Tensor", "int8",   "int16",   "int32",
    "int64",   "uint8",   "uint16",  "uint32", "uint64", "intp",    "longlong",
    "float16", "float32", "float64", "half",   "double", "bfloat16"};
constexpr std::span<const std::string_view> kFloats = std::span(kArrays).last<6>();
// Python's own containers hold what they print.
constexpr std::array<std::string_view, 3> kContainers{"deque", "list", "tuple"};

constexpr bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '.';
}

// The bytes that end an entry; a table, since every byte of a list is asked for.
constexpr std::array<bool, 256> kEndsEntry = [] {
  std::array<bool, 256> ends{};
  for (int c = 0; c < 256; ++c) ends[as_index(c)] = is_blank(static_cast<char>(c));
  for (const char c : {',', '[', ']', '(', ')', '#', '\0'}) ends[as_index(c)] = true;
  return ends;
}();

bool is_among(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// A call of one of those functions, `np.float64(`, at the beginning of a text.
struct Call {
  std::size_t length = 0;  ///< up to and with the parenthesis
  bool array = false;      ///< its floats may be whole because others are not
  bool floats = false;     ///< and all that it holds are floats
};

std::optional<Call> call_at(std::string_view text) {
  if (text.empty() || !is_letter(text.front())) return std::nullopt;
  const auto end = std::find_if_not(text.begin(), text.end(), is_word);
  if (end == text.end() || *end != '(') return std::nullopt;
  const auto length = as_index(end - text.begin());
  std::string_view name = text.substr(0, length);
  for (const std::string_view module : {"np.", "numpy.", "torch.", "collections."}) {
    if (name.starts_with(module)) name.remove_prefix(module.size());
  }
  const bool array = is_among(name, kArrays);
  if (!array && !is_among(name, kContainers)) return std::nullopt;
  return Call{.length = length + 1, .array = array, .floats = is_among(name, kFloats)};
}

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits) : text_(text), limits_(limits) {}

  Read<TeLists> read() {
    // An entry takes at least two bytes, its separator included; one pass of growth is enough.
    entries().reserve(std::min<std::size_t>(text_.size() / 4 + 1, limits_.entries));
    skip_filler();
    if (at_ == text_.size()) {
      return malformed(span_of(0, text_.size()), "the input holds no order",
                       "write one such as `[1, -1]`; an empty order is `[]`");
    }
    std::size_t logged = find_assignment(at_);
    if (logged == text_.size()) {
      megatron_ = megatron_words(text_, at_);
      logged = find_logged(at_);
    }
    Maybe refusal = logged < text_.size() ? read_log(logged)
                    : list_begins()       ? read_lists()
                                          : read_bare();
    if (refusal) return std::move(*refusal);
    note_printed_floats();
    return std::move(out_);
  }

 private:
  std::vector<TeEntry>& entries() { return out_.list.entries; }

  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  // Whether a list begins here: at a bracket, at the parenthesis of a tuple, or at the call that
  // prints an array of several numbers.
  [[nodiscard]] bool list_begins() const {
    if (at_ == text_.size()) return false;
    if (text_[at_] == '[') return true;
    if (text_[at_] == '(') return tuple_begins();
    const auto call = call_at(rest());
    if (!call) return false;
    const std::size_t inside = text_.find_first_not_of(" \t\r\n", at_ + call->length);
    return inside != std::string_view::npos && (text_[inside] == '[' || text_[inside] == '(');
  }

  // A parenthesis with other words in it is an annotation.
  [[nodiscard]] bool tuple_begins() const {
    const std::size_t inside = text_.find_first_not_of(" \t\r\n(", at_);
    if (inside == std::string_view::npos) return false;
    const char c = text_[inside];
    return is_digit(c) || c == '+' || c == '-' || c == '.' || c == '[' || c == ')' ||
           text_.substr(inside).starts_with(kMinus) || call_at(text_.substr(inside)).has_value();
  }

  Maybe read_bare() {
    out_.begins.push_back(0);
    if (auto refusal = read_entries('\0')) return refusal;
    return at_ < text_.size() ? Maybe(unexpected()) : std::nullopt;
  }

  // Lists up to the end of the text, with a blank or a comma between them.
  Maybe read_lists() {
    if (auto refusal = read_list(Level::Top)) return refusal;
    for (std::size_t end = at_;; end = at_) {
      skip_filler();
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        skip_filler();
      }
      if (at_ == text_.size()) return std::nullopt;
      if (at_ == end || !list_begins()) {
        return malformed(span_of(at_, at_ + 1), "text after the end of the list",
                         "one list a line gives the ranks of a schedule");
      }
      if (auto refusal = read_list(Level::Top)) return refusal;
    }
  }

  // Every list behind `order=`, or behind Megatron's words; what else stands in its line is not
  // read.
  Maybe read_log(std::size_t value) {
    std::vector<LoggedList> logged;
    while (value < text_.size()) {
      const std::size_t line = text_.rfind('\n', value) + 1;
      logged.push_back(logged_list(text_.substr(line, value - line), line));
      logged.back().begin = entries().size();
      at_ = value;
      if (auto refusal = read_list(Level::Top)) return refusal;
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      note_layers(text_.substr(at_, end - at_));
      value = find_logged(end);
    }
    at_ = text_.size();
    if (logged.size() < 2 || logged.size() != out_.begins.size()) return std::nullopt;
    auto order =
        order_of_ranks(logged, megatron_.empty() ? Numbered::OneByOne : Numbered::ByStages);
    if (!order) return order.error();
    if (const auto last = logged[order->back()].rank; last && *last >= logged.size()) {
      out_.notes.push_back(fmt::format("ranks 0 to {} of the log, by {}, are ranks 0 to {} here",
                                       *last, *last / (logged.size() - 1), logged.size() - 1));
    }
    return put_in_order(*order);
  }

  Maybe put_in_order(const std::vector<std::size_t>& order) {
    TeLists sorted{.notes = std::move(out_.notes)};
    for (const std::size_t i : order) {
      const std::size_t end = i + 1 < order.size() ? out_.begins[i + 1] : entries().size();
      sorted.begins.push_back(static_cast<std::uint32_t>(sorted.list.entries.size()));
      for (std::size_t at = out_.begins[i]; at < end; ++at) {
        sorted.list.entries.push_back(entries()[at]);
      }
    }
    out_ = std::move(sorted);
    return std::nullopt;
  }

  void note_layers(std::string_view rest_of_line) {
    constexpr std::string_view kLayers = "num_layers_per_chunk";
    if (rest_of_line.find(kLayers) == std::string_view::npos || noted_layers_) return;
    noted_layers_ = true;
    out_.notes.push_back(
        fmt::format("`{}` behind the list is not read; --layers-per-chunk says it", kLayers));
  }

  [[nodiscard]] std::size_t find_logged(std::size_t from) {
    return megatron_.empty() ? find_assignment(from) : list_behind(megatron_, text_, from);
  }

  // The place at which the list behind the next `order=` begins; the end of the text if there is
  // none.
  [[nodiscard]] std::size_t find_assignment(std::size_t from) {
    constexpr std::string_view kName = "order";
    const std::size_t here = at_;
    std::size_t found = text_.size();
    for (std::size_t at = text_.find(kName, from); at < text_.size() && found == text_.size();
         at = text_.find(kName, at + 1)) {
      const std::size_t line = text_.rfind('\n', at) + 1;
      if (text_.substr(line, at - line).find('#') != std::string_view::npos) continue;
      at_ = at + kName.size();
      skip_filler();
      if (at_ == text_.size() || text_[at_] != '=') continue;
      ++at_;
      skip_filler();
      if (list_begins()) found = at_;
    }
    at_ = here;
    return found;
  }

  enum class Level { Top, Rank };

  Maybe read_list(Level level) {
    if (const auto call = call_at(rest())) return read_call_of_list(*call, level);
    const std::size_t open = at_++;
    const char close = text_[open] == '[' ? ']' : ')';
    skip_filler();
    Maybe refusal = list_begins() ? read_ranks(level, close) : read_rank(close);
    if (refusal) return refusal;
    if (at_ == text_.size()) {
      return malformed(
          span_of(open, open + 1),
          close == ']' ? "this bracket is never closed" : "this parenthesis is never closed",
          fmt::format("end the list with `{}`; is the input cut short?", close));
    }
    if (text_[at_] != close) return unexpected();
    ++at_;
    return std::nullopt;
  }

  // `tensor([1, -1], device='cuda:0')`
  Maybe read_call_of_list(const Call& call, Level level) {
    const std::size_t open = at_ + call.length - 1;
    at_ = open + 1;
    skip_filler();
    printed_ += call.array ? 1 : 0;
    if (auto refusal = read_list(level)) return refusal;
    printed_ -= call.array ? 1 : 0;
    return leave_call(open);
  }

  // Goes behind the parenthesis that closes a call, past what else it was printed with.
  Maybe leave_call(std::size_t open) {
    int depth = 1;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\'') at_ = std::min(text_.find('\'', at_), text_.size() - 1) + 1;
      if (c == '(') ++depth;
      if (c == ')' && --depth == 0) return std::nullopt;
    }
    return malformed(span_of(open, open + 1), "this parenthesis is never closed",
                     "is the input cut short?");
  }

  // The lists of a list, each a rank.
  Maybe read_ranks(Level level, char close) {
    if (level == Level::Rank) {
      return malformed(span_of(at_, at_ + 1), "a list inside the list of a rank",
                       "a list of lists holds the ranks of a schedule, and each of those numbers");
    }
    while (at_ < text_.size() && text_[at_] != close) {
      if (!list_begins()) {
        return malformed(span_of(at_, at_ + 1), "a number among the lists of ranks",
                         "a list of lists holds the ranks of a schedule, and no number itself");
      }
      if (auto refusal = read_list(Level::Rank)) return refusal;
      skip_filler();
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        skip_filler();
      }
    }
    return std::nullopt;
  }

  Maybe read_rank(char close) {
    if (out_.begins.size() >= limits_.ranks) {
      return over_limit(span_of(at_, std::min(at_ + 1, text_.size())),
                        fmt::format("the input has more than {} ranks", limits_.ranks),
                        "--max-ranks");
    }
    const std::size_t begin = entries().size();
    out_.begins.push_back(static_cast<std::uint32_t>(begin));
    commas_ = false;
    points_ = false;
    if (auto refusal = read_entries(close)) return refusal;
    // `[ 1. -1. -1.5]`: only NumPy prints a point without a digit behind it, and no comma.
    if (points_ && !commas_) {
      has_printed_floats_ = true;
      for (std::size_t at = begin; at < entries().size(); ++at) {
        if (entries()[at].type == NumberType::Float) entries()[at].type = NumberType::PrintedFloat;
      }
    }
    return std::nullopt;
  }

  // Entries up to a bracket, `close` or the end; a comma needs an entry before it.
  Maybe read_entries(char close) {
    bool entry_before = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (!ends_entry(c)) {
        if (auto refusal = read_entry()) return refusal;
        entry_before = true;
      } else if (c == ']' || c == '[' || c == close) {
        return std::nullopt;
      } else if (c == ',') {
        if (!entry_before) {
          return malformed(span_of(at_, at_ + 1), "a comma with no entry before it");
        }
        entry_before = false;
        commas_ = true;
        ++at_;
      } else if (c == '(') {
        const bool first = entries().size() == out_.begins.back();
        if (first || (!entry_before && tuple_begins())) {
          return malformed(span_of(at_, at_ + 1), "an annotation with no entry before it");
        }
        if (auto refusal = skip_annotation()) return refusal;
      } else {  // as a parenthesis that closes nothing
        return no_number(text_.substr(at_, 1), at_);
      }
      skip_filler();
    }
    return std::nullopt;
  }

  Maybe read_entry() {
    const std::size_t begin = at_;
    const std::string_view token = take_token();
    const std::optional<Number> number = number_of(token);
    if (!number) {
      at_ = begin;
      const auto call = call_at(rest());
      return call ? read_call(*call) : no_number(token, begin);
    }
    if (number->type == NumberType::Float && token.back() == '.') points_ = true;
    return keep(*number, begin);
  }

  // `np.float64(-1.5)`
  Maybe read_call(const Call& call) {
    const std::size_t begin = at_;
    at_ += call.length;
    skip_filler();
    const std::size_t inside = at_;
    const std::string_view token = take_token();
    std::optional<Number> number = number_of(token);
    if (!number) return no_number(token, inside);
    if (auto refusal = leave_call(begin + call.length - 1)) return refusal;
    const bool array_float = call.array && number->type == NumberType::Float;
    if (array_float || call.floats) number->type = NumberType::PrintedFloat;
    return keep(*number, begin);
  }

  std::string_view take_token() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_entry(text_[at_])) ++at_;
    if (at_ == begin && at_ < text_.size()) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  static std::optional<Number> number_of(std::string_view token) {
    std::optional<Number> number = read_number(token);
    if (!number) number = with_other_minus(token);
    return number;
  }

  static std::optional<Number> with_other_minus(std::string_view token) {
    if (!token.starts_with(kMinus)) return std::nullopt;
    const std::string_view digits = token.substr(kMinus.size());
    if (digits.starts_with('-') || digits.starts_with('+')) return std::nullopt;
    return read_number("-" + std::string(digits));
  }

  static Refusal no_number(std::string_view token, std::size_t begin) {
    const Span span = span_of(begin, begin + token.size());
    if (token.find("...") != std::string_view::npos) {
      return malformed(span, "`...` stands for entries that were left out when this was printed",
                       "print all of them, with numpy.set_printoptions(threshold=sys.maxsize) or "
                       "torch.set_printoptions(profile=\"full\")");
    }
    const bool dash = token >= "\xe2\x80\x90" && token < "\xe2\x80\x96";  // U+2010 to U+2015
    return malformed(span, fmt::format("{} is not a number", shown(token)),
                     dash ? "this is a dash; a minus is `-`"
                          : "an entry is `i`, `-i` or `-i.5`, with i the chunk");
  }

  Maybe keep(Number number, std::size_t begin) {
    if (entries().size() >= limits_.entries) return too_many_entries(span_of(begin, at_), limits_);
    if (number.type != NumberType::Integer) note_float(number);
    entries().push_back(
        {.value = number.value,
         .offset = static_cast<std::uint32_t>(begin),
         .length = static_cast<std::uint16_t>(std::min<std::size_t>(at_ - begin, 0xffff)),
         .type = number.type});
    return std::nullopt;
  }

  void note_float(Number& number) {
    if (printed_ > 0) number.type = NumberType::PrintedFloat;
    if (number.type == NumberType::PrintedFloat) has_printed_floats_ = true;
  }

  Maybe skip_annotation() {
    const std::size_t open = at_;
    const std::size_t close = text_.find_first_of("()\n", open + 1);
    if (close == std::string_view::npos || text_[close] != ')') {
      return malformed(span_of(open, open + 1), "this annotation is never closed",
                       "close it with `)` on the same line");
    }
    at_ = close + 1;
    return std::nullopt;
  }

  static bool ends_entry(char c) { return kEndsEntry[static_cast<unsigned char>(c)]; }

  void skip_filler() {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  [[nodiscard]] Refusal unexpected() const {
    if (text_[at_] == '[') {
      return malformed(span_of(at_, at_ + 1), "a bracket inside the list",
                       "the list of a rank holds numbers; several ranks are a list of lists, or a "
                       "list a line");
    }
    return malformed(span_of(at_, at_ + 1), fmt::format("unexpected {}", shown(text_[at_])));
  }

  void note_printed_floats() {
    if (!has_printed_floats_) return;
    const auto whole = std::count_if(entries().begin(), entries().end(), [](const TeEntry& entry) {
      return entry.type == NumberType::PrintedFloat && std::floor(entry.value) == entry.value;
    });
    if (whole == 0) return;
    out_.notes.push_back(fmt::format(
        "{} of a printed array {} read as the chunk{}; if the list that TransformerEngine gets "
        "holds floats, it raises TypeError",
        counted(whole, "whole float"), whole == 1 ? "is" : "are",
        whole == 1 ? " that it names" : "s that they name"));
  }

  std::string_view text_;
  const Limits& limits_;
  std::size_t at_ = 0;
  int printed_ = 0;      // calls around this place that print arrays
  bool commas_ = false;  // of the rank that is read
  bool points_ = false;  // the rank has a number such as `1.`
  bool has_printed_floats_ = false;
  bool noted_layers_ = false;
  std::string_view megatron_;  ///< the words before each list of Megatron's log; else empty
  TeLists out_;
};

}  // namespace

Read<TeLists> read_te_lists(std::string_view text, const Limits& limits) {
  if (auto refusal = refuse_bytes(text, limits)) return std::move(*refusal);
  return Reader(text, limits).read();
}

Read<TeList> read_te_list(std::string_view text, const Limits& limits) {
  auto lists = read_te_lists(text, limits);
  if (!lists) return lists.error();
  if (lists->begins.size() == 1) return std::move(lists->list);
  const std::size_t second = lists->begins[1];
  const bool empty = second == lists->list.entries.size();
  return malformed(empty ? span_of(0, text.size()) : lists->list.entries[second].span(),
                   "a second list", "give one list at a time");
}

std::string print_te_list(const TeList& list) {
  std::string text = "[";
  for (const TeEntry& entry : list.entries) {
    if (text.size() > 1) text += ", ";
    text += to_text(Number{.value = entry.value, .type = entry.type});
  }
  return text + "]\n";
}

}  // namespace capo
