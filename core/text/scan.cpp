#include "core/text/scan.h"

#include "core/base/index.h"
#include "core/text/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace capo {

std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) return fmt::format("`{}`", c);
  return fmt::format("byte 0x{:02x}", byte);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return "`" + printable(text, kLongest) + "`";
}

std::optional<Refusal> refuse_bytes(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return over_limit({}, fmt::format("the input has more than {} bytes", limits.bytes),
                      "--max-bytes");
  }
  if (text.starts_with("\xef\xbb\xbf")) {
    return malformed(span_of(0, 3), "the input begins with a byte order mark",
                     "save it as UTF-8 without one");
  }
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return malformed(span_of(0, 2), "the input is UTF-16", "save it as UTF-8");
  }
  if (const void* nul = std::memchr(text.data(), 0, text.size()); nul != nullptr) {
    const auto at = as_index(static_cast<const char*>(nul) - text.data());
    return malformed(span_of(at, at + 1), "the input holds a NUL byte",
                     "is this the file you meant? orders are plain text");
  }
  for (std::size_t at = text.find('\r'); at != std::string_view::npos;
       at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') {
      return malformed(span_of(at, at + 1), "a carriage return that ends no line",
                       "end lines with LF or CRLF");
    }
  }
  return std::nullopt;
}

Refusal too_many_entries(Span span, const Limits& limits) {
  return over_limit(span, fmt::format("the input has more than {} entries", limits.entries),
                    "--max-entries");
}

Refusal unnamed_input(Span span) {
  return malformed(
      span, "an input gradient must name its microbatch",
      "name the microbatch of every action, `I1.0`; where a chunk splits every backward, "
      "write B and declare the chunk `delayed`");
}

std::optional<Refusal> refuse_size(const Schedule& schedule, const Limits& limits) {
  std::uint64_t chunks = 0;
  std::int32_t stage = 0;
  for (const RankOrder& rank : schedule.ranks) {
    chunks += static_cast<std::uint64_t>(rank.chunks);
    for (const std::int32_t of_chunk : rank.stages) stage = std::max(stage, of_chunk);
  }
  const bool small = chunks <= limits.counts && static_cast<std::uint64_t>(stage) <= limits.counts;
  if (small) return std::nullopt;
  return over_limit({},
                    fmt::format("the schedule has more than {} {}", limits.counts,
                                chunks > limits.counts ? "chunks" : "stages"),
                    "--max-count");
}

}  // namespace capo
