// A model file with the costs that were measured: everything else stays as its author wrote it,
// in the same order.
//
// Of a text that the reader of models has accepted (model_reader.h). Tested by
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
  std::optional<TransferCost> transfer;       ///< nothing: the file keeps what it says
};

/// Numbers with as many digits as a measurement has, six.
[[nodiscard]] std::string with_costs(std::string_view model, const MeasuredCosts& costs);

}  // namespace capo
