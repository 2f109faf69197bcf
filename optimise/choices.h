// Which variants there are: each a placement, and whether each chunk of each rank recomputes.
//
//   0 1 1 0, r0   a V of two ranks, of which the first one's chunks recompute
//
// Only what is searched is chosen; the rest is the frame's and the options'. Variants that differ
// by an exchange of ranks that are alike, with or without recomputation, are one. Tested by
// variants_test.cpp.

#pragma once

#include "optimise/placements.h"
#include "optimise/problem.h"
#include "optimise/search.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace capo::optimise {

/// The bounds of variants are looked at one by one if there are no more of them.
constexpr std::size_t kFewVariants = 300;

/// All variants are made of these counts, costs and memory.
struct Variants {
  Frame frame;  ///< counts; its placement is looked at first
  SimulationOptions options;
  bool places = true;        ///< placements are searched; else it is the frame's
  bool recomputes = false;   ///< any chunks may recompute; else those of the options do
  std::vector<Frame> named;  ///< placements that are searched in full, whatever they seem
  /// Starts of a problem of one of these placements, with the costs and memory that it was made of.
  std::function<std::vector<Start>(const Problem&, const SimulationOptions&)> starts_of;
  /// Weight gradients stand directly behind their backwards (with_weights_behind()).
  bool weights_behind = false;
};

/// The options with all chunks recomputing, or none.
[[nodiscard]] SimulationOptions with_all_recomputed(SimulationOptions options);
[[nodiscard]] SimulationOptions with_none_recomputed(SimulationOptions options);

struct Choice {
  Placement placement;
  std::vector<bool> recomputed;  ///< by rank and chunk; empty if that is not searched

  friend auto operator<=>(const Choice&, const Choice&) = default;
};

class Choices {
 public:
  /// The variants outlive it.
  explicit Choices(const Variants& of);

  /// The costs of ranks where none recompute; empty if placements are not searched.
  [[nodiscard]] const RankCosts& costs() const { return costs_; }
  /// How many chunks there are that may recompute or not.
  [[nodiscard]] std::size_t chunks() const { return chunks_; }

  [[nodiscard]] SimulationOptions options_of(const Choice& choice) const;
  [[nodiscard]] Problem problem_with(const Choice& choice, std::int32_t microbatches) const;

  /// The choice that stands for all that are the same.
  [[nodiscard]] Choice standing_for_all(Choice choice) const;

  /// All choices, one for each that is the same; nullopt if there are more than a few.
  [[nodiscard]] std::optional<std::vector<Choice>> all() const;

 private:
  const Variants& of_;
  std::size_t chunks_;
  RankCosts costs_;
  std::vector<std::uint32_t> alike_;
};

}  // namespace capo::optimise
