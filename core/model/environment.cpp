#include "core/model/environment.h"

#include "core/base/index.h"

#include <array>
#include <cstddef>

namespace capo {

namespace {

constexpr std::array<std::string_view, 3> kCommunicators{"per-rank", "per-pair", "per-edge"};
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
std::string_view name_of(TransferMode mode) {
  return kTransferModes[as_index(mode)];
}

std::optional<Communicators> communicators_named(std::string_view word) {
  return named<Communicators>(kCommunicators, word);
}
std::optional<TransferMode> transfer_mode_named(std::string_view word) {
  return named<TransferMode>(kTransferModes, word);
}

Environment environment_of(const Schedule& schedule, const Environment& declared) {
  Environment environment = declared;
  if (!environment.p2p) environment.p2p = schedule.p2p;
  return environment;
}

}  // namespace capo
