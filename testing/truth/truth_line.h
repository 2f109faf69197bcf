// The result of one order of the truth campaign, as a value and as a line of JSON.
//
//   {"n":1,"order":"[1,1,-1,-1]","module":"linear bf16","plan":"te","graphs":"per-step",
//    "verdict":"rejected","rules":["B02"],"came":"seen","engine":"cuda","bit_equal":false, ...
//
// If an invariant of capo's own breaks there is no verdict, and the reason is its message. Lines
// hold no time and no name of a machine, so that two campaigns of one seed are the same bytes.
// Tested by tests/testing/truth/truth_line_test.cpp: printing then reading is the identity.

#pragma once

#include "run/report.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capo::testing {

/// How verdict and gradients go together.
enum class Came : std::uint8_t {
  Right,      ///< accepted; every gradient is right
  Seen,       ///< rejected; the victims are those predicted, and some gradient is wrong
  Explained,  ///< rejected; nothing a run could show, for the reason that the line gives
  NotRun,     ///< rejected, and what is left has no course that could be run
  Disagrees,  ///< anything else
};

/// "right", "seen", "explained", "not-run", "disagrees".
[[nodiscard]] std::string_view name_of(Came came);

struct TruthLine {
  std::uint64_t number = 0;
  std::string order;
  std::string module;
  std::string plan;
  std::string graphs;
  std::int32_t replicas = 1;  ///< copies of the order that were run
  std::string fault;          ///< empty: none was put in
  std::string across;         ///< "per-pair, buffered": a value of what was not declared, under
                              ///< which it was run; empty if there is no such thing
  std::string verdict;        ///< "accepted", "rejected", "no-verdict"
  std::vector<std::string> rules;  ///< broken, each once, sorted
  Came came = Came::Disagrees;
  std::string reason;  ///< empty for Right and Seen

  std::string engine;
  bool ran = false;  ///< the members below are a run's
  bool bit_equal = false;
  bool within_bounds = false;
  double float64 = 0;  ///< the largest relative error of eager execution, to three digits
  std::vector<std::string> beyond;  ///< tensors of eager execution that are not float64's
  std::size_t other_ways = 0;       ///< roundings on an edge that float64's followed
  std::size_t gradients = 0;
  std::uint32_t replays = 0;
  run::Victims victims;
  run::Victims predicted;
  std::optional<run::Victims> host_victims;  ///< the host engine's, if it was asked for

  friend bool operator==(const TruthLine&, const TruthLine&) = default;
};

/// One JSON object, without a line break.
[[nodiscard]] std::string to_text(const TruthLine& line);
/// Reads a line; nullopt if the text is none, or names a verdict or an outcome that does not exist.
[[nodiscard]] std::optional<TruthLine> read_truth_line(std::string_view text);

}  // namespace capo::testing
