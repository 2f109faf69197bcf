// Whatever the catalogue makes, the verifier accepts, under the strictest of environments: one
// queue of transfers a rank, and sends that wait for their receives.

#include "core/rules/check.h"
#include "tests/sim/published_requests.h"

#include <gtest/gtest.h>

#include <map>

namespace capo {
namespace {

using namespace published_requests;

std::string findings(const CheckResult& result) {
  std::string text;
  for (const Diagnostic& finding : result.diagnostics.kept()) text += finding.message + "\n";
  return text;
}

TEST(Verified, EveryNameOfTheCatalogueIsAccepted) {
  for (const Request& request : every_request()) {
    SCOPED_TRACE(words_for(request));
    const Input input{.form = Form::OrderFile,
                      .schedule = schedules::schedule_named(request).value()};
    const CheckResult result = check(input);
    EXPECT_EQ(result.verdict, Verdict::Accepted) << findings(result);
    // One rank has no transfers that could wait for each other, so nobody asked.
    EXPECT_EQ(result.finishes, request.ranks > 1 ? std::optional(true) : std::nullopt);
    EXPECT_TRUE(result.skipped.empty());
  }
}

/// A grid on which a name was refused throughout would show nothing.
TEST(Verified, TheGridHasEveryNameOften) {
  std::map<std::string, int> count;
  for (const Request& request : every_request()) ++count[request.name];
  for (const schedules::Entry& entry : schedules::entries()) {
    EXPECT_GE(count[std::string(entry.name)], 4) << entry.name;
  }
  for (const schedules::TorchClass each : schedules::kTorchClasses) {
    EXPECT_GE(count[fmt::format("torch:{}", schedules::name_of(each))], 4)
        << schedules::name_of(each);
  }
}

}  // namespace
}  // namespace capo
