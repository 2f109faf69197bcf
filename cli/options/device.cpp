#include "cli/options/device.h"

#include "cli/options/choice.h"
#include "cli/options/files.h"
#include "core/base/assert.h"
#ifdef CAPO_HAVE_CUDA
#include "gpu/engine/cuda_engine.h"
#include "gpu/runtime/device.h"
#endif
#include "run/host/host_engine.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <utility>

namespace capo::cli {

namespace {

using Engine = std::unique_ptr<run::Engine>;

[[maybe_unused]] Error without_cuda() {
  return {.kind = ErrorKind::Environment,
          .message = "this capo was built without CUDA",
          .help = "--device host runs the same plan on this machine's processor"};
}

Result<Engine> cuda_engine([[maybe_unused]] int ordinal) {
#ifdef CAPO_HAVE_CUDA
  auto engine = gpu::CudaEngine::make(ordinal);
  if (!engine) return engine.error();
  return Engine(*std::move(engine));
#else
  return without_cuda();
#endif
}

bool has_cuda_driver() {
#ifdef CAPO_HAVE_CUDA
  return gpu::has_driver();
#else
  return false;
#endif
}

}  // namespace

std::string_view name_of(Device device) {
  switch (device) {
    case Device::Auto:
      return "auto";
    case Device::Host:
      return "host";
    case Device::Cuda:
      return "cuda";
  }
  CAPO_UNREACHABLE();
}

void add_device_option(CLI::App& app, Device& device) {
  add_choice(app, "--device", device, words_of({Device::Auto, Device::Host, Device::Cuda}),
             "auto (a CUDA device where there is one), host or cuda");
}

Result<Engine> engine_for(Device device, int ordinal) {
  if (device == Device::Cuda || (device == Device::Auto && has_cuda_driver())) {
    auto engine = cuda_engine(ordinal);
    if (engine || device == Device::Cuda) return engine;
    print_stderr(fmt::format("note: the host engine is taken: {}\n", engine.error().message));
  }
  return Engine(std::make_unique<run::host::HostEngine>());
}

bool on_device(const run::Engine& engine) {
  return engine.name() != "host";
}

Result<int> count_of_devices() {
#ifdef CAPO_HAVE_CUDA
  const auto devices = gpu::list_devices();
  if (!devices) return devices.error();
  return static_cast<int>(devices->size());
#else
  return without_cuda();
#endif
}

}  // namespace capo::cli
