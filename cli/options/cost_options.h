// The options of a simulation say what tasks take, what they hold and how messages travel.
// `simulate`, `compare` and `sweep` share them.

#pragma once

#include "core/base/result.h"
#include "core/model/model.h"
#include "core/order/input.h"
#include "core/order/schedule.h"
#include "sim/simulation.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capo::cli {

struct CostOptions {
  std::vector<std::string> costs;
  CostPer per = CostPer::Rank;
  std::string memory;
  std::optional<bool> ideal_links;
  std::string devices;
  std::optional<double> memory_limit;
  std::string device;      ///< the name of a device whose data sheet gives costs; empty: none
  std::string efficiency;  ///< the shares of its rates that are reached

  void add_to(CLI::App& app);

  /// The options with the costs of the model file, which flags override. Throws
  /// CLI::ValidationError.
  [[nodiscard]] SimulationOptions resolve(const Model& model) const;
  /// Throws if --devices speaks of other ranks, or if a scope of --cost fits no part of the
  /// schedule.
  void refuse_misfits(const Schedule& schedule, const Costs& costs) const;

 private:
  void price_on_device(Model& model, SimulationOptions& options) const;
};

/// Tells why an order cannot be simulated: the verifier's findings, and the reason in one line.
/// Returns the exit code.
[[nodiscard]] int refuse_simulation(const Input& input, const CannotSimulate& why);

/// Declares --cost-per, which `generate` and `sweep` have as well.
CLI::Option* add_cost_per(CLI::App& app, CostPer& per);

/// Reads --cost and --mem for searches of schedules; throws CLI::ValidationError.
[[nodiscard]] std::vector<CostSetting> cost_settings(const std::vector<std::string>& texts);
[[nodiscard]] std::optional<MemoryChange> memory_change(const std::string& text);

}  // namespace capo::cli
