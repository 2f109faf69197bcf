#include "cli/options/launched.h"

#include "cli/options/choice.h"
#include "cli/options/device.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/assert.h"
#include "core/base/plural.h"
#include "core/text/printable.h"
#ifdef CAPO_HAVE_NCCL
#include "gpu/nccl/between_devices.h"
#endif
#include "run/processes/processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>
#include <utility>

namespace capo::cli {

namespace {

constexpr double kLongestTimeout = 1e6;  // seconds
constexpr std::int32_t kMostRanks = 1'000'000;

// Sends standard output and error to where nobody reads; returns what standard error was.
int made_quiet() {
  const int heard = dup(STDERR_FILENO);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  close(nowhere);
  return heard;
}

}  // namespace

void TransportRequest::add_to(CLI::App& app, const std::string& example) {
  add_choice(app, "--transport", kind,
             {{"in-process", TransportKind::InProcess},
              {"mpi", TransportKind::Mpi},
              {"nccl", TransportKind::Nccl}},
             "How messages travel: in-process, mpi (" + example +
                 ") or nccl (a process for each CUDA device, made by mpirun or by capo itself)");
  app.add_option("--timeout", timeout, "Seconds that a message of mpi or nccl may take")
      ->check(CLI::Range(0.001, kLongestTimeout))
      ->capture_default_str();
}

void TransportRequest::add_ranks_to(CLI::App& app) {
  app.add_option("--ranks-per-device", ranks_per_device,
                 "How many ranks one process of mpi or nccl has, with copies between them")
      ->check(CLI::Range(1, kMostRanks))
      ->capture_default_str();
}

bool launched_by_mpi() {
  constexpr std::array kNames{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

Result<run::BetweenFactory> messages_of_nccl() {
#ifdef CAPO_HAVE_NCCL
  return gpu::messages_of_nccl();
#else
  return Error{.kind = ErrorKind::Environment,
               .message = "this capo was built without NCCL",
               .help =
                   "build it where nccl.h is found (the CUDA toolkit, or PyPI's wheel "
                   "nvidia-nccl-cu13; CAPO_NCCL=ON tells what is missing), or run all ranks on "
                   "one device: --transport in-process"};
#endif
}

run::WalkMessages walk_over_nccl([[maybe_unused]] run::Engine& engine,
                                 [[maybe_unused]] run::Processes& processes) {
  run::WalkMessages messages{.name = "NCCL"};
#ifdef CAPO_HAVE_NCCL
  messages.make = [&](Communicators layout, std::vector<int> used) {
    auto made = gpu::walk_of_nccl(engine, processes, layout, std::move(used));
    CAPO_ASSERT(made, "NCCL was found before");
    return *std::move(made);
  };
#endif
  return messages;
}

Launched::Launched(std::unique_ptr<run::Processes> processes)
    : processes_(std::move(processes)), heard_(reports() ? STDERR_FILENO : made_quiet()) {
}

Result<Launched> Launched::join(const TransportRequest& request) {
  auto processes = run::Processes::start(run::Processes::Duration(request.timeout));
  if (!processes) return processes.error();
  return Launched(*std::move(processes));
}

Result<Launched> Launched::spawn(const TransportRequest& request, int count) {
  const run::Processes::Duration timeout(request.timeout);
  const auto library = run::spawn(count, timeout);
  if (!library) return library.error();
  return Launched(std::make_unique<run::Processes>(**library, timeout));
}

int Launched::of_this_machine() const {
  const char* const all = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  return all == nullptr ? processes_->size() : std::atoi(all);
}

Result<int> Launched::device() const {
  const auto devices = count_of_devices();
  if (!devices) return devices.error();
  const char* const local = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  const int processes = of_this_machine();
  if (processes <= *devices) return local == nullptr ? processes_->rank() : std::atoi(local);
  return Error{.kind = ErrorKind::Environment,
               .message = fmt::format("{} of this machine need a CUDA device each, and it has {}",
                                      counted(processes, "process", "processes"), *devices),
               .help = "--ranks-per-device has several ranks share one"};
}

// A mistake in the command line is thrown by every process alike, so each leaves by itself.
int Launched::run(const std::function<int()>& command) {
  try {
    const int code = command();
    processes_->library().leave();
    return code;
  } catch (const CLI::Error&) {
    processes_->library().leave();
    throw;
  } catch (const std::bad_alloc&) {
    end_all(fmt::format("error: rank {}: out of memory\n", processes_->rank()), kEnvironment);
  } catch (const std::exception& thrown) {
    end_all(fmt::format("error: rank {}: {}\n", processes_->rank(), printable(thrown.what())),
            kInternal);
  }
}

Result<int> Launched::device_or_end() {
  auto ordinal = device();
  if (!ordinal && !on_one_machine()) end_all_for(ordinal.error());
  return ordinal;
}

void Launched::end_all_for(const Error& error) {
  std::string text = fmt::format("error: rank {}: {}\n", processes_->rank(), error.message);
  if (!error.help.empty()) text += fmt::format("  help: {}\n", error.help);
  end_all(text, kEnvironment);
}

void Launched::end_all(std::string_view tell, int code) {
  if (tell.empty() && !reports()) std::this_thread::sleep_for(processes_->timeout());
  if (!tell.empty() && !reports()) dup2(heard_, STDERR_FILENO);
  print_stderr(tell);
  std::fflush(nullptr);
  processes_->library().end_all(code);
  std::_Exit(code);
}

}  // namespace capo::cli
