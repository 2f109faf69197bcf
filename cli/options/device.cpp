#include "cli/options/device.h"

#include "cli/options/files.h"
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

Result<Engine> cuda_engine() {
#ifdef CAPO_HAVE_CUDA
  auto engine = gpu::CudaEngine::make();
  if (!engine) return engine.error();
  return Engine(*std::move(engine));
#else
  return Error{.kind = ErrorKind::Environment,
               .message = "this capo was built without CUDA",
               .help = "--device host runs the same plan on this machine's processor"};
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

void add_device_option(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "auto (a CUDA device where there is one), host or cuda")
      ->check(CLI::IsMember({"auto", "host", "cuda"}))
      ->capture_default_str();
}

Result<Engine> engine_for(const std::string& device) {
  if (device == "cuda" || (device == "auto" && has_cuda_driver())) {
    auto engine = cuda_engine();
    if (engine || device == "cuda") return engine;
    print_stderr(fmt::format("note: the host engine is taken: {}\n", engine.error().message));
  }
  return Engine(std::make_unique<run::host::HostEngine>());
}

}  // namespace capo::cli
