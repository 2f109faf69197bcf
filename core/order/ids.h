// The ids of a schedule, each a type of its own: a chunk is no stage, and neither is a rank.
//
//   ChunkId chunk = 1;                 // the first chunk of a rank
//   rank.stages[chunk.index()]         // ids count from 1 or 0, vectors always from 0
//   StageId stage = chunk;             // does not compile
//
// An id converts from and to std::int32_t by itself, so that ids are counted, compared with numbers
// and printed like numbers; it is as large and as fast as one. Two different ids do not convert
// into each other, since that would take two conversions, and do not compare. Arithmetic gives
// numbers. Tested by ids_test.cpp.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace capo {

template <typename Of, std::int32_t kFirst>
class Id {
 public:
  constexpr Id() = default;
  // Both conversions are implicit on purpose: see the head of this file.
  // NOLINTBEGIN(google-explicit-constructor)
  constexpr Id(std::int32_t number) : number_(number) {}
  constexpr operator std::int32_t() const { return number_; }
  // NOLINTEND(google-explicit-constructor)

  /// The id's position in a vector with one element for each. The word for none has a position
  /// beyond the end of every vector, so that one comparison with a size refuses it.
  [[nodiscard]] constexpr std::size_t index() const {
    return static_cast<std::size_t>(number_) - static_cast<std::size_t>(kFirst);
  }

  constexpr Id& operator++() {
    ++number_;
    return *this;
  }
  constexpr Id& operator-=(std::int32_t steps) {
    number_ -= steps;
    return *this;
  }

 private:
  std::int32_t number_ = 0;
};

template <typename Of, std::int32_t kFirst>
constexpr bool operator==(Id<Of, kFirst> a, Id<Of, kFirst> b) {
  return static_cast<std::int32_t>(a) == static_cast<std::int32_t>(b);
}
template <typename Of, std::int32_t kFirst>
constexpr std::strong_ordering operator<=>(Id<Of, kFirst> a, Id<Of, kFirst> b) {
  return static_cast<std::int32_t>(a) <=> static_cast<std::int32_t>(b);
}

template <typename A, std::int32_t kFirstA, typename B, std::int32_t kFirstB>
bool operator==(Id<A, kFirstA>, Id<B, kFirstB>) = delete;
template <typename A, std::int32_t kFirstA, typename B, std::int32_t kFirstB>
std::strong_ordering operator<=>(Id<A, kFirstA>, Id<B, kFirstB>) = delete;

/// A chunk of one rank, from 1; 0 is none, as in an idle slot.
using ChunkId = Id<struct ChunkTag, 1>;
/// A stage of all ranks, from 0; -1 is none.
using StageId = Id<struct StageTag, 0>;
/// A rank, from 0; -1 is none.
using RankId = Id<struct RankTag, 0>;
/// A microbatch, from 0.
using MicrobatchId = Id<struct MicrobatchTag, 0>;

/// The microbatch of an action that has none.
constexpr MicrobatchId kNoMicrobatch = -1;

/// One chunk of one rank, such as the one that holds a stage.
struct HeldChunk {
  RankId rank = -1;  ///< -1: no rank holds it
  ChunkId chunk;

  friend auto operator<=>(const HeldChunk&, const HeldChunk&) = default;
};

}  // namespace capo
