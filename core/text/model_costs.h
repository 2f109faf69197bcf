// with_costs() writes measured costs into a model file, whose other members stay as its author
// wrote them, in the same order.
//
//   {"modules": {"mlp": {"kind": "linear"}}}   ->   ... "cost": {"forward": 12.5, "backward": 30.1}
//
// The reader of models has accepted the text before (model_reader.h). Tested by
// model_costs_test.cpp.

#pragma once

#include "core/model/model.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace capo {

struct MeasuredCosts {
  std::map<std::string, ModuleCost> modules;  ///< by name; others keep what they have
  std::optional<TransferCost> transfer;       ///< nullopt: the file keeps its own
};

/// Numbers get six digits, as many as a measurement has.
[[nodiscard]] std::string with_costs(std::string_view model, const MeasuredCosts& costs);

}  // namespace capo
