// A simulated step for Python: its figures, and its tasks as one array a column.
//
// Columns are filled once and then only looked at: Python's views of them are no copies. Tested by
// python/tests/test_simulate.py.

#pragma once

#include "core/model/model.h"
#include "core/order/input.h"
#include "core/timeline/picture.h"
#include "core/timeline/timeline.h"
#include "sim/simulation.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace capo::python {

class SimulatedStep {
 public:
  /// `cost` and `memory` are texts as --cost and --mem take them, each may be empty. Throws
  /// std::invalid_argument if one cannot be read or fits no part of the order, and NotAccepted or
  /// another std::runtime_error if the order cannot run to its end.
  SimulatedStep(Input input, const Model& model, const std::string& cost,
                const std::string& memory);
  SimulatedStep(const SimulatedStep&) = delete;  // the simulation refers to members
  SimulatedStep& operator=(const SimulatedStep&) = delete;
  ~SimulatedStep() = default;

  [[nodiscard]] const Simulation& times() const { return *simulation_; }
  [[nodiscard]] std::string label(std::size_t task) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;
  [[nodiscard]] std::string grid(std::size_t width) const;
  [[nodiscard]] std::string trace() const;

  // The columns of the tasks, in the order of Timeline::tasks.
  std::vector<double> begin;
  std::vector<double> end;
  std::vector<std::int32_t> rank;
  std::vector<std::int32_t> microbatch;  ///< -1: none
  std::vector<std::int32_t> stage;       ///< -1: none
  std::vector<std::uint8_t> kind;        ///< an index of capo.KINDS

 private:
  void fill_columns();

  Input input_;
  SimulationOptions options_;
  std::unique_ptr<Simulation> simulation_;
  Timeline timeline_;
};

/// The picture of orders as `capo draw` makes it, one below the other, as "svg" or "html". `cost`
/// and `memory` are those of SimulatedStep; an order that cannot run is drawn as far as it goes.
[[nodiscard]] std::string drawn(const std::vector<Input>& inputs, const Model& model,
                                const std::string& cost, const std::string& memory,
                                const std::string& format, const SvgOptions& options);

/// The names of kinds, by their number in a column.
[[nodiscard]] std::vector<std::string> kind_names();

}  // namespace capo::python
