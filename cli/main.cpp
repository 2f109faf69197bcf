// The command line: every command is a file under commands/.
//
// main() catches what is thrown when memory runs out. CLI11 also allocates where nothing can be
// caught, in objects that are made before main() and in functions that promise not to throw; that
// ends in std::terminate, and is told there in the same words with the same exit code. Anything
// else that comes to std::terminate is a bug of capo's and aborts. CLI11 writes its help into
// streams, which swallow what is thrown and stop in the middle, so help is printed only if memory
// never ran out. tests/failing/memory_test.cpp fails every allocation of every command.

#include "cli/commands/commands.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/numbers.h"
#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/frameworks/megatron/version.h"
#include "core/frameworks/te/version.h"
#include "core/frameworks/torch/version.h"
#include "core/text/printable.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
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
#include <utility>
#include <vector>

namespace {

int fail_out_of_memory() {
  capo::cli::print_stderr("error: out of memory\n");
  return capo::cli::kEnvironment;
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
      CAPO_VERSION, capo::te::kNewest.commit, capo::megatron::kNewest.commit,
      capo::torch::kNewest.release);
}

// An interrupt leaves no half written file: files are renamed into place when they are whole.
extern "C" void interrupted(int /*signal*/) {
  std::_Exit(capo::cli::kInterrupted);
}

// A word that stands where a command is expected, and the command that it may be.
std::string unknown_command(const std::string& word, std::span<const std::string_view> commands) {
  const std::string hint = capo::did_you_mean(word, commands);
  return "there is no command `" + capo::printable(word, 40) + "`" +
         (hint.empty() ? "" : "; " + hint);
}

// Cuts a long piece of the command line wherever a message echoes it. Paths mostly stay whole.
void shorten(std::string& message, std::string_view piece) {
  constexpr std::size_t kLongest = 100;
  if (piece.size() <= kLongest) return;
  const std::string shortened = capo::printable(piece, kLongest);
  for (std::size_t at = message.find(piece); at != std::string::npos;
       at = message.find(piece, at + shortened.size())) {
    message.replace(at, piece.size(), shortened);
  }
}

// CLI11 echoes a whole argument, or the value behind its `=`, or one item of a list.
std::string with_short_arguments(std::string message, std::span<char* const> arguments) {
  for (const std::string_view argument : arguments) {
    shorten(message, argument);
    shorten(message, argument.substr(std::min(argument.find('=') + 1, argument.size())));
    for (std::size_t begin = 0; begin < argument.size();) {
      const std::size_t end = std::min(argument.find_first_of("=,", begin), argument.size());
      shorten(message, argument.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return message;
}

int fail_usage(const std::string& message) {
  capo::cli::print_error({.kind = capo::ErrorKind::Environment,
                          .message = message,
                          .help = "`capo --help` and `capo COMMAND --help` tell what there is"});
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

int run(int argc, char** argv) {
  CLI::App app{"capo: a verifier and simulator of pipeline-parallel capture orders", "capo"};
  app.set_version_flag("--version", version_text());
  app.fallthrough(false);
  app.footer(
      "Example: capo check --order \"[1, -1, -1.5]\"\n"
      "Exit codes: 0 accepted, 1 findings, 2 usage, 3 malformed input, 4 no verdict (a limit), "
      "5 environment, 70 internal, 130 interrupted");

  using namespace capo::cli;
  const std::vector<std::pair<std::string_view, Run>> commands{
      {"check", add_check(app)},       {"convert", add_convert(app)},
      {"generate", add_generate(app)}, {"simulate", add_simulate(app)},
      {"compare", add_compare(app)},   {"sweep", add_sweep(app)},
      {"run", add_run(app)},           {"measure", add_measure(app)},
      {"graph", add_graph(app)},       {"minimise", add_minimise(app)},
      {"explain", add_explain(app)},   {"rules", add_rules(app)},
      {"devices", add_devices(app)},   {"model", add_model(app)},
  };
  read_decimally(app);
  std::vector<std::string_view> names;
  names.reserve(commands.size());
  for (const auto& [name, command] : commands) names.push_back(name);
  const std::span<char* const> arguments(argv, capo::as_index(argc));
  try {
    app.parse(argc, argv);
    for (const auto& [name, command] : commands) {
      if (app.got_subcommand(std::string(name))) return command();
    }
    return fail_usage("no command; there are " + capo::listed(names));
  } catch (const CLI::Success& wanted) {
    return print_and_leave(app, wanted);
  } catch (const CLI::ExtrasError& error) {
    const bool command_given = !app.get_subcommands().empty();
    const std::string word = argc > 1 ? argv[1] : "";
    if (!command_given && !word.starts_with('-')) return fail_usage(unknown_command(word, names));
    return fail_usage(with_short_arguments(error.what(), arguments));
  } catch (const CLI::ParseError& error) {
    return fail_usage(with_short_arguments(error.what(), arguments));
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
