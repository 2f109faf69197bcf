// A topology or layers declared beside a schedule that may state them itself.
//
//   capo check --topology chain --order "[1, -1]"      the list takes the topology that is declared
//
// A bare TE list says nothing, and takes what is declared. An order that states its stages or its
// layers is not overruled: the declaration must agree, or the two are not about the same model.
//
// Chunks that are layers of one chunk of the model are declared in the same way.
//
// A replay is declared beside a capture in the same way: the capture's chunks, layers and stages
// hold, and the replay gives its entries, which keep their places in their own text. If both list
// the stages of each rank, as tables do, two chunks are the same if their stages are. A file that
// holds both orders, as capo.record() writes it, gives the one that it is asked for.
//
//   capo check --capture captured.te --replay replayed.te
//
// Tested by declare_topology_test.cpp, declare_layers_test.cpp,
// declare_model_chunks_test.cpp and with_replay_test.cpp.

#pragma once

#include "core/base/result.h"
#include "core/order/input.h"
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

/// Says how many chunks of the order, each of them a layer, make each chunk of the model, on every
/// rank that has chunks. Returns the reason why that does not fit, with the schedule unchanged, and
/// nullopt if it does.
[[nodiscard]] std::optional<std::string> declare_model_chunks(
    Schedule& schedule, const std::vector<std::int32_t>& layers);

/// The capture with the replay's orders beside its own, or the reason why the two are not of one
/// schedule.
[[nodiscard]] Result<Input, std::string> with_replay(Input capture, const Input& replay);

}  // namespace capo
