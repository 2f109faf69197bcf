#include "core/text/stated_transfers.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <system_error>

namespace capo {

std::string transfers_text(const Environment& environment) {
  if (!environment.buffered()) return std::string(name_of(TransferMode::Rendezvous));
  const std::string_view mode = name_of(TransferMode::Buffered);
  return environment.channel_bytes ? fmt::format("{}:{}", mode, *environment.channel_bytes)
                                   : std::string(mode);
}

std::optional<StatedTransfers> transfers_stated(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto mode = transfer_mode_named(text.substr(0, colon));
  if (!mode || colon == std::string_view::npos) {
    return mode ? std::optional(StatedTransfers{.mode = *mode}) : std::nullopt;
  }
  const std::string_view digits = text.substr(colon + 1);
  std::int64_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (*mode != TransferMode::Buffered || !whole || bytes < 0) return std::nullopt;
  return StatedTransfers{.mode = *mode, .channel_bytes = bytes};
}

}  // namespace capo
