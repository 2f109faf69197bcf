// A course made into what a driver launches: ops in an order in which they can be launched one by
// one, and for each the ops of other streams that it waits for.
//
//   rank 0, stream 0:  F1.0 ------> F1.1 ...         an op is a vertex of the task graph: a piece
//   of rank 0, p2p:           \-> deliver F1.0          work, a composite of several, one end of a
//   rank 1, stream 2:                 \-> F1.0       transfer, an exchange, or nothing
//
// A transfer is a copy from the buffer that is sent to a landing place of the rank that receives.
// It is made by whichever of its two ends is launched first, where both sides have arrived, and the
// other end waits for it. Landing places are no buffers of the plan, which does not model them.
//
// An exchange permutes rows: what a chain of dispatch and combine sends to experts and gets back.
// The experts themselves are not in it; see docs/run.md.
//
// Two that add to one gradient on different streams, a whole backward and a weight gradient of one
// chunk, are ordered as the rank lists them. Edges may be forced in addition, which makes one
// linear extension of the task graph out of many: the witness of a race. Each op then waits for the
// one launched before it, since an edge between the two that race leaves open when third ones run.
// Built for a captured or a replayed course alike, with or without a task graph. Tested by
// tests/run/execute/program_test.cpp and tests/run/steps/races_test.cpp.

#pragma once

#include "core/frameworks/assign.h"
#include "core/plan/buffers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

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
  std::vector<std::uint32_t> first_;  // of each rank, and of none
  std::int32_t microbatches_;
};

enum class Way : std::uint8_t { Forward, Backward };

/// Where a work's first layer finds its input, or its incoming gradient.
struct Origin {
  enum class Kind : std::uint8_t {
    Given,      ///< by the step: `id` is the cell
    Buffer,     ///< of the plan: `id`
    Landing,    ///< of the cell `id`, where a transfer put it
    Exchanged,  ///< back from the exchange `id`
    Permuted,   ///< still in it
  };
  Kind kind = Kind::Given;
  std::uint32_t id = 0;

  friend bool operator==(const Origin&, const Origin&) = default;
};

/// A chain of dispatches and combines, of one layer, microbatch and way.
struct Exchange {
  std::uint32_t cell = 0;
  std::int32_t layer = 0;
  Way way = Way::Forward;
  bool behind = false;  ///< the layer, whose output it permutes; else what the layer reads
};

struct Act {
  enum class Kind : std::uint8_t {
    Work,     ///< `work`, reading from `origin`
    Deliver,  ///< the buffer `from` to the landing place of the cell `to`
    Permute,  ///< from `origin` into the exchange `to`
    Return,   ///< the exchange `to` back into the buffer `from`; if that is none, where its reader
              ///< looks for it
    Collect,  ///< the grad input `from` to what the step gives out, at the cell `to`
  };
  Kind kind = Kind::Work;
  Way way = Way::Forward;
  std::int32_t rank = 0;
  Work work;
  Origin origin;
  BufferId from = kNoBuffer;
  std::uint32_t to = 0;
  std::uint32_t other_end = 0;  ///< of a Deliver: the op that is the transfer's other end
};

struct Op {
  std::uint32_t stream = 0;
  std::uint32_t first_act = 0;  ///< of Program::acts
  std::uint32_t end_act = 0;
};

struct Program {
  std::vector<Op> ops;
  std::vector<Act> acts;
  /// By op: those of other streams, launched before it, that it waits for.
  std::vector<std::vector<std::uint32_t>> waits;
  std::vector<std::int32_t> rank_of_stream;
  std::vector<Exchange> exchanges;
};

/// Launched before the other, by what both are: the writer and the reader of a race.
using Forced = std::pair<Site, Site>;

/// Nothing if the forced edges close a circle.
[[nodiscard]] std::optional<Program> program_of(const BufferTable& table, const Course& course,
                                                const std::vector<Forced>& forced = {});

}  // namespace capo::run
