// The environment says how ranks talk to each other; a verdict across ranks is relative to it.
//
// capo guesses none of it. An undeclared member takes its strictest value, since an order that
// finishes with one communicator per rank and with sends that wait finishes with every other; the
// report says what was assumed, and a deadlock says under which other layout there is none.
//
//   {"communicators": "per-pair", "transfers": "buffered"}
//
// It says nothing of modules or memory (model.h, plan_options.h). Tested by environment_test.cpp.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace capo {

/// The transfers that share a communicator queue up, one behind the other.
enum class Communicators : std::uint8_t {
  PerRank,  ///< one for all transfers of a rank, as NCCL has if a group was made with a device
  PerPair,  ///< one for each two ranks, as NCCL makes them lazily
  PerEdge,  ///< one for each two ranks and direction
};

enum class TransferMode : std::uint8_t {
  Rendezvous,  ///< a send ends when its receive ends
  Buffered,    ///< a send ends by itself
};

/// How Megatron-LM calls its point-to-point transfers around each step.
enum class MegatronCalls : std::uint8_t {
  Batch,    ///< each step ends with one fused group, which the rank waits for at once
  Overlap,  ///< in the steady state operations are single, and a receive is one step ahead
  Flush,    ///< in warm-up and cool-down they are so too
};

/// Megatron's EP overlap has up to thirteen slots (ep_overlap.h); these flags choose some of them.
struct EpOverlap {
  bool multi_token_prediction = false;  ///< slots 1 and 12 exist
  bool early_release = false;           ///< slot 8 stands in for slot 11
  bool delayed_weights = false;         ///< slots 6 and 13 exist

  friend bool operator==(const EpOverlap&, const EpOverlap&) = default;
};

struct Environment {
  std::optional<Communicators> communicators;
  std::optional<TransferMode> transfers;
  /// nullopt: transfers stand where the order writes them, or where PyTorch would add them.
  std::optional<MegatronCalls> p2p;
  bool ep_overlap = false;  ///< Megatron runs forward and backward of a step as one
  EpOverlap ep_slots;       ///< read only if ep_overlap is set
  /// Weight gradients run on a stream of their own, each after the work launched before it, and
  /// only reductions wait for them.
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
