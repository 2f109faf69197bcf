#include "core/text/order_text.h"

#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/text/action_token.h"
#include "core/text/scan.h"
#include "core/text/schedule_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace capo {

namespace {

struct Word {
  std::string_view text;
  Span span;
};

constexpr std::array<std::string_view, 12> kStatements{
    "capo",         "chunks", "delayed",   "layers", "microbatches", "mixed",
    "model-chunks", "p2p",    "placement", "rank",   "ranks",        "stages"};

constexpr bool is_mark(char c) {
  return c == '(' || c == ')' || c == ':';
}

// A table, since this is asked of every character of a file.
constexpr std::array<bool, 256> kEndsWord = [] {
  std::array<bool, 256> ends{};
  for (const char c : {' ', '\t', '\n', '\r', '(', ')', ':', ',', '#'})
    ends[static_cast<unsigned char>(c)] = true;
  return ends;
}();

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits)
      : text_(text), limits_(limits), builder_(limits) {}

  Read<Schedule> read() {
    while (next_statement()) {
      if (auto refusal = read_statement()) return std::move(*refusal);
    }
    if (!versioned_) {
      return malformed(span_of(0, text_.size()), "the input holds no order",
                       "an .order file begins with `capo 1`");
    }
    return finish();
  }

 private:
  using Maybe = std::optional<Refusal>;

  // A word is a run of bytes other than blanks, commas and comments; parentheses and the colon
  // stand alone. A line that begins with a blank goes on with the statement before it.
  std::optional<Word> next_word() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        const bool continues =
            at_ + 1 < text_.size() && (text_[at_ + 1] == ' ' || text_[at_ + 1] == '\t');
        if (!continues) return std::nullopt;
        ++at_;
      } else if (is_blank(c) || c == ',') {
        ++at_;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        break;
      }
    }
    if (at_ == text_.size()) return std::nullopt;
    const std::size_t begin = at_;
    if (is_mark(text_[at_])) {
      ++at_;
    } else {
      while (at_ < text_.size() && !kEndsWord[static_cast<unsigned char>(text_[at_])]) ++at_;
    }
    return Word{text_.substr(begin, at_ - begin), span_of(begin, at_)};
  }

  // Moves to the first word of the next statement. Returns false at the end.
  bool next_statement() {
    while (at_ < text_.size()) {
      if (auto word = next_word()) {
        statement_ = *word;
        return true;
      }
      if (at_ < text_.size()) ++at_;  // skips the newline
    }
    return false;
  }

  Maybe end_of_statement() {
    if (const auto word = next_word()) {
      return malformed(word->span,
                       fmt::format("unexpected {} at the end of the statement", shown(word->text)));
    }
    return std::nullopt;
  }

  Maybe read_statement() {
    const std::string_view word = statement_.text;
    if (!versioned_) return read_version();
    if (word == "capo") return malformed(statement_.span, "`capo` is stated a second time");
    if (word == "ranks") return read_once(ranks_, word, limits_.ranks, "--max-ranks", 1);
    if (word == "microbatches")
      return read_once(microbatches_, word, limits_.counts, "--max-count", 1);
    if (word == "stages") return read_once(stages_, word, limits_.counts, "--max-count", 1);
    if (word == "placement") return read_placement();
    if (word == "p2p") return read_p2p();
    if (word == "rank") return read_rank();
    if (const auto refusal = read_fact(statement_, shared_)) return *refusal;
    return std::nullopt;
  }

  Maybe read_version() {
    if (statement_.text != "capo") {
      return malformed(statement_.span, "an .order file begins with `capo 1`",
                       "put `capo 1` on the first line");
    }
    const auto version = next_word();
    if (!version || version->text != "1") {
      return malformed(version ? version->span : statement_.span,
                       "this capo reads version 1 of the language", "write `capo 1`");
    }
    versioned_ = true;
    return end_of_statement();
  }

  Maybe read_once(std::optional<std::int32_t>& slot, std::string_view what, std::uint64_t limit,
                  std::string_view flag, std::int32_t least) {
    if (slot) {
      return malformed(statement_.span, fmt::format("`{}` is stated a second time", what));
    }
    std::int32_t value = 0;
    if (auto refusal = read_count(value, what, limit, flag, least)) return refusal;
    slot = value;
    return end_of_statement();
  }

  Maybe read_count(std::int32_t& value, std::string_view what, std::uint64_t limit,
                   std::string_view flag, std::int32_t least) {
    const auto word = next_word();
    if (!word) {
      return malformed(statement_.span, fmt::format("`{}` needs a number", what));
    }
    number_ = word->span;
    return read_count(value, *word, what, limit, flag, least);
  }

  Maybe read_count(std::int32_t& value, const Word& word, std::string_view what,
                   std::uint64_t limit, std::string_view flag, std::int32_t least) {
    const bool digits = std::all_of(word.text.begin(), word.text.end(), is_digit);
    if (!digits) {
      return malformed(word.span, fmt::format("{} is no number for `{}`", shown(word.text), what));
    }
    std::uint64_t number = 0;
    const auto end = word.text.data() + word.text.size();
    const auto result = std::from_chars(word.text.data(), end, number);
    if (result.ec != std::errc{} || number > limit || number > 0x7fffffff) {
      return over_limit(word.span, fmt::format("`{}` is above the limit of {}", what, limit),
                        std::string(flag));
    }
    if (number < static_cast<std::uint64_t>(least)) {
      return malformed(word.span, fmt::format("`{}` must be at least {}", what, least));
    }
    value = static_cast<std::int32_t>(number);
    return std::nullopt;
  }

  Maybe read_placement() {
    if (placed_) return malformed(statement_.span, "`placement` is stated a second time");
    const auto word = next_word();
    const auto topology = word ? topology_named(word->text) : std::nullopt;
    if (!topology) {
      return malformed(word ? word->span : statement_.span,
                       "`placement` is one of independent, chain, loop, v, bidirectional, custom");
    }
    builder_.schedule().topology = *topology;
    placed_ = true;
    return end_of_statement();
  }

  Maybe read_p2p() {
    std::optional<MegatronCalls>& calls = builder_.schedule().p2p;
    if (calls) return malformed(statement_.span, "`p2p` is stated a second time");
    const auto word = next_word();
    calls = word ? megatron_calls_named(word->text) : std::nullopt;
    if (calls) return end_of_statement();
    return malformed(word ? word->span : statement_.span,
                     "`p2p` is one of batch, overlap, flush: how Megatron calls its transfers");
  }

  Maybe read_fact(const Word& word, RankFacts& facts) {
    const std::string_view what = word.text;
    const auto twice = [&](bool stated) -> Maybe {
      if (!stated) return std::nullopt;
      return malformed(word.span, fmt::format("`{}` is stated a second time", what));
    };
    if (what == "chunks") {
      if (auto refusal = twice(facts.chunks.has_value())) return refusal;
      std::int32_t count = 0;
      if (auto refusal = read_count(count, what, limits_.counts, "--max-count", 0)) return refusal;
      facts.chunks = count;
      return end_of_statement();
    }
    if (what == "layers") {
      if (auto refusal = twice(facts.layers.has_value())) return refusal;
      return read_layers(facts.layers.emplace());
    }
    if (what == "delayed") {
      if (auto refusal = twice(facts.delayed.has_value())) return refusal;
      return read_chunk_ids(facts.delayed.emplace(), what);
    }
    if (what == "mixed") {
      if (auto refusal = twice(facts.mixed.has_value())) return refusal;
      return read_chunk_ids(facts.mixed.emplace(), what);
    }
    if (what == "stages") {
      if (auto refusal = twice(facts.stages.has_value())) return refusal;
      return read_stages(facts.stages.emplace());
    }
    if (what == "model-chunks") {
      if (auto refusal = twice(facts.model_chunks.has_value())) return refusal;
      return read_model_chunks(facts.model_chunks.emplace());
    }
    if (read_action_token(what) || read_reset_token(what) || what == "(") {
      return malformed(
          word.span, fmt::format("{} is an action, and a colon is missing before it", shown(what)),
          "write `rank 0: F1 B1`");
    }
    const std::string_view close = nearest(what, kStatements);
    return malformed(
        word.span, fmt::format("{} is no statement of the order language", shown(what)),
        close.empty() ? "docs/language.md lists them" : fmt::format("did you mean `{}`?", close));
  }

  // `layers 2` is one count for all chunks; `layers 1,2` and `layers [2]` list them; `layers none`
  // is Python's None.
  Maybe read_layers(Layers& layers) {
    layers.form = Layers::Form::Count;
    bool closed = false;
    while (const auto word = next_word()) {
      if (word->text == "none" && layers.values.empty() && layers.form == Layers::Form::Count) {
        layers.form = Layers::Form::Null;
        return end_of_statement();
      }
      Word number = *word;
      const bool opens = number.text.starts_with('[');
      if (closed || (opens && (layers.form == Layers::Form::List || !layers.values.empty()))) {
        return malformed(word->span,
                         fmt::format("unexpected {} among the layers", shown(word->text)));
      }
      if (opens) {
        layers.form = Layers::Form::List;
        bracket_ = number.span;
        cut(number, 1, 0);
      }
      if (number.text.ends_with(']') && layers.form == Layers::Form::List) {
        closed = true;
        cut(number, 0, 1);
      }
      if (number.text.empty()) continue;
      std::int32_t value = 0;
      if (auto refusal = read_count(value, number, "layers", limits_.counts, "--max-count", 0)) {
        return refusal;
      }
      layers.values.push_back(value);
    }
    if (layers.form == Layers::Form::List && !closed) {
      return malformed(bracket_, "this bracket is never closed", "close it with `]`");
    }
    if (layers.values.empty()) return malformed(statement_.span, "`layers` needs a number");
    if (layers.values.size() > 1) layers.form = Layers::Form::List;
    return std::nullopt;
  }

  static void cut(Word& word, std::uint32_t front, std::uint32_t back) {
    word.text = word.text.substr(front, word.text.size() - front - back);
    word.span = {.offset = word.span.offset + front, .length = word.span.length - front - back};
  }

  Maybe read_chunk_ids(std::vector<ChunkMention>& ids, std::string_view what) {
    std::size_t words = 0;
    while (const auto word = next_word()) {
      ++words;
      if (word->text == "none" || word->text == "all") {
        if (words > 1) {
          return malformed(word->span, fmt::format("{} stands alone", shown(word->text)));
        }
        if (word->text == "all") ids.push_back({.span = word->span});
        return end_of_statement();
      }
      std::int32_t id = 0;
      if (auto refusal = read_count(id, *word, what, limits_.counts, "--max-count", 1))
        return refusal;
      ids.push_back({.chunk = id, .span = word->span});
    }
    if (words == 0) {
      return malformed(statement_.span,
                       fmt::format("`{}` needs chunk numbers, `all` or `none`", what));
    }
    return std::nullopt;
  }

  Maybe read_stages(std::vector<std::int32_t>& stages) {
    while (const auto word = next_word()) {
      std::int32_t stage = 0;
      if (auto refusal = read_count(stage, *word, "stages", limits_.counts, "--max-count", 0))
        return refusal;
      stages.push_back(stage);
    }
    return std::nullopt;
  }

  Maybe read_model_chunks(std::vector<std::int32_t>& layers) {
    while (const auto word = next_word()) {
      std::int32_t count = 0;
      if (auto refusal =
              read_count(count, *word, "model-chunks", limits_.counts, "--max-count", 1)) {
        return refusal;
      }
      layers.push_back(count);
    }
    if (!layers.empty()) return std::nullopt;
    return malformed(statement_.span, "`model-chunks` needs the number of layers of each chunk");
  }

  struct RankText {
    Span where;  // the rank's first statement, at which faults of the whole rank are reported
    RankFacts facts;
    std::optional<ReadOrder> order;
    std::optional<ReadOrder> replay;
  };

  Maybe read_rank() {
    std::int32_t rank = 0;
    if (auto refusal = read_count(rank, "rank", 0x7fffffff, "--max-ranks", 0)) return refusal;
    if (static_cast<std::uint64_t>(rank) >= limits_.ranks) {
      return over_limit(number_,
                        fmt::format("rank {} is beyond the limit of {} ranks", rank, limits_.ranks),
                        "--max-ranks");
    }
    if (texts_.size() <= RankId(rank).index()) {
      texts_.resize(RankId(rank).index() + 1);
    }
    RankText& text = texts_[RankId(rank).index()];
    if (text.where == Span{}) text.where = statement_.span;
    const auto word = next_word();
    if (!word) {
      return malformed(statement_.span, "`rank` needs an order or a fact",
                       "write `rank 0: F1 B1` or `rank 0 layers 2`");
    }
    if (word->text == ":") {
      if (text.order)
        return malformed(statement_.span, fmt::format("rank {} has an order already", rank));
      return read_order(text.order.emplace());
    }
    if (word->text == "replay") {
      const auto colon = next_word();
      if (!colon || colon->text != ":") {
        return malformed(word->span, "`replay` is followed by a colon and an order");
      }
      if (text.replay) {
        return malformed(statement_.span, fmt::format("rank {} has a replay order already", rank));
      }
      return read_order(text.replay.emplace());
    }
    return read_fact(*word, text.facts);
  }

  Maybe read_order(ReadOrder& order) {
    std::optional<Span> open;
    bool first_of_group = false;
    while (const auto word = next_word()) {
      if (word->text == "(") {
        if (open) return malformed(word->span, "a composite inside a composite");
        open = word->span;
        first_of_group = true;
        continue;
      }
      if (word->text == ")") {
        if (!open || first_of_group) return malformed(word->span, "nothing to close here");
        open.reset();
        continue;
      }
      const Group group = !open ? Group::Alone : first_of_group ? Group::Opens : Group::Continues;
      first_of_group = false;
      if (auto refusal = builder_.add_token(order, word->text, word->span, group)) return refusal;
    }
    if (open) return malformed(*open, "this composite is never closed", "close it with `)`");
    return std::nullopt;
  }

  Read<Schedule> finish() {
    if (texts_.empty()) {
      return malformed(span_of(0, text_.size()), "the file has no rank", "add `rank 0: F1 B1`");
    }
    if (ranks_ && as_index(*ranks_) != texts_.size()) {
      return malformed(texts_.back().where,
                       fmt::format("`ranks {}` is stated, and the last rank given is {}", *ranks_,
                                   texts_.size() - 1));
    }
    builder_.schedule().microbatches = microbatches_;
    builder_.schedule().stages = stages_;
    for (std::size_t r = 0; r < texts_.size(); ++r) {
      RankText& text = texts_[r];
      if (!text.order) {
        const Span where = text.where == Span{} ? texts_.back().where : text.where;
        return malformed(where, fmt::format("rank {} has no order", r),
                         fmt::format("add `rank {}: ...`; an empty order is allowed", r));
      }
      if (auto refusal = builder_.add_rank(text.where, std::move(text.facts), shared_,
                                           std::move(*text.order), std::move(text.replay))) {
        return std::move(*refusal);
      }
    }
    return std::move(builder_).finish();
  }

  std::string_view text_;
  const Limits& limits_;
  std::size_t at_ = 0;
  Word statement_{};
  Span bracket_;
  Span number_;  // the single number that was read last
  bool versioned_ = false;
  bool placed_ = false;
  std::optional<std::int32_t> ranks_;
  std::optional<std::int32_t> microbatches_;
  std::optional<std::int32_t> stages_;
  RankFacts shared_;
  std::vector<RankText> texts_;
  ScheduleBuilder builder_;
};

}  // namespace

bool looks_like_order_file(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (is_blank(text[at]) || text[at] == '#')) {
    at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
  }
  return text.substr(at).starts_with("capo");
}

Read<Schedule> read_order_file(std::string_view text, const Limits& limits) {
  if (auto refusal = refuse_bytes(text, limits)) return std::move(*refusal);
  return Reader(text, limits).read();
}

}  // namespace capo
