// Costs say how long each task takes: by kind, and more closely by rank, chunk, layer or link.
//
//   f=12,b=13,w=9,comm=1        every forward 12, every input-gradient half 13, ...
//   r0:f=14                     but forwards of rank 0 take 14
//   c2.l1:w=3                   and the weight gradients of layer 1 of every chunk 2 take 3
//   r0-r1:comm=2,bw=100         the link between ranks 0 and 1, in both directions
//   r0>r1:comm=3                and from rank 0 to rank 1
//
// Units are the user's own, one for times and one for bytes; a model file states microseconds and
// bytes. Times of f, b, w, dispatch and combine are those of one microbatch in one chunk, or on one
// rank, as papers have them. Of a rank, each of the v chunks that a microbatch passes there takes
// 1/v: ZB-V with f=12 has forwards of 6, and both cost what a forward of 1F1B costs. A setting that
// names a chunk or a layer is about that alone and divided by nothing, and so are a model file's
// times, all of links, `unshard`, `reshard` and `reduce`, which are of a chunk, and `experts`,
// `fuse`, `beside`, `rest` and `pace`, which are shares of these times and no times.
//
// A chunk that recomputes runs its forward again when its input half begins, alone or in a whole
// backward, which takes longer by `re`: unless that is said, what its forward takes. Exchanges that
// are part of the forward are made again as well.
//
// If a chunk is taken apart into n layers, each takes an nth of it, unless a setting is about that
// layer or a model file states what its module takes. A whole backward takes b + w, unless a model
// file states what it takes as one. If a computation is not taken apart into its exchanges, these
// are part of it: a forward takes f + dispatch + combine. Later settings win over earlier ones, and
// all over the model file.
//
// Quantization takes a part of a forward and of an input half (`quantize_forward`); a setting that
// says f or b anew leaves open how much that is.
//
// Nothing here knows an order; durations.h applies costs to a task graph. Tested by costs_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/model/model.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

/// Times of the tasks of one microbatch in a chunk or layer.
struct TaskCosts {
  double forward = 1;
  double backward = 1;  ///< the input-gradient half
  double weight = 1;
  double dispatch = 0;
  double combine = 0;
  double autograd = 0;       ///< adding dummy gradients, of input halves under plan te
  double more_of_whole = 0;  ///< a whole backward takes more than its halves, or less if negative
  double fuse = 1;           ///< the share of w that each further weight gradient of one call takes
  double beside = 1;         ///< two tasks on one device take this share of one after the other
  double rest = 0;           ///< on a device that idles, computations take so much less at most
  double pace = 1;           ///< computations of the rank take so many times as long as stated
  double experts =
      0.5;  ///< the share of f, b and w that experts have in a layer that is taken apart
  double unshard = 0;
  double reshard = 0;
  double reduce = 0;
  double again = 1;  ///< a forward that is run again; `backward` has it in chunks that recompute
  double quantize_forward = 0;   ///< quantization takes so much of `forward`
  double quantize_backward = 0;  ///< and so much of `backward`

  friend bool operator==(const TaskCosts&, const TaskCosts&) = default;
};

/// A backward that hands a dummy and takes so long takes so much less where there is no .grad yet:
/// a pass over memory, of the three that an addition is.
[[nodiscard]] inline double less_without_grad(const TaskCosts& costs, double takes) {
  return (costs.autograd < takes ? costs.autograd : takes) / 3;
}

struct LinkCosts {
  double latency = 0;
  std::optional<double> bandwidth;  ///< bytes in a unit of time; nullopt: infinite
  double bytes = 0;                 ///< of a message

  [[nodiscard]] double occupied() const { return bandwidth ? bytes / *bandwidth : 0; }
  [[nodiscard]] double total() const { return latency + occupied(); }

  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

/// Which tasks a setting is about; -1 means all.
struct CostScope {
  std::int32_t rank = -1;
  std::int32_t chunk = -1;  ///< from 1
  std::int32_t layer = -1;  ///< from 0
  std::int32_t peer = -1;   ///< of a link from `rank` to this rank; tasks have none
  bool both_ways = false;   ///< the link's other direction is meant as well

  [[nodiscard]] bool everything() const { return *this == CostScope{}; }
  friend bool operator==(const CostScope&, const CostScope&) = default;
};

/// The chunks that keep a part of what a microbatch takes there until its backward begins
/// (MemoryChange::keep), and make the rest again by running the forward again.
struct Recomputed {
  /// Ranks, chunks or both; one that names neither means all chunks.
  std::vector<CostScope> scopes;

