// What a verdict across ranks is relative to: how ranks talk to each other.
//
// Nothing here is guessed. What is not declared takes the strictest value, since an order that
// finishes with one communicator per rank and with sends that wait finishes with every other; the
// report says what was assumed, and a deadlock says under which other layout there is none.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace capo {

/// Which transfers of a rank queue up behind each other.
enum class Communicators : std::uint8_t {
  PerRank,  ///< all of a rank: NCCL where the group was made with a device
  PerPair,  ///< those between the same two ranks: NCCL's lazily made communicators
  PerEdge,  ///< those from one rank to another, each direction by itself
};

enum class TransferMode : std::uint8_t {
  Rendezvous,  ///< a send ends when its receive does
  Buffered,    ///< a send ends by itself
};

/// How Megatron-LM calls its point-to-point transfers around each step.
enum class MegatronCalls : std::uint8_t {
  Batch,    ///< one fused group after each step, waited for at once
  Overlap,  ///< single operations, the receive one step ahead
  Flush,    ///< the same in warm-up and cool-down as well
};

/// Which of the thirteen slots of Megatron's EP overlap there are (ep_overlap.h).
struct EpOverlap {
  bool multi_token_prediction = false;  ///< slots 1 and 12
  bool early_release = false;           ///< slot 8 instead of 11
  bool delayed_weights = false;         ///< slots 6 and 13

  friend bool operator==(const EpOverlap&, const EpOverlap&) = default;
};

struct Environment {
  std::optional<Communicators> communicators;
  std::optional<TransferMode> transfers;
  std::optional<MegatronCalls>
      p2p;                  ///< nothing: as the order writes them, else as PyTorch adds them
  bool ep_overlap = false;  ///< Megatron runs forward and backward of a step as one
  EpOverlap ep_slots;       ///< looked at only then
  /// Weight gradients run on a stream of their own, each behind what was launched before it;
  /// nothing but a reduction waits for them.
  bool weight_stream = false;

  [[nodiscard]] Communicators layout() const {
    return communicators.value_or(Communicators::PerRank);
  }
  [[nodiscard]] bool buffered() const {
    return transfers.value_or(TransferMode::Rendezvous) == TransferMode::Buffered;
  }

  friend bool operator==(const Environment&, const Environment&) = default;
};

/// "per-rank", "per-pair", "per-edge".
[[nodiscard]] std::string_view name_of(Communicators communicators);
/// "rendezvous", "buffered".
[[nodiscard]] std::string_view name_of(TransferMode mode);
/// "batch", "overlap", "flush".
[[nodiscard]] std::string_view name_of(MegatronCalls calls);

[[nodiscard]] std::optional<Communicators> communicators_named(std::string_view word);
[[nodiscard]] std::optional<TransferMode> transfer_mode_named(std::string_view word);
[[nodiscard]] std::optional<MegatronCalls> megatron_calls_named(std::string_view word);

}  // namespace capo
