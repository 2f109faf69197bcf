// A course made into what a driver launches: ops in an order in which they can be launched one by
// one, and for each the ops of other streams that it waits for.
//
//   rank 0, stream 0:  F1.0 ------> F1.1 ...            an op is a vertex of the task graph: a
//   piece of rank 0, p2p:       \-> send F1.0, deliver           of work, a composite of several,
//   the begin of rank 1, p2p:   receive F1.0 -----\-> delivered      or the end of a transfer, an
//   exchange, or rank 1, stream 2:                     \-> F1.0         nothing
//
// A transfer has two ends, each of which begins and finishes on its own rank's stream. The message
// goes from the buffer that is sent to a landing place of the rank that receives; landing places
// are no buffers of the plan, which does not model them. The end that is launched first finds that
// both sides have begun, or that the send is buffered, so it delivers; the other end waits for it.
//
// Weight gradients of one chunk that stand side by side in a composite are one part, and the engine
// gets their products as one call.
//
// An exchange permutes rows: it stands for a chain of dispatch and combine, which sends rows to
// experts and gets them back. A layer that runs while its rows are out is what the experts do: it
// reads what has arrived, and what it made goes back in their place; see docs/run.md. Where several
// ranks of a group exchange together, their permuted rows cross; program_parts.h has more of it.
//
// A whole backward and a weight gradient of one chunk add to one gradient. If they run on different
// streams they are ordered as the rank lists them. Edges may be forced in addition, which makes one
// linear extension of the task graph out of many: the witness of a race. Each op then waits for the
// one launched before it, since an edge between the two that race leaves open when others run.
// A reduction is at the point where its members meet: each has begun, and none is over. A gradient
// of its chunk that a rank lists behind it is added behind it.
// A program can be built of a captured or a replayed course, with or without a task graph. Tested
// by program_test.cpp, program_laws_test.cpp, clocks_test.cpp and races_test.cpp.

#pragma once

#include "core/frameworks/assign.h"
#include "core/plan/buffers.h"
#include "run/execute/transport.h"
#include "run/setup/reductions.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo::run {

inline constexpr std::uint32_t kNoOp = 0xffffffff;

/// (rank, chunk, microbatch) as one number, and back.
class Cells {
 public:
  explicit Cells(const BufferTable& table);

  struct Cell {
    std::int32_t rank;
    std::int32_t chunk;
    std::int32_t microbatch;
  };
  [[nodiscard]] std::uint32_t of(std::int32_t rank, std::int32_t chunk,
                                 std::int32_t microbatch) const;
  [[nodiscard]] Cell at(std::uint32_t cell) const;
  [[nodiscard]] std::uint32_t count() const { return first_.back(); }

 private:
  std::vector<std::uint32_t> first_;  // by rank; one more holds the number of all cells
  std::int32_t microbatches_;
};

enum class Way : std::uint8_t { Forward, Backward };

/// The place at which a work's first layer finds its input, or its incoming gradient.
struct Origin {
  enum class Kind : std::uint8_t {
    Given,      ///< the step is given it; `id` is the cell
    Buffer,     ///< it is in the plan's buffer `id`
    Landing,    ///< a transfer put it into the landing place of the cell `id`
    Exchanged,  ///< it has come back from the exchange `id`
    Permuted,   ///< it is still permuted, in the exchange `id`
  };
  Kind kind = Kind::Given;
  std::uint32_t id = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// A chain of dispatches and combines of one layer, microbatch and way.
struct Exchange {
  /// Says which rows go out, and which come back in their places.
  enum class Rows : std::uint8_t {
    Read,     ///< those that the layer reads
    Output,   ///< those that it made, moved in place
    Experts,  ///< those that it reads go out, and those that its chunk made of the ones that had
              ///< arrived come back, into the buffer `made`
    LeavingExperts,  ///< likewise, but `made` is a grad input that leaves the step. Its buffer may
                     ///< be another's by then, so rows go back from what is collected.
  };

  std::uint32_t cell = 0;
  std::int32_t layer = 0;
  Way way = Way::Forward;
  Rows rows = Rows::Read;
  BufferId made = kNoBuffer;  ///< by experts; else kNoBuffer
  /// The exchange whose permutation of rows it has: itself, or that of the forward, by which the
  /// rows went whose gradients it takes.
  std::uint32_t route = 0;
  /// The exchanges of all ranks over which its rows are divided, itself among them, ascending by
  /// rank. Its rows stay on its rank if there is no other.
  std::vector<std::uint32_t> among;

