// The task graph of an order and its plan for Python: tasks, edges and buffers, one array a column.
//
// Both are what the verdict is about, of the orders as they are replayed. An order with errors that
// leave nothing to wire or to plan is a NotAccepted. Tested by python/tests/test_wired.py.

#pragma once

#include "core/order/input.h"
#include "core/rules/check.h"
#include "core/rules/check_options.h"

#include <cstdint>
#include <string>
#include <vector>

namespace capo::python {

/// A step's tasks and the edges between their vertices: a transfer or collective has two, its start
/// and its end, other tasks have one; a collective has one more where its members meet.
struct WiredStep {
  WiredStep(Input of, CheckOptions declared);

  /// The graph as `capo graph` writes it. Throws std::runtime_error where that refuses.
  [[nodiscard]] std::string dot() const;

  Input input;
  CheckOptions options;

  // By task.
  std::vector<std::int32_t> rank;
  std::vector<std::int32_t> stage;
  std::vector<std::int32_t> microbatch;  ///< -1: none
  std::vector<std::uint8_t> kind;        ///< an index of capo.KINDS
  /// The place in the rank's order of its entry, or of the one that it was added for; -1: none.
  std::vector<std::int32_t> entry;
  std::vector<std::uint32_t> stream;
  std::vector<std::uint32_t> start;
  std::vector<std::uint32_t> end;  ///< vertices
  // By edge.
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;  ///< vertices
  std::vector<std::uint8_t> edge_kind;
  std::size_t vertices = 0;
  std::size_t streams = 0;
};

/// The buffers that a plan gives memory to, in the order of their numbers.
struct PlannedStep {
  PlannedStep(const Input& input, const CheckOptions& options);

  std::string kind_of_plan;
  bool sized = false;               ///< whether sizes are bytes; else every buffer is one unit
  std::vector<std::int64_t> peaks;  ///< by rank
  std::vector<std::int64_t> lower_bounds;
  // By buffer.
  std::vector<std::int32_t> rank;
  std::vector<std::int32_t> chunk;
  std::vector<std::int32_t> layer;
  std::vector<std::int32_t> microbatch;
  std::vector<std::uint8_t> kind;
  std::vector<std::uint8_t> region;
  std::vector<std::int64_t> offset;
  std::vector<std::int64_t> bytes;
  std::vector<std::uint32_t> birth;  ///< places in the rank's order of its first and last use
  std::vector<std::uint32_t> death;
};

[[nodiscard]] std::vector<std::string> edge_kind_names();
[[nodiscard]] std::vector<std::string> buffer_kind_names();
[[nodiscard]] std::vector<std::string> region_names();

}  // namespace capo::python