  [[nodiscard]] bool any() const { return !scopes.empty(); }
  [[nodiscard]] bool has(std::int32_t rank, std::int32_t chunk) const;

  friend bool operator==(const Recomputed&, const Recomputed&) = default;
};

/// "all", or a list such as "r0c1,r2,c2" of chunks, of ranks with all their chunks, and of chunks
/// on every rank. The error says what is wrong.
[[nodiscard]] Result<Recomputed, std::string> read_recomputed(std::string_view text);
/// The text that is read as the same; empty if nothing is recomputed.
[[nodiscard]] std::string to_text(const Recomputed& recomputed);

/// A time without a chunk in its scope is that of a chunk, or of a rank, whose chunks share it.
enum class CostPer : std::uint8_t { Chunk, Rank };

/// "chunk", "rank".
[[nodiscard]] std::string_view name_of(CostPer per);

/// One number for one key within a scope.
struct CostSetting {
  enum class Key : std::uint8_t {
    Forward,
    Backward,
    Weight,
    Dispatch,
    Combine,
    Fuse,
    Beside,
    Rest,
    Pace,
    Experts,
    Unshard,
    Reshard,
    Reduce,
    Again,
    Latency,
    Bandwidth,
    Bytes,
    Overlap,
    Slowdown,
    Crowded,
    Ahead,
  };

  CostScope scope;
  Key key = Key::Forward;
  double value = 0;

  friend bool operator==(const CostSetting&, const CostSetting&) = default;
};

struct Costs {
  ModuleTable modules;  ///< modules with the times of a model file; empty: it states none
  LinkCosts link;       ///< of every link for which no setting says otherwise
  std::vector<CostSetting> settings;  ///< in the order in which they were made
  Recomputed recomputed;
  bool halves_hand_dummies = false;  ///< plan te: an input half takes `autograd` as well
  bool in_microseconds = false;  ///< a model file states times; else their unit is the user's own
  /// A composite takes this share of the sum of its members: 1 is one after the other.
  double overlap = 1;
  /// Computation takes this many times as long while its device also communicates.
  double slowdown = 1;
  /// A message takes this many times as long for each of its two ranks whose device computes
  /// meanwhile, except over ideal links.
  double crowded = 1;
  /// So many bytes of a message move before its receive is there, if it waits for one.
  double ahead = 0;
  std::vector<std::int32_t> devices;  ///< by rank; empty: each rank has one of its own
  std::vector<double> paces;          ///< of devices, by rank, as a model file states them
  CostPer per = CostPer::Chunk;
  /// The part of a rank's times that one of its chunks takes, by rank. A simulation fills it in
  /// under CostPer::Rank, since only an order says how many chunks there are; empty: all of it.
  std::vector<double> shares;
  /// All tasks of a kind and chunk take as long, however long devices rest and whichever is the
  /// first: orders are searched for these.
  bool alike = false;
  /// The part of the step in which the device of a rank computes, by rank. A simulation fills it
  /// in; empty: all of it.
  std::vector<double> used;

  void set(const CostSetting& setting);

  /// The part that one of a rank's chunks takes of a time that names no chunk.
  [[nodiscard]] double share_of(std::int32_t rank) const;
  /// The costs of one of the `layers` layers of a chunk.
  [[nodiscard]] TaskCosts of_layer(std::int32_t rank, std::int32_t chunk, std::int32_t layer,
                                   std::int32_t layers) const;
  /// The costs of a whole chunk: the sum of its layers.
  [[nodiscard]] TaskCosts of_chunk(std::int32_t rank, std::int32_t chunk,
                                   std::int32_t layers) const;
  [[nodiscard]] LinkCosts between(std::int32_t from, std::int32_t to) const;
  /// Whether any module says what quantization takes.
  [[nodiscard]] bool tell_quantization() const;
  /// Whether a task may take less on a device that rests a part of the step.
  [[nodiscard]] bool tell_rest() const;
  /// Whether all chunks of all ranks are declared alike, and all links. They are not where `used`
  /// is told, and where any recompute.
  [[nodiscard]] bool uniform() const;
};

/// "f=12,b=13,comm=1", optionally behind a scope and a colon. The error says what is wrong.
[[nodiscard]] Result<std::vector<CostSetting>, std::string> read_costs(std::string_view text);

/// The times that a model file states. The error names a module that lacks one while it or another
/// states some: a time that is left out is undeclared, and not zero. `autograd` may be left out.
[[nodiscard]] Result<Costs, std::string> costs_of(const Model& model);

}  // namespace capo
