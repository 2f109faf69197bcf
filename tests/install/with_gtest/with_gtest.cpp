// As docs/testing.md shows it: a law as an assertion, and as a property.

#include <capo/testing/generators/sound_schedule.h>
#include <capo/testing/gtest/holds.h>
#include <capo/testing/laws/verdicts.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace {

using capo::testing::holds;
namespace laws = capo::testing::laws;

TEST(WithGtest, LawsAreAssertions) {
  EXPECT_FALSE(holds(laws::is_accepted(capo::Schedule{})));
}

RC_GTEST_PROP(WithGtest, LawsAreProperties, ()) {
  capo::testing::require(laws::is_accepted(*capo::testing::sound_schedule()));
}

}  // namespace
