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
  std::string recompute;
  std::optional<bool> ideal_links;
  std::string devices;
  std::optional<double> memory_limit;
  std::string device;      ///< the name of a device whose data sheet gives costs; empty: none
  std::string efficiency;  ///< the shares of its rates that are reached

  void add_to(CLI::App& app);

  /// The options with the costs of the model file, which flags override. Throws
  /// CLI::ValidationError.
  [[nodiscard]] SimulationOptions resolve(const Model& model) const;
  /// Throws if --devices speaks of other ranks, or if a scope of --cost or --recompute fits no part
  /// of the schedule.
  void refuse_misfits(const Schedule& schedule, const SimulationOptions& options) const;

 private:
  void price_on_device(Model& model, SimulationOptions& options) const;
};

/// Tells why an order cannot be simulated: the verifier's findings, and the reason in one line.
/// Returns the exit code.
[[nodiscard]] int refuse_simulation(const Input& input, const CannotSimulate& why);

/// Declares --cost-per, which `generate` and `sweep` have as well.
CLI::Option* add_cost_per(CLI::App& app, CostPer& per);

/// Declares --recompute, which `optimise` has as well, and reads it; throws CLI::ValidationError.
CLI::Option* add_recompute(CLI::App& app, std::string& text);
[[nodiscard]] Recomputed recomputed_chunks(const std::string& text);
/// Throws if a chunk is not in the schedule, or recomputes already as its module is configured.
void refuse_recomputed(const Recomputed& recomputed, const Schedule& schedule,
                       const ModuleTable& modules);

/// Reads --cost and --mem for searches of schedules; throws CLI::ValidationError.
[[nodiscard]] std::vector<CostSetting> cost_settings(const std::vector<std::string>& texts);
[[nodiscard]] std::optional<MemoryChange> memory_change(const std::string& text);

}  // namespace capo::cli
