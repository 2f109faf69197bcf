// TransformerEngine's answers to a recipe on a device, row by row as its predicates give them.

#include "core/frameworks/te/quantization.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>

namespace capo::te {
namespace {

constexpr std::array kAll{Recipe::None,  Recipe::Delayed, Recipe::Current,
                          Recipe::Block, Recipe::Mxfp8,   Recipe::Nvfp4};

Environment device(std::optional<Architecture> architecture,
                   std::optional<std::int32_t> cublaslt = std::nullopt) {
  Environment environment;
  environment.architecture = architecture;
  environment.cublaslt = cublaslt;
  return environment;
}

Module grouped(Recipe recipe, ModuleKind kind = ModuleKind::GroupedLinear) {
  return {.name = "experts", .kind = kind, .dtype = DataType::Bf16, .recipe = recipe};
}

TEST(RecipeSupport, HasARowForEachRecipeAndArchitecture) {
  for (const Recipe recipe : kAll) {
    for (const Architecture architecture : {Architecture::Hopper, Architecture::Blackwell}) {
      int rows = 0;
      for (const RecipeSupport& row : kRecipeSupport)
        rows += row.recipe == recipe && row.architecture == architecture ? 1 : 0;
      EXPECT_EQ(rows, 1) << name_of(recipe) << " " << name_of(architecture);
    }
  }
}

TEST(RecipeSupport, RefusesBlocksOfThirtyTwoAndFourBitsOnHopperAlone) {
  for (const Recipe recipe : kAll) {
    const bool newer = recipe == Recipe::Mxfp8 || recipe == Recipe::Nvfp4;
    EXPECT_EQ(runs(recipe, device(Architecture::Hopper)), !newer) << name_of(recipe);
    EXPECT_TRUE(runs(recipe, device(Architecture::Blackwell)));
    EXPECT_TRUE(runs(recipe, device(std::nullopt))) << "some device may be meant";
  }
}

// The versions from which on the predicate of 2.20.2 says yes, and the one before each.
TEST(RecipeSupport, TakesSizesFromTheDeviceFromAVersionOn) {
  struct FromVersion {
    Recipe recipe;
    std::optional<std::int32_t> hopper;
    std::optional<std::int32_t> blackwell;
  };
  for (const FromVersion& row :
       {FromVersion{Recipe::None, 1304, 1303},
        FromVersion{Recipe::Delayed, std::nullopt, std::nullopt},
        FromVersion{Recipe::Current, 1305, 1303}, FromVersion{Recipe::Block, 1306, std::nullopt},
        FromVersion{Recipe::Mxfp8, std::nullopt, 1303},
        FromVersion{Recipe::Nvfp4, std::nullopt, 1303}}) {
    SCOPED_TRACE(name_of(row.recipe));
    const auto yes = [&](Architecture architecture, std::optional<std::int32_t> cublaslt) {
      return may_take_sizes_from_device(grouped(row.recipe), device(architecture, cublaslt));
    };
    const std::array columns{std::pair(Architecture::Hopper, row.hopper),
                             std::pair(Architecture::Blackwell, row.blackwell)};
    for (const auto& [architecture, from] : columns) {
      EXPECT_EQ(yes(architecture, std::nullopt), from.has_value());
      EXPECT_EQ(yes(architecture, 1399), from.has_value());
      if (!from) continue;
      EXPECT_TRUE(yes(architecture, *from));
      EXPECT_FALSE(yes(architecture, *from - 1));
    }
    EXPECT_EQ(may_take_sizes_from_device(grouped(row.recipe), device(std::nullopt)),
              row.hopper || row.blackwell);
  }
}

TEST(RecipeSupport, GivesModulesButNotOperationsTheSplitPathUnderAnOverride) {
  for (const ModuleKind kind : {ModuleKind::GroupedLinear, ModuleKind::GroupedLinearOp}) {
    Module module = grouped(Recipe::Mxfp8, kind);
    module.flags.high_precision_backward = true;
    EXPECT_EQ(may_take_sizes_from_device(module, device(std::nullopt)),
              kind == ModuleKind::GroupedLinearOp);
  }
  Module plain = grouped(Recipe::None);
  plain.flags.high_precision_backward = true;
  EXPECT_TRUE(may_take_sizes_from_device(plain, device(std::nullopt))) << "nothing to override";
}

TEST(RecipeSupport, SaysWhySizesComeFromTheHost) {
  EXPECT_EQ(why_sizes_come_from_host(grouped(Recipe::Delayed), device(std::nullopt)),
            "recipe delayed has no grouped product");
  EXPECT_EQ(why_sizes_come_from_host(grouped(Recipe::Block), device(Architecture::Blackwell)),
            "recipe block has no grouped product on Blackwell");
  EXPECT_EQ(why_sizes_come_from_host(grouped(Recipe::Current), device(Architecture::Hopper, 1304)),
            "recipe current has a grouped product on Hopper from cuBLASLt 13.5 on, and this is "
            "13.4");
  EXPECT_EQ(why_sizes_come_from_host(grouped(Recipe::None), device(std::nullopt, 1302)),
            "a product of 16 bits has a grouped product from cuBLASLt 13.3 on, and this is 13.2");
  Module wide = grouped(Recipe::None);
  wide.dtype = DataType::Fp32;
  EXPECT_EQ(why_sizes_come_from_host(wide, device(std::nullopt)),
            "grouped products are of 16 bits");
  Module overridden = grouped(Recipe::Mxfp8);
  overridden.flags.high_precision_backward = true;
  EXPECT_EQ(why_sizes_come_from_host(overridden, device(std::nullopt)),
            "a backward override has no grouped product");
}

}  // namespace
}  // namespace capo::te
