// The command line: every command is a file under commands/.
//
// main() catches what is thrown when memory runs out. CLI11 also allocates where nothing can be
// caught, in objects that are made before main() and in functions that promise not to throw; that
// ends in std::terminate, and is told there in the same words with the same exit code. Anything
// else that comes to std::terminate is a bug of capo's and aborts. CLI11 writes --version into
// streams, which swallow what is thrown and stop in the middle, so it is printed only if memory
// never ran out. Under --max-memory the report is another, with the exit code of a limit.
// tests/failing/memory_test.cpp fails every allocation of every command but `optimise`, whose lines
// about what it finds come before.

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

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

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

struct Command {
  const char* name;
  const char* about;
  capo::cli::Run (*add)(CLI::App& command);
  /// The command tells of the options of all others.
  bool tells_of_others = false;
};

constexpr std::array<Command, 20> kCommands{{
    {"check", "Judge an order: is it right, and if not, where and why", capo::cli::add_check},
    {"convert", "Write an order in another form, or say what that form cannot express",
     capo::cli::add_convert},
    {"generate", "Write a published schedule by name, or the order that a framework makes",
     capo::cli::add_generate},
    {"simulate", "Predict when each task runs: makespan, bubbles and their causes, memory",
     capo::cli::add_simulate},
    {"compare", "Simulate several orders and print them side by side", capo::cli::add_compare},
    {"sweep", "Simulate published schedules over a grid of counts and costs", capo::cli::add_sweep},
    {"optimise", "Search the best order for given costs and memory, and prove how good it is",
     capo::cli::add_optimise},
    {"run", "Run the verified plan, and compare every gradient with eager execution",
     capo::cli::add_run},
    {"measure", "Time every kind of task of a model's modules on this machine",
     capo::cli::add_measure},
    {"graph", "Draw the dependency graph for Graphviz", capo::cli::add_graph},
    {"draw", "Draw when each task runs, with the verdict and what is wrong in red",
     capo::cli::add_draw},
    {"minimise", "The smallest schedule that still breaks the same rule, written as the input was",
     capo::cli::add_minimise},
    {"explain",
     "Tell about a rule: why it is, an order that breaks it, the cure; or about the gradient "
     "contract",
     capo::cli::add_explain},
    {"rules", "List the rules", capo::cli::add_rules},
    {"profiles", "List the versions of the frameworks that `check --profile` knows",
     capo::cli::add_profiles},
    {"devices", "List the CUDA devices that capo could run on", capo::cli::add_devices},
    {"model", "Write the model file of a published model, or list what follows from one",
     capo::cli::add_model},
    {"help", "Print this page, or that of a command", capo::cli::add_help, true},
    {"man", "Print the manual page of capo, or of a command", capo::cli::add_man, true},
    {"completion", "Print a script that completes capo's commands in a shell",
     capo::cli::add_completion, true},
}};

// The program with its commands. A command declares its options when the parser comes to it: all of
// them together take twenty thousand allocations, and a start needs one command's.
class Program {
 public:
  Program() {
    app.set_version_flag("--version", version_text());
    app.formatter(capo::cli::help_pages());
    app.fallthrough(false);
    // Without a limit CLI11 takes `check` behind `help` for a second command.
    app.require_subcommand(0, 1);
    app.footer(
        "Example: capo check --order \"[1, -1, -1.5]\"\n"
        "Exit codes: 0 accepted, 1 findings, 2 usage, 3 malformed input, 4 no verdict (a limit),\n"
        "5 environment, 70 internal, 130 interrupted");
    for (std::size_t i = 0; i < kCommands.size(); ++i) {
      commands_[i].app = app.add_subcommand(kCommands[i].name, kCommands[i].about);
      commands_[i].app->preparse_callback([this, i](std::size_t /*arguments*/) {
        kCommands[i].tells_of_others ? declare_all() : declare(i);
      });
    }
  }

  void declare_all() {
    for (std::size_t i = 0; i < kCommands.size(); ++i) declare(i);
  }

  // Runs the command that was parsed; without one, prints what there is.
  int run_parsed() const {
    for (const Declared& command : commands_) {
      if (!command.app->parsed()) continue;
      if (std::string why = capo::cli::two_from_standard_input(*command.app); !why.empty()) {
        throw CLI::ValidationError(why, CLI::ExitCodes::ValidationError);
      }
      return command.run();
    }
    return capo::cli::exit_code_after(capo::cli::write_stdout(app.help()));
  }

  CLI::App app{"capo: a verifier and simulator of pipeline-parallel capture orders", "capo"};

 private:
  struct Declared {
    CLI::App* app = nullptr;
    capo::cli::Run run;  ///< empty until the options are declared
  };

  void declare(std::size_t i) {
    if (commands_[i].run) return;
    commands_[i].run = kCommands[i].add(*commands_[i].app);
    capo::cli::read_decimally(*commands_[i].app);
  }

  std::array<Declared, kCommands.size()> commands_;
};

int run(int argc, char** argv) {
  Program program;
  const std::span<char* const> arguments(argv, capo::as_index(argc));
  try {
    program.app.parse(argc, argv);
    return program.run_parsed();
  } catch (const CLI::Success& wanted) {
    return print_and_leave(program.app, wanted);
  } catch (const CLI::ParseError& thrown) {
    return fail_usage(capo::cli::mistake_of(program.app, thrown, arguments,
                                            [&program] { program.declare_all(); }));
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
