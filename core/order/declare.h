// A topology or layers declared beside a schedule that may state them itself.
//
//   capo check --topology chain --order "[1, -1]"      the list takes the topology that is declared
//
// A bare TE list says nothing, and takes what is declared. An order that states its stages or its
// layers is not overruled: the declaration must agree, or the two are not about the same model.
// Tested by declare_topology_test.cpp and declare_layers_test.cpp.

#pragma once

#include "core/order/schedule.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace capo {

/// Places the stages of the schedule. `stages` lists those of each rank's chunks and is read only
/// under Custom; Independent unwires whatever was stated. Returns the reason why the two do not
/// fit, with the schedule unchanged, and nullopt if they do.
[[nodiscard]] std::optional<std::string> declare_topology(
    Schedule& schedule, Topology topology,
    const std::vector<std::vector<std::int32_t>>& stages = {});

/// Gives each chunk the layers that a model file names. `named` is by rank, chunk and layer; a
/// level with one entry speaks for all of its kind, and one name for any number of layers. Returns
/// the reason why the two do not fit, with the schedule unchanged, and nullopt if they do.
[[nodiscard]] std::optional<std::string> declare_layers(
    Schedule& schedule, const std::vector<std::vector<std::vector<std::int32_t>>>& named);

}  // namespace capo
