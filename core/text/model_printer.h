// print_configured_model() writes a model.json of a configuration, for `capo model`.
//
//   {"schema": 1, "comment": ..., "configuration": {...}, "modules": {...}, "layers": "layer"}
//
// Reading what was printed gives the same configuration and kinds. Members that hold their default
// are left out, as a person would. Members that no configuration has (groups, plan, costs) are not
// printed.
//
// with_members() and with_costs() change a model.json that the reader of models has accepted
// (model_reader.h): the other members stay as its author wrote them, in the same order.
//
//   {"modules": {"mlp": {"kind": "linear"}}}   ->   ... "cost": {"forward": 12.5, "backward": 30.1}
//
// Tested by model_printer_test.cpp and model_costs_test.cpp.

#pragma once

#include "core/model/model.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace capo {

/// It prints kind and MLP of each module, and no layers if the table has none.
[[nodiscard]] std::string print_configured_model(std::string_view comment,
                                                 const ModelConfiguration& configuration,
                                                 const ModuleTable& modules);

/// A member of a configuration as it is typed: "expert_parallel" and "8".
struct ConfigurationMember {
  std::string key;
  std::string value;
};

/// Sets members of the configuration of a model that is JSON. A value that is no JSON itself is a
/// string.
[[nodiscard]] std::string with_members(std::string_view model,
                                       std::span<const ConfigurationMember> members);

struct MeasuredCosts {
  std::map<std::string, ModuleCost> modules;  ///< by name; others keep what they have
  std::optional<TransferCost> transfer;       ///< nullopt: the file keeps its own
  std::vector<double> paces;                  ///< as the model has them; empty: the file has none
};

/// Numbers get six digits, as many as a measurement has.
[[nodiscard]] std::string with_costs(std::string_view model, const MeasuredCosts& costs);

}  // namespace capo
