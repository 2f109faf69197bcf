#include "cli/options/launched.h"

#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/text/printable.h"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>
#include <utility>

namespace capo::cli {

namespace {

constexpr double kLongestTimeout = 1e6;  // seconds

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

void TransportRequest::add_to(CLI::App& app) {
  add_choice(app, "--transport", kind,
             {{"in-process", TransportKind::InProcess}, {"mpi", TransportKind::Mpi}},
             "How messages travel: in-process, or mpi (mpirun -n RANKS capo run ...)");
  app.add_option("--timeout", timeout, "Seconds that a message of mpi may take")
      ->check(CLI::Range(0.001, kLongestTimeout))
      ->capture_default_str();
}

Result<Launched> Launched::join(const TransportRequest& request) {
  auto processes = run::Processes::start(run::Processes::Duration(request.timeout));
  if (!processes) return processes.error();
  const int heard = (*processes)->rank() == 0 ? STDERR_FILENO : made_quiet();
  return Launched(*std::move(processes), heard);
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

void Launched::end_all(std::string_view tell, int code) {
  if (tell.empty() && !reports()) std::this_thread::sleep_for(processes_->timeout());
  if (!tell.empty() && !reports()) dup2(heard_, STDERR_FILENO);
  print_stderr(tell);
  std::fflush(nullptr);
  processes_->library().end_all(code);
  std::_Exit(code);
}

}  // namespace capo::cli
