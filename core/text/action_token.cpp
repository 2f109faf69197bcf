#include "core/text/action_token.h"

#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace capo {

namespace {

constexpr std::array<std::pair<std::string_view, Kind>, 18> kWords{{
    {"F", Kind::Forward},
    {"B", Kind::Backward},
    {"I", Kind::BackwardInput},
    {"W", Kind::BackwardWeight},
    {"send-F", Kind::SendForward},
    {"recv-F", Kind::ReceiveForward},
    {"send-B", Kind::SendBackward},
    {"recv-B", Kind::ReceiveBackward},
    {"dispatch-F", Kind::DispatchForward},
    {"combine-F", Kind::CombineForward},
    {"dispatch-B", Kind::DispatchBackward},
    {"combine-B", Kind::CombineBackward},
    {"wait-send-F", Kind::WaitSendForward},
    {"wait-send-B", Kind::WaitSendBackward},
    {"unshard", Kind::Unshard},
    {"reshard", Kind::Reshard},
    {"reduce", Kind::ReduceGradient},
    {"wait-reduce", Kind::WaitReduceGradient},
}};

constexpr std::string_view kReset = "reset";

// Reads digits without a leading zero. A number too long for 64 bits is above every limit, so it
// becomes the largest.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) {
    value = digits < 19 ? value * 10 + static_cast<std::uint64_t>(text[digits] - '0')
                        : std::numeric_limits<std::uint64_t>::max();
    ++digits;
  }
  if (digits == 0 || (digits > 1 && text.front() == '0')) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

}  // namespace

std::optional<ActionToken> read_action_token(std::string_view text) {
  if (text == ".") return ActionToken{};
  // A search for any of ten digits looks at each character ten times.
  std::size_t word_end = 0;
  while (word_end < text.size() && !is_digit(text[word_end])) ++word_end;
  const std::string_view word = text.substr(0, word_end);
  const auto row = std::find_if(kWords.begin(), kWords.end(),
                                [word](const auto& candidate) { return candidate.first == word; });
  if (row == kWords.end()) return std::nullopt;
  text.remove_prefix(word_end);

  ActionToken token{.kind = row->second};
  const auto chunk = take_number(text);
  if (!chunk) return std::nullopt;
  token.chunk = *chunk;
  if (text.empty()) return token;
  if (text.front() != '.' || !has_microbatch(token.kind)) return std::nullopt;
  text.remove_prefix(1);
  token.microbatch = take_number(text);
  if (!token.microbatch || !text.empty()) return std::nullopt;
  return token;
}

std::optional<ResetToken> read_reset_token(std::string_view text) {
  if (!text.starts_with(kReset)) return std::nullopt;
  text.remove_prefix(kReset.size());
  ResetToken token;
  if (text.empty()) return token;
  token.chunk = take_number(text);
  if (!token.chunk) return std::nullopt;
  if (text.empty()) return token;
  if (text.front() != '.') return std::nullopt;
  text.remove_prefix(1);
  token.microbatch = take_number(text);
  if (!token.microbatch || !text.empty()) return std::nullopt;
  return token;
}

std::string_view word_of(Kind kind) {
  if (kind == Kind::Idle) return ".";
  return std::find_if(kWords.begin(), kWords.end(),
                      [kind](const auto& row) { return row.second == kind; })
      ->first;
}

// Written out number by number, since large pictures name every task.
std::string to_token(const Action& action, Naming naming) {
  if (action.kind == Kind::Idle) return ".";
  std::string token(word_of(action.kind));
  token += std::to_string(std::int32_t{action.chunk});
  if (naming == Naming::Counted || action.microbatch == kNoMicrobatch) return token;
  token += '.';
  token += std::to_string(std::int32_t{action.microbatch});
  return token;
}

std::string to_token(const Reset& reset) {
  std::string token(kReset);
  if (reset.chunk == Reset::kAllChunks) return token;
  token += std::to_string(std::int32_t{reset.chunk});
  if (reset.microbatch == kNoMicrobatch) return token;
  token += '.';
  token += std::to_string(std::int32_t{reset.microbatch});
  return token;
}

std::string action_name(const Action& action) {
  if (action.kind == Kind::Idle) return "idle";
  if (!has_microbatch(action.kind))
    return fmt::format("{}(c{})", word_of(action.kind), action.chunk);
  if (action.microbatch == kNoMicrobatch) {
    return fmt::format("{}(c{},m?)", word_of(action.kind), action.chunk);
  }
  return fmt::format("{}(c{},m{})", word_of(action.kind), action.chunk, action.microbatch);
}

}  // namespace capo
