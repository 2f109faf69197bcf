// The lines of a truth campaign, counted: the matrix of verdict against gradients, and who broke
// which rule.
//
//               gradients right   some wrong
//     accepted             2500            0
//     rejected               31         2469
//
// A rejected order with right gradients is one that no run can show (explained.h); those, and what
// had nothing to run, are counted apart as well. Tested by tests/testing/truth/tally_test.cpp.

#pragma once

#include "testing/truth/truth_line.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace capo::testing {

inline constexpr std::size_t kWaysToCome = 5;  ///< values of Came
using CameCounts = std::array<std::uint64_t, kWaysToCome>;

struct Tally {
  std::uint64_t lines = 0;
  CameCounts came{};
  std::uint64_t accepted_right = 0;
  std::uint64_t accepted_wrong = 0;
  std::uint64_t rejected_right = 0;
  std::uint64_t rejected_wrong = 0;
  std::uint64_t gradients = 0;            ///< compared, once for each replay
  std::uint64_t victims = 0;              ///< seen
  double float64 = 0;                     ///< the largest error
  std::uint64_t undeclared_accepted = 0;  ///< under every value of what was not declared
  std::uint64_t undeclared_rejected = 0;
  std::map<std::string, CameCounts> by_rule;  ///< a line counts once for each rule it breaks
  std::map<std::string, CameCounts> by_fault;
  std::map<std::string, CameCounts> by_module;  ///< indexed by the words of the line
  std::map<std::string, CameCounts> by_graphs;
  std::map<std::string, CameCounts> by_plan;

  void add(const TruthLine& line);
  [[nodiscard]] std::uint64_t disagreements() const;
};

/// The matrix and the counts below it, for a terminal.
[[nodiscard]] std::string matrix_text(const Tally& tally);
/// One row a rule: seen, explained, not run.
[[nodiscard]] std::string rules_text(const Tally& tally);

}  // namespace capo::testing
