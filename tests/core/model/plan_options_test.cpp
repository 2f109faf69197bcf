#include "core/model/plan_options.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

TEST(PlanOptions, KnowTheirKindsByName) {
  EXPECT_EQ(plan_named("te"), PlanKind::Te);
  EXPECT_EQ(plan_named("safe"), PlanKind::Safe);
  EXPECT_EQ(plan_named("mcore-local"), PlanKind::McoreLocal);
  EXPECT_EQ(name_of(PlanKind::McoreLocal), "mcore-local");
  EXPECT_EQ(plan_named("unsafe"), std::nullopt);
  EXPECT_EQ(plan_named("given"), std::nullopt);
}

}  // namespace
}  // namespace capo
