#include "core/model/module_kinds.h"

#include <gtest/gtest.h>

#include <set>

namespace capo {
namespace {

TEST(ModuleKinds, AreNamedByTheirRows) {
  std::set<std::string_view> names;
  for (const ModuleKind kind : kModuleKinds) {
    EXPECT_EQ(facts_of(kind).kind, kind);
    EXPECT_EQ(module_kind_named(name_of(kind)), kind) << name_of(kind);
    names.insert(name_of(kind));
  }
  EXPECT_EQ(names.size(), kModuleKinds.size());
  EXPECT_EQ(module_kind_named("router"), std::nullopt);
  EXPECT_EQ(module_kind_named(""), std::nullopt);
}

TEST(ModuleKinds, ReadSizesOfGroupsOnlyWithGroups) {
  for (const ModuleKind kind : kModuleKinds) {
    const bool reads_sizes = facts_of(kind).kept_input == KeptInput::InputAndSizes;
    EXPECT_TRUE(!reads_sizes || is_grouped(kind)) << name_of(kind);
  }
}

// The first product of an attention has nothing in front of it.
TEST(ModuleKinds, MakeWhatTheFirstProductReadsBehindANormAndInMlpsAndModules) {
  for (const ModuleKind kind : kModuleKinds) {
    const bool makes = has_norm(kind) || is_mlp(kind) || is_made_of_modules(kind);
    EXPECT_EQ(facts_of(kind).kept_input == KeptInput::Made, makes) << name_of(kind);
  }
}

TEST(ModuleKinds, AreMadeUpInOneWayOfFour) {
  for (const ModuleKind kind : kModuleKinds) {
    const int ways = static_cast<int>(is_one_product(kind)) + static_cast<int>(is_mlp(kind)) +
                     static_cast<int>(is_attention(kind)) +
                     static_cast<int>(is_made_of_modules(kind));
    EXPECT_EQ(ways, 1) << name_of(kind);
    EXPECT_EQ(has_two_weights(kind), is_mlp(kind) || is_attention(kind) || has_router(kind))
        << name_of(kind);
    // Whoever is given sizes does not choose them.
    EXPECT_FALSE(has_router(kind) && is_grouped(kind)) << name_of(kind);
  }
  EXPECT_TRUE(is_attention(ModuleKind::Attention));
}

TEST(ModuleKinds, HaveTwoHalvesIfAttentionStandsInFrontOfTheRest) {
  for (const ModuleKind kind : kModuleKinds) {
    EXPECT_EQ(has_two_halves(kind), kind == ModuleKind::TransformerLayer) << name_of(kind);
  }
}

TEST(ModuleKinds, TakeTheirCellsFromAColumnThatHasItsOwn) {
  for (const ModuleKind kind : kModuleKinds) {
    const auto column = facts_of(kind).contract_column;
    EXPECT_EQ(column.has_value(), !is_made_of_modules(kind)) << name_of(kind);
    EXPECT_EQ(facts_of(column.value_or(kind)).contract_column, column) << name_of(kind);
  }
}

}  // namespace
}  // namespace capo
