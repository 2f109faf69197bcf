#include "testing/oracle/waits.h"

#include <gtest/gtest.h>

namespace capo::oracle {
namespace {

using enum OfWaits;
using Places = std::vector<std::size_t>;

TEST(WaitsOracle, ServesAWaitBehindWhatItIsFor) {
  EXPECT_EQ(waits_for_nothing({}), Places{});
  EXPECT_EQ(waits_for_nothing({Begin, Other, Wait}), Places{});
  EXPECT_EQ(waits_for_nothing({Begin, Begin, Wait, Wait}), Places{});
}

TEST(WaitsOracle, SeesAWaitThatIsTooEarlyOrOneTooMany) {
  EXPECT_EQ(waits_for_nothing({Wait, Begin}), Places{0});
  EXPECT_EQ(waits_for_nothing({Begin, Wait, Wait, Other, Wait}), (Places{2, 4}));
}

TEST(WaitsOracle, CountsWhatIsLeft) {
  EXPECT_EQ(left_pending({Other, Wait}), 0U);
  EXPECT_EQ(left_pending({Wait, Begin}), 1U);
  EXPECT_EQ(left_pending({Begin, Wait, Begin, Begin}), 2U);
}

}  // namespace
}  // namespace capo::oracle
