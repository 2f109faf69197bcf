// What is shown of a broken order is pasted, as whoever reads it would, and the program reports the
// rule that the fault is for.

#include "testing/faults/faults.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_planned.h"
#include "testing/generators/sound_schedule.h"
#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"
#include "tests/testing/sample.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

// Lines for a shell are given to one, in which `capo` is the program that is tested.
Outcome pasted_into_a_shell(const std::string& lines) {
  const ScratchFolder folder;
  return run_capo({"-c", "capo() { " + std::string(testing_support::program_under_test()) +
                             " \"$@\"; }\n" + lines},
                  {.directory = folder.path().string(), .program = "/bin/sh"});
}

// All else goes to `capo check -`, with the model that the comments above it say.
Outcome pasted(const std::string& shown) {
  if (shown.starts_with("cat ")) return pasted_into_a_shell(shown);
  const std::string head = "# declared: capo check - --model FILE, of\n# ";
  if (!shown.starts_with(head)) return run_capo({"check", "-"}, {.input = shown});
  const ScratchFolder folder;
  const std::size_t end = shown.find('\n', head.size());
  const std::string model =
      folder.write("declared.model", shown.substr(head.size(), end - head.size()));
  return run_capo({"check", "-", "--model", model}, {.input = shown});
}

// Each fault at several places of several subjects.
template <typename Subject>
void expect_their_rules(std::span<const Fault<Subject>> faults,
                        const std::vector<Subject>& subjects) {
  constexpr std::size_t kEnough = 8;
  for (const Fault<Subject>& fault : faults) {
    std::size_t seen = 0;
    for (std::size_t i = 0; i < subjects.size() && seen < kEnough; ++i) {
      const auto broken = fault.apply(subjects[i], 5 * i);
      if (!broken) continue;
      ++seen;
      const std::string text = shown(broken->subject);
      const Outcome outcome = pasted(text);
      EXPECT_EQ(outcome.exit_code, 1) << fault.name << "\n" << text << outcome.err;
      EXPECT_TRUE(holds(outcome.out, fmt::format("error[{}]", broken->rule)))
          << fault.name << "\n"
          << text << outcome.out;
    }
    EXPECT_GT(seen, 0U) << fault.name;
  }
}

std::vector<Table> sample_tables(std::size_t count) {
  std::vector<Table> tables;
  for (const Schedule& schedule : sample(sound_named_schedule(), count))
    tables.push_back(table_of(schedule));
  return tables;
}

constexpr std::size_t kSubjects = 200;

TEST(Paste, OfABrokenListGivesItsRule) {
  expect_their_rules(list_faults(), sample(sound_order(), kSubjects));
}

TEST(Paste, OfABrokenOrderGivesItsRule) {
  expect_their_rules(order_faults(), sample(sound_named_schedule(), kSubjects));
}

TEST(Paste, OfABrokenTableGivesItsRule) {
  expect_their_rules(table_faults(), sample_tables(kSubjects));
}

TEST(Paste, OfBrokenCommunicationGivesItsRule) {
  expect_their_rules(communication_faults(), sample(sound_communication(), kSubjects));
}

TEST(Paste, OfBrokenModulesGivesItsRule) {
  expect_their_rules(module_faults(), sample(sound_declared(), kSubjects));
}

TEST(Paste, OfABrokenPlanGivesItsRule) {
  expect_their_rules(plan_faults(), sample(sound_planned(), kSubjects));
}

}  // namespace
}  // namespace capo::testing
