// Which engine a command runs on: --device of `run` and `measure`.

#pragma once

#include "core/base/result.h"
#include "run/engine/engine.h"

#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace capo::cli {

void add_device_option(CLI::App& app, std::string& device);

/// `auto` takes a CUDA device where there is one. Where there is a driver of CUDA and no device is
/// to be had, a note says why, and the host engine is taken; where there is none, in silence.
[[nodiscard]] Result<std::unique_ptr<run::Engine>> engine_for(const std::string& device);

}  // namespace capo::cli
