// Memory that runs out: for every n, the n-th allocation of a run fails.
//
// Either the run does not need it and ends as it would have, or it says so on one line (`out of
// memory`, or which memory of a run there is not) and leaves with 5: nothing on standard output,
// each file as it was or whole, and nothing that was allocated is left behind, save in JSON
// (scenarios.h) and where CLI11 lets nothing be caught and capo leaves at once
// (cli/main.cpp). All command lines allocate alike until a command declares its options, and those
// of one command until they are read: each beginning is gone through once, by a command line that
// asks for nothing but the version or the command's own page.

#include "tests/failing/judged.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <set>
#include <string>
#include <vector>

namespace capo::failing {
namespace {

using testing_support::Outcome;

const Scenario kNothing{.name = "Nothing", .arguments = {"--version"}, .files = {}};

// The host engine says which memory there is not, and a JSON report has it as its reason.
bool says_that_a_run_broke_off(const Outcome& outcome, const Scenario& scenario) {
  const bool in_words = outcome.out.empty() && outcome.err.starts_with(scenario.breaks_off);
  const bool in_json = outcome.err.empty() && outcome.out.find(R"("reason": )") != outcome.out.npos;
  const std::string& said = in_json ? outcome.out : outcome.err;
  const std::size_t engine = said.find("host engine: ");
  return (in_words || in_json) && engine != said.npos &&
         said.find(": there is no memory for ", engine) != said.npos;
}

bool says_out_of_memory(const FailedRun& run, const Scenario& scenario) {
  const Outcome& outcome = run.outcome;
  const bool plainly = outcome.out.empty() && told_in_the_end(run) == "error: out of memory\n";
  return outcome.exit_code == 5 && (plainly || says_that_a_run_broke_off(outcome, scenario));
}

void expect_told(FailingWorld& world, const Scenario& scenario, std::uint64_t from) {
  const FailedRun sound = world.run({});
  ASSERT_EQ(sound.outcome.exit_code, scenario.exit_code) << sound.outcome.err;
  std::uint64_t told = 0;
  std::uint64_t left_at_once = 0;
  for (std::uint64_t at = from; at <= sound.allocations; ++at) {
    SCOPED_TRACE(at);
    const FailedRun run = world.run({.failure = Failure::NoMemory, .at = at});
    const bool out_of_memory = says_out_of_memory(run, scenario);
    told += out_of_memory ? 1 : 0;
    ASSERT_TRUE(out_of_memory || ends_as(run, sound))
        << "exit code " << run.outcome.exit_code << "\n"
        << run.outcome.out << run.outcome.err;
    ASSERT_TRUE(files_are_whole(run, scenario, sound) && !leaves_unfinished(run));
    const bool may_leave_memory = run.left_at_once || scenario.prints == Prints::Json;
    ASSERT_TRUE(may_leave_memory || run.live <= sound.live) << "memory is left behind";
    left_at_once += run.left_at_once ? 1 : 0;
  }
  std::cout << sound.allocations << " allocations, of which each from " << from << " on failed; "
            << told << " told, " << left_at_once << " of these at once\n";
}

// How far two runs allocate alike.
std::uint64_t common_beginning(const FailedRun& a, const FailedRun& b) {
  const auto shorter = static_cast<std::ptrdiff_t>(std::min(a.sites.size(), b.sites.size()));
  const auto parting =
      std::mismatch(a.sites.begin(), a.sites.begin() + shorter, b.sites.begin()).first;
  return static_cast<std::uint64_t>(parting - a.sites.begin());
}

// A scenario that begins as this one. Its command line has as many words, since CLI11 makes room
// for them before all else.
Scenario beginning_of(const Scenario& scenario) {
  const std::string& command = scenario.arguments.front();
  const bool first = scenario.arguments.back() == "--help" || scenario.name == "Usage";
  if (first) return kNothing;
  std::vector<std::string> words(scenario.arguments.size(), "--help");
  words.front() = command;
  return {.name = command, .arguments = words, .files = {}};
}

std::uint64_t first_of_its_own(const Scenario& scenario) {
  const Scenario before = beginning_of(scenario);
  FailingWorld beginning(before.arguments, before.files);
  FailingWorld world(scenario.arguments, scenario.files);
  return common_beginning(beginning.run({}), world.run({})) + 1;
}

std::vector<Scenario> pages_of_commands() {
  std::set<std::string> commands;
  for (const Scenario& scenario : scenarios()) commands.insert(scenario.arguments.front());
  commands.erase("chekc");
  std::vector<Scenario> pages;
  for (const std::string& command : commands) {
    pages.push_back({.name = command, .arguments = {command, "--help"}, .files = {}});
  }
  return pages;
}

class Memory : public testing::TestWithParam<Scenario> {};

TEST_P(Memory, ThatRunsOutIsToldAndNothingIsHalfDone) {
  FailingWorld world(GetParam().arguments, GetParam().files);
  expect_told(world, GetParam(), first_of_its_own(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Failing, Memory, testing::ValuesIn(scenarios()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Options, Memory, testing::ValuesIn(pages_of_commands()),
                         [](const auto& of) { return of.param.name; });

TEST(MemoryAtTheBeginning, ThatRunsOutIsTold) {
  FailingWorld world(kNothing.arguments, kNothing.files);
  expect_told(world, kNothing, 1);
}

}  // namespace
}  // namespace capo::failing
