// The stages that a rank's row needs next and those that it holds, for the passes that gather
// parameters ahead and give them up.
//
//   0F0,2F0,0F1,(2F1;4B0)OVERLAP_F_B     at its beginning: 0, 2, 4
//
// torch scans on from every action, which takes the square of the row's length if a rank has fewer
// stages than are asked for. Here each stage knows where it comes next, so that a step costs as
// much as the rank has stages.

#pragma once

#include "core/frameworks/torch/predict.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace capo::torch {

class NextStages {
 public:
  /// The composites whose members count; of another one torch takes the stage -1.
  enum class Composites : std::uint8_t { All, Overlaps };

  NextStages(const std::vector<Slot>& row, Composites counted);

  /// At least `count` distinct stages that compute from here on, in the order in which they do;
  /// fewer if the row has no more, and more if the last ones are one composite's.
  [[nodiscard]] std::vector<std::int64_t> next(std::int64_t count) const;

  /// Goes on to the next action.
  void advance();

 private:
  // The position of a slot, and of the stage among its members.
  using Place = std::pair<std::size_t, std::size_t>;

  std::vector<std::vector<std::int64_t>> stages_;  // by slot, distinct
  std::map<std::int64_t, std::vector<Place>> places_;
  std::map<std::int64_t, std::size_t> passed_;  // places of each stage that lie behind
  std::set<std::pair<Place, std::int64_t>> next_;
  std::size_t at_ = 0;
};

/// A set of stages that is walked in the order in which CPython walks a set of small numbers.
///
///   add 4, add 0, add 8     is walked 0, 4, 8 if 8 finds its place free, and otherwise if not
///
/// torch 2.11 keeps the stages that are resident in a set, so the order in which it gives them up
/// is that of the hash table: a number's place is its lowest bits, a place that is taken sends it
/// on to the next ones and then elsewhere, and a place that was left is not used again until the
/// table is rebuilt.
class PythonSet {
 public:
  /// Precondition: it is not in the set.
  void add(std::int64_t number);
  /// Precondition: it is in the set.
  void remove(std::int64_t number);
  [[nodiscard]] std::vector<std::int64_t> in_order() const;

 private:
  enum class Use : std::uint8_t { Free, Taken, Left };
  struct Place {
    Use use = Use::Free;
    std::int64_t number = 0;
  };

  [[nodiscard]] std::size_t free_place(std::int64_t number) const;
  void rebuild(std::size_t size);

  std::vector<Place> places_ = std::vector<Place>(8);
  std::size_t used_ = 0;    // places that are taken
  std::size_t filled_ = 0;  // places that are taken or left
};

}  // namespace capo::torch
