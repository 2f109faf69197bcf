#include "testing/oracle/quantized.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace capo::oracle {
namespace {

using Stale = std::vector<int>;

TEST(OracleQuantized, ForwardsInFrontOfTheFirstMicrobatchAreStale) {
  EXPECT_EQ(stale_forwards({{1, 0}, {1, 1}, {1, 2}}), Stale());
  EXPECT_EQ(stale_forwards({{1, 1}, {1, 2}, {1, 0}, {1, 3}}), (Stale{0, 1}));
  EXPECT_EQ(stale_forwards({}), Stale());
}

TEST(OracleQuantized, EachChunkHasAWeightOfItsOwn) {
  EXPECT_EQ(stale_forwards({{1, 0}, {2, 1}, {2, 0}, {1, 1}, {2, 2}}), (Stale{1}));
}

TEST(OracleQuantized, AWeightThatNobodyMakesAnewIsOfNoStep) {
  EXPECT_EQ(stale_forwards({{1, 1}, {1, 2}}), Stale());
}

TEST(OracleQuantized, MembersPartWhereTheirPassesDo) {
  EXPECT_EQ(parting_of_magnitudes({}), std::nullopt);
  EXPECT_EQ(parting_of_magnitudes({"FFBB", "FFBB", "FFBB"}), std::nullopt);
  EXPECT_EQ(parting_of_magnitudes({"FFBB", "FBFB"}), 1);
  EXPECT_EQ(parting_of_magnitudes({"FFBB", "FFBB", "FFB"}), 3) << "one has no fourth";
  EXPECT_EQ(parting_of_magnitudes({"", "F"}), 0);
}

using enum QuantizingTrouble;
using Troubles = std::set<QuantizingTrouble>;

TEST(OracleQuantized, ARecipeOfBlackwellIsRefusedByHopperAlone) {
  const QuantizedModule module{.recipe = QuantizedModule::Mxfp8};
  EXPECT_EQ(troubles_of(module, {.kind = QuantizingDevice::Hopper}), Troubles{RecipeRefused});
  EXPECT_EQ(troubles_of(module, {.kind = QuantizingDevice::Blackwell}), Troubles());
  EXPECT_EQ(troubles_of(module, {}), Troubles());
}

TEST(OracleQuantized, SizesAreFetchedWhereNoDeviceThatIsMeantMultipliesAllGroups) {
  QuantizedModule module{.recipe = QuantizedModule::Block, .groups = true, .sizes_on_device = true};
  EXPECT_EQ(troubles_of(module, {}), Troubles()) << "Hopper may be meant";
  EXPECT_EQ(troubles_of(module, {.cublaslt = 1305}), Troubles{SizesFetched});
  EXPECT_EQ(troubles_of(module, {.cublaslt = 1306}), Troubles());
  EXPECT_EQ(troubles_of(module, {.kind = QuantizingDevice::Blackwell}), Troubles{SizesFetched});
  module.plain_backward = true;
  EXPECT_EQ(troubles_of(module, {}), Troubles{SizesFetched});
  module.operation = true;
  EXPECT_EQ(troubles_of(module, {}), Troubles());
  module.recipe = QuantizedModule::Delayed;
  module.full_precision = true;
  EXPECT_EQ(troubles_of(module, {}), Troubles());
}

TEST(OracleQuantized, AWeightThatIsNotTrainedHasNeitherABiasNorACacheToMiss) {
  QuantizedModule module{.recipe = QuantizedModule::Current,
                         .dense_mlp = true,
                         .delays_weights = true,
                         .bias = true,
                         .python_says_requantize = true};
  EXPECT_EQ(troubles_of(module, {}), (Troubles{BiasMissed, WeightNeverRenewed}));
  module.plain_backward = true;
  EXPECT_EQ(troubles_of(module, {}), Troubles{WeightNeverRenewed});
  module.trained = false;
  EXPECT_EQ(troubles_of(module, {}), Troubles());
}

}  // namespace
}  // namespace capo::oracle
