// The schedule: the order of actions of every rank. It is the one value that all readers make, all
// rules judge and all writers print.
//
//   rank 0:  F1.0 F1.1 B1.0 W1.0 B1.1 W1.1        F of chunk 1, microbatch 0; ...
//
// A chunk is a part of the model that one rank holds, numbered from 1 per rank; a microbatch is
// counted from 0. An order names its microbatches (PyTorch) or leaves them to be counted (a TE
// list: the k-th entry of a kind for a chunk is microbatch k); either way every entry here carries
// one.
//
// A schedule may be wrong in every way that the rules of shape know; it cannot be malformed: ids
// are in range, and every entry knows the bytes it was read from. Entries are 16 bytes each, since
// ten million of them are an ordinary input.

#pragma once

#include "core/diag/span.h"
#include "core/order/ids.h"
#include "core/order/layers.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capo {

enum class Kind : std::uint8_t {
  Forward,
  Backward,        ///< the input-gradient half if the chunk always delays its W, else the whole
  BackwardInput,   ///< I: the input-gradient half, in a chunk that splits only some microbatches
  BackwardWeight,  ///< W: the weight-gradient half
  SendForward,     ///< an activation leaves for the next stage
  ReceiveForward,
  SendBackward,  ///< a gradient leaves for the previous stage
  ReceiveBackward,
  DispatchForward,  ///< tokens leave for the ranks of their experts
  CombineForward,   ///< the experts' results come back
  DispatchBackward,
  CombineBackward,
  /// The rank goes on once its send of this chunk and microbatch is over, and its memory is free.
  WaitSendForward,
  WaitSendBackward,
  Unshard,  ///< gathers a stage's parameters; it has no microbatch, as the next three
  Reshard,
  ReduceGradient,
  WaitReduceGradient,  ///< the rank goes on once the reduction of this chunk is over
  Idle,                ///< an empty slot of a table; no chunk
};

[[nodiscard]] constexpr bool has_microbatch(Kind kind) {
  return kind <= Kind::WaitSendBackward;
}
[[nodiscard]] constexpr bool is_compute(Kind kind) {
  return kind <= Kind::BackwardWeight;
}
[[nodiscard]] constexpr bool is_send(Kind kind) {
  return kind == Kind::SendForward || kind == Kind::SendBackward;
}
[[nodiscard]] constexpr bool is_receive(Kind kind) {
  return kind == Kind::ReceiveForward || kind == Kind::ReceiveBackward;
}
[[nodiscard]] constexpr bool is_transfer(Kind kind) {
  return is_send(kind) || is_receive(kind);
}
/// Whether a transfer takes a gradient to the stage before; else it takes an activation on.
[[nodiscard]] constexpr bool carries_gradient(Kind transfer) {
  return transfer == Kind::SendBackward || transfer == Kind::ReceiveBackward;
}
/// Whether the kind is a dispatch or combine, which moves tokens between the ranks that share a
/// layer's experts.
[[nodiscard]] constexpr bool is_exchange(Kind kind) {
  return kind >= Kind::DispatchForward && kind <= Kind::CombineBackward;
}
[[nodiscard]] constexpr bool is_send_wait(Kind kind) {
  return kind == Kind::WaitSendForward || kind == Kind::WaitSendBackward;
}
/// Whether the rank does nothing but wait, on the stream of its computations.
[[nodiscard]] constexpr bool is_wait(Kind kind) {
  return is_send_wait(kind) || kind == Kind::WaitReduceGradient;
}
[[nodiscard]] constexpr bool is_forward_exchange(Kind kind) {
  return kind == Kind::DispatchForward || kind == Kind::CombineForward;
}

/// Whether an entry runs together with its neighbours (PyTorch's OVERLAP_F_B).
enum class Group : std::uint8_t {
  Alone,
  Opens,      ///< the first of a composite
  Continues,  ///< belongs to the composite that the entry before belongs to
};

struct Action {
  Kind kind = Kind::Idle;
  ChunkId chunk;  ///< 0 for Idle
  MicrobatchId microbatch = kNoMicrobatch;

  friend auto operator<=>(const Action&, const Action&) = default;
};

struct Entry {
  ChunkId chunk;
  MicrobatchId microbatch = kNoMicrobatch;
  std::uint32_t offset = 0;
  std::uint16_t length = 0;  ///< in bytes, cut at 65535
  Kind kind = Kind::Idle;
  Group group = Group::Alone;

  [[nodiscard]] Action action() const {
    return {.kind = kind, .chunk = chunk, .microbatch = microbatch};
  }
  [[nodiscard]] Span span() const { return {.offset = offset, .length = length}; }
};

/// Whether the weight gradient of a chunk is an action of its own.
enum class Delay : std::uint8_t {
  Never,   ///< every backward is whole; a W is a mistake
  Always,  ///< every backward is the input half and has its W
  Mixed,   ///< each microbatch is either a whole B or an I and a W
};

/// How a rank's chunks follow each other. Rules about stages exist only under a declared topology.
enum class Topology : std::uint8_t {
  Independent,  ///< chunks are not wired to each other: a bare TE list
  Chain,        ///< stages in a row, rank by rank: with V chunks a rank, stage r*V + c - 1
  Loop,         ///< stage s on rank s mod P
  V,            ///< stages 0..P-1 downwards, then P-1..0 back
  /// Two pipelines have weights of their own and each all microbatches of the step: odd chunks loop
  /// down the ranks, even ones up. The stages of the second come behind those of the first.
  Bidirectional,
  Custom,  ///< RankOrder::stages are listed, not computed
};

/// "independent", "chain", "loop", "v", "bidirectional", "custom".
[[nodiscard]] std::string_view name_of(Topology topology);
/// nullopt if the word names no topology.
[[nodiscard]] std::optional<Topology> topology_named(std::string_view word);

