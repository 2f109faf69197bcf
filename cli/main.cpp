// The command line: one subcommand, one file under commands/.

#include <capo/cli/commands/commands.h>
#include <capo/cli/exit_code.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <csignal>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace {

// The upstream commits that the profiles follow: a prediction is worth what it was read from.
constexpr const char* kVersion =
    "capo " CAPO_VERSION
    "\nprofiles: te d0067d0da, mcore d98e8a64dd, torch 2.11\nlanguage: .order 1, JSON schema 1";

// Nothing is half written when a user interrupts: files are renamed into place when whole.
extern "C" void interrupted(int /*signal*/) {
  std::_Exit(capo::cli::kInterrupted);
}

int run(int argc, char** argv) {
  CLI::App app{"capo: a verifier of pipeline-parallel capture orders", "capo"};
  app.set_version_flag("--version", kVersion);
  app.require_subcommand(1);
  app.fallthrough(false);
  app.footer(
      "Exit codes: 0 accepted, 1 findings, 2 usage, 3 malformed input, 4 no verdict (a limit), "
      "5 environment, 70 internal, 130 interrupted");

  using namespace capo::cli;
  const std::vector<std::pair<const char*, Run>> commands{
      {"check", add_check(app)}, {"convert", add_convert(app)}, {"explain", add_explain(app)},
      {"rules", add_rules(app)}, {"devices", add_devices(app)},
  };
  try {
    app.parse(argc, argv);
    for (const auto& [name, command] : commands) {
      if (app.got_subcommand(name)) return command();
    }
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kAccepted : kUsage;
  }
  return kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, interrupted);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return capo::cli::kEnvironment;
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n  this is a bug in capo; please report it with the input\n",
               error.what());
    return capo::cli::kInternal;
  }
}
