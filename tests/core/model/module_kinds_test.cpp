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
  EXPECT_EQ(module_kind_named("attention"), std::nullopt);
  EXPECT_EQ(module_kind_named(""), std::nullopt);
}

TEST(ModuleKinds, ReadSizesOfGroupsOnlyWithGroups) {
  for (const ModuleKind kind : kModuleKinds) {
    const bool reads_sizes = facts_of(kind).kept_input == KeptInput::InputAndSizes;
    EXPECT_TRUE(!reads_sizes || is_grouped(kind)) << name_of(kind);
  }
}

TEST(ModuleKinds, MakeWhatWReadsBehindANormAndBetweenProducts) {
  for (const ModuleKind kind : kModuleKinds) {
    const bool makes = has_norm(kind) || !is_one_product(kind);
    EXPECT_EQ(facts_of(kind).kept_input == KeptInput::Made, makes) << name_of(kind);
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
