#include "core/model/environment.h"

#include "core/base/assert.h"
#include "core/base/index.h"

#include <fmt/format.h>

#include <array>
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

Environment environment_of(const Schedule& schedule, const Environment& declared) {
  Environment environment = declared;
  if (!environment.p2p) environment.p2p = schedule.p2p;
  return environment;
}

std::optional<std::string> misfit_of_amax_group(const Environment& environment, std::size_t ranks) {
  const std::vector<std::int32_t>& group = environment.amax_group;
  if (group.empty() || RankId(group.back()).index() < ranks) return std::nullopt;
  return fmt::format("`amax_group` has rank {}, but the input has ranks 0 to {}", group.back(),
                     ranks - 1);
}

}  // namespace capo
