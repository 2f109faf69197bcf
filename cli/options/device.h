// The option --device of `run` and `measure`, and the engine that it stands for.

#pragma once

#include "core/base/result.h"
#include "run/engine/engine.h"

#include <memory>
#include <string_view>

namespace CLI {
class App;
}

namespace capo::cli {

enum class Device { Auto, Host, Cuda };

/// "auto", "host", "cuda".
[[nodiscard]] std::string_view name_of(Device device);

void add_device_option(CLI::App& app, Device& device);

/// Auto takes a CUDA device if there is one, else the host engine. If a driver of CUDA is installed
/// and yet no device can be had, a note says why.
/// `ordinal` is the number of the CUDA device.
[[nodiscard]] Result<std::unique_ptr<run::Engine>> engine_for(Device device, int ordinal = 0);
/// Whether its memory is a device's, and not this machine's own.
[[nodiscard]] bool on_device(const run::Engine& engine);
/// How many CUDA devices there are, or why there is none.
[[nodiscard]] Result<int> count_of_devices();

}  // namespace capo::cli
