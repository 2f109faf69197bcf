#include "core/model/environment.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <limits>

namespace capo {

namespace {

constexpr std::array<std::string_view, 5> kCommunicators{"per-rank", "per-pair", "per-edge",
                                                         "per-direction", "lazy-hybrid"};
constexpr std::array<std::string_view, 2> kCommInits{"eager", "lazy"};
constexpr std::array<std::string_view, 2> kTransferModes{"rendezvous", "buffered"};

// The names stand in the order of the enumerators.
template <typename Value, std::size_t kSize>
std::optional<Value> named(const std::array<std::string_view, kSize>& names,
                           std::string_view word) {
  for (std::size_t i = 0; i < kSize; ++i) {
    if (names[i] == word) return static_cast<Value>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Communicators communicators) {
  return kCommunicators[as_index(communicators)];
}
std::string_view name_of(Architecture architecture) {
  return architecture == Architecture::Hopper ? "hopper" : "blackwell";
}

std::string_view name_of(CommInit init) {
  return kCommInits[as_index(init)];
}
std::string_view name_of(TransferMode mode) {
  return kTransferModes[as_index(mode)];
}

std::optional<Communicators> communicators_named(std::string_view word) {
  return named<Communicators>(kCommunicators, word);
}
std::optional<TransferMode> transfer_mode_named(std::string_view word) {
  return named<TransferMode>(kTransferModes, word);
}

std::uint64_t Environment::held() const {
  if (!buffered()) return 0;
  if (!channel_bytes) return std::numeric_limits<std::uint64_t>::max();
  CAPO_ASSERT(message_bytes && *message_bytes > 0, "what a channel holds is in messages of a size");
  return static_cast<std::uint64_t>(*channel_bytes / *message_bytes);
}

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

Environment environment_of(const Schedule& schedule, const Environment& declared) {
  Environment environment = declared;
  if (!environment.p2p) environment.p2p = schedule.p2p;
  return environment;
}

}  // namespace capo
