// The command line: every command is a file under commands/.
//
// main() catches what is thrown when memory runs out. CLI11 also allocates where nothing can be
// caught, in objects that are made before main() and in functions that promise not to throw; that
// ends in std::terminate, and is told there in the same words with the same exit code. Anything
// else that comes to std::terminate is a bug of capo's and aborts. CLI11 writes --version into
// streams, which swallow what is thrown and stop in the middle, so it is printed only if memory
// never ran out. Under --max-memory the report is another, with the exit code of a limit.
// tests/failing/memory_test.cpp fails every allocation of every command.

#include "cli/commands/commands.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/help_page.h"
#include "cli/options/memory_limit.h"
#include "cli/options/mistakes.h"
#include "cli/options/numbers.h"
#include "core/base/index.h"
#include "core/frameworks/megatron/version.h"
#include "core/frameworks/te/version.h"
#include "core/frameworks/torch/version.h"
#include "core/text/printable.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

int fail_out_of_memory() {
  const std::string_view over = capo::cli::over_memory_limit();
  capo::cli::print_stderr(over.empty() ? "error: out of memory\n" : over);
  return over.empty() ? capo::cli::kEnvironment : capo::cli::kNoVerdict;
}

[[noreturn]] void terminated() {
  try {
    if (const auto why = std::current_exception()) std::rethrow_exception(why);
  } catch (const std::bad_alloc&) {
    std::_Exit(fail_out_of_memory());
  } catch (...) {
    // The abort below leaves a core, which shows the bug.
  }
  std::abort();
}

std::atomic<bool> ran_out = false;

[[noreturn]] void run_out() {
  ran_out = true;
  throw std::bad_alloc();
}

// Its priority puts it before CLI11's own objects, which have none.
struct Installed {
  Installed() {
    std::set_terminate(terminated);
    std::set_new_handler(run_out);
  }
};
[[gnu::init_priority(101)]] const Installed kInstalled;

// A prediction is worth the upstream version that it was read from, so the text names them.
std::string version_text() {
  return fmt::format(
      "capo {}\nprofiles: te {}, mcore {}, torch {}\nlanguage: .order 1, JSON schema 1",
      CAPO_VERSION, capo::te::kNewest.release, capo::megatron::kNewest.commit,
      capo::torch::kNewest.release);
}

// An interrupt leaves no half written file: files are renamed into place when they are whole.
extern "C" void interrupted(int /*signal*/) {
  std::_Exit(capo::cli::kInterrupted);
}

int fail_usage(const capo::Error& mistake) {
  capo::cli::print_error(mistake);
  return capo::cli::kUsage;
}

// Help and version go to standard output, and are checked as any other output is.
int print_and_leave(CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream out;
  std::ostringstream ignored;
  app.exit(error, out, ignored);
  if (ran_out) return fail_out_of_memory();
  return capo::cli::exit_code_after(capo::cli::write_stdout(out.str()));
}

// The commands, each with the function that runs it.
using Commands = std::vector<std::pair<std::string_view, capo::cli::Run>>;

Commands add_commands(CLI::App& app) {
  using namespace capo::cli;
  return {
      {"check", add_check(app)},
      {"convert", add_convert(app)},
      {"generate", add_generate(app)},
      {"simulate", add_simulate(app)},
      {"compare", add_compare(app)},
      {"sweep", add_sweep(app)},
      {"run", add_run(app)},
      {"measure", add_measure(app)},
      {"graph", add_graph(app)},
      {"draw", add_draw(app)},
      {"minimise", add_minimise(app)},
      {"explain", add_explain(app)},
      {"rules", add_rules(app)},
      {"profiles", add_profiles(app)},
      {"devices", add_devices(app)},
      {"model", add_model(app)},
      {"help", add_help(app)},
      {"man", add_man(app)},
      {"completion", add_completion(app)},
  };
}

// Runs the command that was parsed; without one, prints what there is.
int run_parsed(const CLI::App& app, const Commands& commands) {
  for (const auto& [name, command] : commands) {
    const CLI::App* parsed = capo::cli::command_named(app, std::string(name));
    if (!parsed->parsed()) continue;
    if (std::string why = capo::cli::two_from_standard_input(*parsed); !why.empty()) {
      throw CLI::ValidationError(why, CLI::ExitCodes::ValidationError);
    }
    return command();
  }
  return capo::cli::exit_code_after(capo::cli::write_stdout(app.help()));
}

int run(int argc, char** argv) {
  CLI::App app{"capo: a verifier and simulator of pipeline-parallel capture orders", "capo"};
  app.set_version_flag("--version", version_text());
  app.fallthrough(false);
  // Without a limit CLI11 takes `check` behind `help` for a second command.
  app.require_subcommand(0, 1);
  app.footer(
      "Example: capo check --order \"[1, -1, -1.5]\"\n"
      "Exit codes: 0 accepted, 1 findings, 2 usage, 3 malformed input, 4 no verdict (a limit),\n"
      "5 environment, 70 internal, 130 interrupted");
  const Commands commands = add_commands(app);
  capo::cli::read_decimally(app);
  capo::cli::use_help_pages(app);
  const std::span<char* const> arguments(argv, capo::as_index(argc));
  try {
    app.parse(argc, argv);
    return run_parsed(app, commands);
  } catch (const CLI::Success& wanted) {
    return print_and_leave(app, wanted);
  } catch (const CLI::ParseError& thrown) {
    return fail_usage(capo::cli::mistake_of(app, thrown, arguments));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, interrupted);
  // A reader that leaves ends capo in silence as it ends any filter, whatever the parent ignores.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail_out_of_memory();
  } catch (const std::exception& error) {
    capo::cli::print_stderr("error: " + capo::printable(error.what()) +
                            "\n  this is a bug in capo; please report it with the input\n");
    return capo::cli::kInternal;
  }
}