/// How Megatron-LM calls its point-to-point transfers around each step.
enum class MegatronCalls : std::uint8_t {
  Batch,    ///< each step ends with one fused group, which the rank waits for at once
  Overlap,  ///< in the steady state operations are single, and a receive is one step ahead
  Flush,    ///< in warm-up and cool-down they are so too
};

/// "batch", "overlap", "flush".
[[nodiscard]] std::string_view name_of(MegatronCalls calls);
/// nullopt if the word names no way of calling.
[[nodiscard]] std::optional<MegatronCalls> megatron_calls_named(std::string_view word);

/// How microbatches are told apart in the text that the schedule was read from.
enum class Naming : std::uint8_t {
  Counted,  ///< by position: the k-th entry of a kind and chunk is microbatch k
  Named,    ///< every entry says its microbatch
};

/// A place between two replays where a rank lets go of graphs for good, as TransformerEngine's
/// reset() does: with the graphs goes the memory that they own.
///
/// A reset is no action: no stream runs it, and nothing waits for it. It says until when entries of
/// the order can be replayed, which rules of their own look at.
struct Reset {
  static constexpr ChunkId kAllChunks = 0;

  ChunkId chunk = kAllChunks;
  MicrobatchId microbatch = kNoMicrobatch;  ///< kNoMicrobatch: all of the chunk
  std::uint32_t behind = 0;                 ///< as many replayed entries stand in front of it
  Span span;
};

/// The chunks that one rank holds, and its order of actions.
struct RankOrder {
  std::vector<Entry> order;  ///< the order of capture, and of replay too unless `replay` is set
  std::optional<std::vector<Entry>> replay;  ///< nullopt: replay runs in the order of capture
  std::int32_t chunks = 0;                   ///< as declared, otherwise the largest id in the order
  bool chunks_declared = false;
  /// The last so many chunks run on this rank although a table places them elsewhere.
  std::int32_t strays = 0;
  Layers layers;
  std::optional<std::vector<Delay>> delay;  ///< per chunk; nullopt: the entries show it
  std::vector<std::int32_t> stages;         ///< the stage of each chunk; unused under Independent
  /// If every chunk of the order is one layer, so many of them make each chunk of the model,
  /// between which there are no transfers. Empty: chunks of the order are the model's.
  std::vector<std::int32_t> model_chunks;
  std::vector<Reset> resets;  ///< between the entries of replayed(), ascending

  [[nodiscard]] const std::vector<Entry>& replayed() const { return replay ? *replay : order; }
};

struct Schedule {
  Naming naming = Naming::Counted;
  Topology topology = Topology::Independent;
  std::optional<std::int32_t> microbatches;  ///< nullopt: not declared
  std::optional<std::int32_t>
      stages;  ///< nullopt: not declared, so the largest stage says how many
  /// The order is one of Megatron's, which calls its transfers so; nullopt: nobody says that.
  std::optional<MegatronCalls> p2p;
  /// Copies of one order that train on data of their own, one behind the other: each has as many
  /// ranks and, under Custom, as many stages as the first, and no stage is wired to another copy's.
  std::int32_t replicas = 1;
  std::vector<RankOrder> ranks;
};

/// The delay of each chunk of `rank`. A declared one holds. Otherwise a chunk with an I is Mixed,
/// one with a W and no I is Always, and one with neither is Never.
[[nodiscard]] std::vector<Delay> resolved_delay(const RankOrder& rank);

/// The number of stages of the first pipeline under Bidirectional, or of one of several replicas
/// under Custom; INT32_MAX otherwise, which is more than there can be.
[[nodiscard]] std::int32_t stages_of_first_pipeline(const Schedule& schedule);

/// Numbers the entries of a Counted order: the k-th of a kind and chunk is microbatch k. Entries of
/// chunks beyond `chunks` keep kNoMicrobatch.
void number_microbatches(std::vector<Entry>& order, std::int32_t chunks);

/// The kinds of actions that orders of capture hold.
class Kinds {
 public:
  explicit Kinds(const Schedule& schedule);

  /// Whether one of them is as asked for: any<is_transfer>().
  template <bool (*is)(Kind)>
  [[nodiscard]] bool any() const {
    constexpr std::uint32_t kAsked = [] {
      std::uint32_t bits = 0;
      for (std::uint8_t kind = 0; kind <= as_index(Kind::Idle); ++kind) {
        if (is(static_cast<Kind>(kind))) bits |= 1U << kind;
      }
      return bits;
    }();
    return (bits_ & kAsked) != 0;
  }

 private:
  std::uint32_t bits_ = 0;  // by kind
};

/// Whether any order of capture holds a dispatch or combine.
[[nodiscard]] bool has_exchanges(const Schedule& schedule);
/// Whether any order of capture holds a composite.
[[nodiscard]] bool has_composites(const Schedule& schedule);

/// The number of layers by rank and chunk, as declared; 1 if nothing is said.
[[nodiscard]] std::vector<std::vector<std::int32_t>> layer_counts(const Schedule& schedule);

/// Sets the stages that the topology gives to each rank. Custom and Independent leave them alone.
/// Precondition: the ranks know how many chunks they have.
void place_stages(Schedule& schedule);

/// Whether any rank lets go of graphs.
[[nodiscard]] bool has_resets(const Schedule& schedule);

/// Whether two schedules are equal but for the bytes that they were read from.
[[nodiscard]] bool same_meaning(const Schedule& a, const Schedule& b);

/// Whether ranks hand tensors to each other: there are several, and it is known how.
[[nodiscard]] bool ranks_communicate(const Schedule& schedule);

}  // namespace capo
