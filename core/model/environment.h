// The environment says how ranks talk to each other; a verdict across ranks is relative to it.
//
// capo guesses none of it: an order is accepted only if it holds under every value that an
// undeclared communicator layout or transfer mode can have (core/rules/undeclared.h). No single
// value is the strictest. One communicator a rank orders most, and so waits for most and races
// least; one for each two ranks and direction orders least. What is stated in a report, simulated
// or run takes the first of each. Values that a job has only if it asks for them are judged only if
// they are declared: two communicators for activations and gradients, a parent beside those of
// pairs, communicators that are made at their first use, and channels that hold a number of bytes.
//
//   {"communicators": "per-pair", "transfers": "buffered"}
//   {"transfers": "buffered:4194304", "transfer": {"bytes": 1048576}}     four messages a channel
//
// It says nothing of modules or memory (model.h, plan_options.h). Tested by environment_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// The transfers that share a communicator queue up, one behind the other.
enum class Communicators : std::uint8_t {
  PerRank,  ///< one for all transfers of a rank, as NCCL has if a group was made with a device
  PerPair,  ///< one for each two ranks, as NCCL makes them lazily
  PerEdge,  ///< one for each two ranks and direction
  /// One for all activations and one for all gradients, as PyTorch 2.14 has with
  /// pipeline_per_direction_p2p. It is not among what an undeclared layout may be.
  PerDirection,
  /// One for each two ranks, and for fused groups that hold both sends and receives one for all
  /// ranks: the parent, as PyTorch has where NCCL makes communicators lazily. A group of one
  /// direction is issued transfer by transfer. It is not among what an undeclared layout may be.
  LazyHybrid,
};

/// When a communicator is made: all its members make it together, and each waits for the others.
enum class CommInit : std::uint8_t {
  Eager,  ///< before the step, on all ranks in one order
  /// It is made where a rank first uses it, as in NCCL's process groups without a device.
  Lazy,
};

enum class TransferMode : std::uint8_t {
  Rendezvous,  ///< a send ends when its receive ends
  Buffered,    ///< a send ends by itself, as long as its channel has room
};

/// The devices of a job, as far as frameworks choose kernels by it.
enum class Architecture : std::uint8_t {
  Hopper,     ///< compute capability 9.x
  Blackwell,  ///< compute capability 10.x and 11.0
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
  /// A channel holds so many bytes if sends are buffered; nullopt: any number.
  std::optional<std::int64_t> channel_bytes;
  std::optional<std::int64_t> message_bytes;  ///< of one transfer; stated if channel_bytes is
  std::optional<CommInit> comm_init;          ///< nullopt: before the step
  /// nullopt: transfers stand where the order writes them, or where PyTorch would add them.
  std::optional<MegatronCalls> p2p;
  bool ep_overlap = false;  ///< Megatron runs forward and backward of a step as one
  EpOverlap ep_slots;       ///< read only if ep_overlap is set
  /// true: weight gradients run on a stream of their own, each after the work launched before it,
  /// and only reductions wait for them. false: they run on that of the other computations, which is
  /// also what is taken if nobody says.
  std::optional<bool> weight_stream;
  std::optional<Architecture> architecture;
  /// The version of cuBLASLt: 1304 is 13.4.
  std::optional<std::int32_t> cublaslt;
  /// Ranks that reduce the largest magnitudes of delayed scaling together, ascending; empty: none.
  std::vector<std::int32_t> amax_group;
  /// Undeclared members take the first value of each, and no other is judged.
  bool assume_defaults = false;

  [[nodiscard]] Communicators layout() const {
    return communicators.value_or(Communicators::PerRank);
  }
  [[nodiscard]] bool made_lazily() const {
    return comm_init.value_or(CommInit::Eager) == CommInit::Lazy;
  }
  [[nodiscard]] bool has_weight_stream() const { return weight_stream.value_or(false); }
  [[nodiscard]] bool buffered() const {
    return transfers.value_or(TransferMode::Rendezvous) == TransferMode::Buffered;
  }
  /// How many messages a channel holds: the send of one more waits for a receive.
  [[nodiscard]] std::uint64_t held() const;

  friend bool operator==(const Environment&, const Environment&) = default;
};

/// The environment of a schedule: an order that Megatron made says itself how its transfers are
/// called, if nothing is declared.
[[nodiscard]] Environment environment_of(const Schedule& schedule, const Environment& declared);

/// The reason why the members of `amax_group` are not of an input of so many ranks, one at least;
/// nullopt if they are.
[[nodiscard]] std::optional<std::string> misfit_of_amax_group(const Environment& environment,
                                                              std::size_t ranks);

/// "per-rank", "per-pair", "per-edge", "per-direction", "lazy-hybrid".
[[nodiscard]] std::string_view name_of(Communicators communicators);
/// "hopper", "blackwell".
[[nodiscard]] std::string_view name_of(Architecture architecture);
/// "eager", "lazy".
[[nodiscard]] std::string_view name_of(CommInit init);
/// "rendezvous", "buffered".
[[nodiscard]] std::string_view name_of(TransferMode mode);

[[nodiscard]] std::optional<Communicators> communicators_named(std::string_view word);
[[nodiscard]] std::optional<TransferMode> transfer_mode_named(std::string_view word);

}  // namespace capo