  [[nodiscard]] bool crosses() const { return among.size() > 1; }
  [[nodiscard]] bool around_experts() const {
    return rows == Rows::Experts || rows == Rows::LeavingExperts;
  }
  /// The buffer into which experts' rows come back; kNoBuffer if there is none.
  [[nodiscard]] BufferId comes_back_into() const {
    return rows == Rows::Experts ? made : kNoBuffer;
  }
};

/// A point at which ranks of a group send each other rows of their exchanges.
struct Crossing {
  std::vector<std::int32_t> ranks;     ///< of the group, ascending
  std::vector<std::uint32_t> streams;  ///< by rank
  std::vector<std::uint32_t> out;      ///< exchanges whose rows are divided over their ranks
  std::vector<std::uint32_t> back;     ///< exchanges whose rows come back
};

/// A message between two ranks, and the ops of this program at which its ends finish.
struct Transfer {
  Channel channel;
  std::uint32_t number = 0;  ///< counts the transfers of the channel, in the order of its sends
  Way way = Way::Forward;
  BufferId from = kNoBuffer;               ///< kNoBuffer if its chunk has no layers: nothing moves
  std::uint32_t cell = 0;                  ///< the receiving one
  std::uint32_t ends[2] = {kNoOp, kNoOp};  ///< in the order of launches
};

struct OpPart {
  enum class Kind : std::uint8_t {
    Work,       ///< runs `work`, which reads from `origin`
    Send,       ///< begins to send the buffer `from`, for the transfer `to`
    Receive,    ///< begins to receive the transfer `to`
    Deliver,    ///< finishes the end of the transfer `to` that is launched first
    Delivered,  ///< finishes its other end
    Permute,    ///< permutes the rows of `origin` into the exchange `to`
    Return,     ///< brings the exchange `to` back into the buffer `from`; if that is kNoBuffer, to
                ///< where its reader looks for it, or into what is collected
    Collect,    ///< copies the grad input `from` to what the step gives out, at the cell `to`
    Reduce,     ///< sums the gradients of the reduction `to` over its ranks
    Cross,      ///< sends the rows of the crossing `to` to and fro
  };
  Kind kind = Kind::Work;
  Way way = Way::Forward;
  std::int32_t rank = 0;
  Work work;
  std::vector<Work> further;  ///< weight gradients that one call adds up with that of `work`
  Origin origin;
  BufferId from = kNoBuffer;
  std::uint32_t to = 0;
  End end = End::Send;  ///< of Deliver and Delivered: which end of the transfer finishes
};

/// Whether ranks meet at it, as one op for all of a process.
[[nodiscard]] constexpr bool meets(const OpPart& part) {
  return part.kind == OpPart::Kind::Reduce || part.kind == OpPart::Kind::Cross;
}

/// Whether an exchange is the reader of the buffer that it moves. If it moves its layer's output in
/// place, the layer's backward reads that as well.
[[nodiscard]] constexpr bool takes_from_buffer(const OpPart& part) {
  return part.kind == OpPart::Kind::Permute && part.origin.kind == Origin::Kind::Buffer;
}

/// Calls visit(work) for each piece of work of a part.
template <typename Visit>
void for_each_work(const OpPart& part, Visit visit) {
  visit(part.work);
  for (const Work& further : part.further) visit(further);
}

/// The parts from `first_part` to before `end_part`, launched on one stream.
struct Op {
  std::uint32_t stream = 0;
  std::uint32_t first_part = 0;
  std::uint32_t end_part = 0;
};

struct Program {
  std::vector<Op> ops;
  std::vector<OpPart> parts;
  /// The ops of other streams that each op waits for, all of them launched before it.
  std::vector<std::vector<std::uint32_t>> waits;
  std::vector<std::int32_t> rank_of_stream;
  std::vector<Transfer> transfers;
  std::vector<Exchange> exchanges;
  std::vector<Reduction> reductions;
  std::vector<std::vector<std::uint32_t>> reduced_on;  ///< by reduction: the stream of each rank
  std::vector<Crossing> crossings;
};

/// The first is launched before the second: the writer and the reader of a race.
using Forced = std::pair<MemoryUser, MemoryUser>;

/// The rank and what names its work.
using WorkKey = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, Kind>;

[[nodiscard]] inline WorkKey key_of(std::int32_t rank, const Work& work) {
  return {rank, work.chunk, work.microbatch, work.layer, work.kind};
}

/// The transfers of a course that has a task graph, in the order of issue; they have no ops yet.
[[nodiscard]] std::vector<Transfer> transfers_of(const BufferTable& table, const Course& course);

/// nullopt if the forced edges close a circle.
[[nodiscard]] std::optional<Program> program_of(const BufferTable& table, const Course& course,
                                                const std::vector<Forced>& forced = {});
/// Forces one edge after another, without those that would close a circle.
[[nodiscard]] Program program_forcing(const BufferTable& table, const Course& course,
                                      const std::vector<Forced>& races);

/// Which op of a program is certainly over before another begins.
///
/// There is a clock for each op: how many ops of each stream are over before it, by the order of
/// its own stream and by the ops that it waits for. It takes streams times ops of memory.
class Clocks {
 public:
  explicit Clocks(const Program& program);

  [[nodiscard]] bool before(std::uint32_t first, std::uint32_t second) const {
    return over_[second * streams_ + stream_[first]] >= position_[first];
  }

 private:
  std::size_t streams_;
  std::vector<std::uint32_t> stream_;    // by op
  std::vector<std::uint32_t> position_;  // by op: its place on its stream, counted from 1
  std::vector<std::uint32_t> over_;      // by op and stream
};

}  // namespace capo::run
