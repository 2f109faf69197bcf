#include "cli/commands/commands.h"
#include "cli/options/files.h"

#ifdef CAPO_HAVE_CUDA
#include "gpu/runtime/device.h"
#endif

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace capo::cli {

namespace {

Result<std::string> describe_devices() {
#ifdef CAPO_HAVE_CUDA
  const auto devices = gpu::list_devices();
  if (!devices) return devices.error();
  std::string out;
  for (const gpu::Device& device : *devices) {
    out += fmt::format(
        "{}: {}, sm_{}{}, {} SMs, {:.1f} GiB, driver CUDA {}.{}, capo's CUDA {}.{}\n",
        device.ordinal, device.name, device.capability.major, device.capability.minor,
        device.multiprocessors, static_cast<double>(device.bytes) / (1 << 30), device.driver.major,
        device.driver.minor, device.runtime.major, device.runtime.minor);
  }
  return out;
#else
  return Error{ErrorKind::Environment, "this capo was built without CUDA",
               "build it where a CUDA toolkit is installed"};
#endif
}

int list() {
  const auto text = describe_devices();
  return exit_code_after(text ? write_stdout(*text) : std::optional(text.error()));
}

}  // namespace

Run add_devices(CLI::App& command) {
  command.footer("Example: capo devices");
  return list;
}

}  // namespace capo::cli
