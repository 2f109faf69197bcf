// Laws of simulated time, on schedules whose chains can be counted by hand.

#include "testing/laws/times.h"

#include "core/input/load.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace capo::testing {
namespace {

Schedule read(std::string text) {
  auto input = load(Source{.name = "<test>", .text = std::move(text)}, {});
  EXPECT_TRUE(input.has_value());
  return std::move(input->schedule);
}

// Each text is about one scope.
Costs costs(std::initializer_list<std::string_view> texts) {
  Costs all;
  for (const std::string_view text : texts) {
    const auto settings = read_costs(text);
    EXPECT_TRUE(settings.has_value());
    for (const CostSetting& setting : *settings) all.set(setting);
  }
  return all;
}

TEST(Times, AChainIsThatOfOneMicrobatchThroughAllStages) {
  const Schedule two =
      read("capo 1\nplacement chain\nrank 0: F1.0 F1.1 B1.0 B1.1\nrank 1: F1.0 B1.0 F1.1 B1.1\n");
  // F F B+W B+W
  EXPECT_EQ(laws::longest_chain(two, costs({"f=3,b=5,w=7"})), 3 + 3 + 12 + 12);
  EXPECT_EQ(laws::longest_chain(two, costs({"f=3,b=5,w=7", "r1:f=10"})), 3 + 10 + 12 + 12);
}

TEST(Times, AWeightGradientOfItsOwnIsNoPartOfTheChain) {
  const Schedule one = read("capo 1\nplacement chain\nrank 0: F1.0 B1.0 W1.0\n");
  EXPECT_EQ(laws::longest_chain(one, costs({"f=3,b=5,w=7"})), 3 + 5);
}

TEST(Times, AChainIsThatOfTheReplay) {
  const Schedule one = read(
      "capo 1\nplacement chain\nrank 0 mixed 1\nrank 0: F1.0 B1.0\nrank 0 replay: F1.0 I1.0 "
      "W1.0\n");
  EXPECT_EQ(laws::longest_chain(one, costs({"f=3,b=5,w=7"})), 3 + 5);
}

TEST(Times, ChunksThatAreNotWiredAreChainsOfTheirOwn) {
  const Schedule two = read("capo 1\nrank 0: F1 F2 B2 B1\n");
  EXPECT_EQ(laws::longest_chain(two, costs({"f=3,b=5,w=7", "c2:f=4"})), 4 + 12);
}

TEST(Times, CostsByLayerKnowNoChain) {
  const Schedule one = read("capo 1\nplacement chain\nrank 0: F1.0 B1.0\n");
  EXPECT_EQ(laws::longest_chain(one, costs({"f=3", "l0:f=5"})), 0);
}

TEST(Times, HoldOfAStepThatIsOneChain) {
  const Schedule one = read("capo 1\nplacement chain\nrank 0: F1.0 B1.0\nrank 1: F1.0 B1.0\n");
  const SimulationOptions options{.costs = costs({"f=3,b=5,w=7"})};
  EXPECT_EQ(laws::finishes_where_accepted(one, options), std::nullopt);
  EXPECT_EQ(laws::is_no_faster_than_its_chains(one, options), std::nullopt);
}

TEST(Times, SayNothingOfWhatIsNotAccepted) {
  const Schedule broken = read("capo 1\nplacement chain\nrank 0: B1.0 F1.0\n");
  EXPECT_EQ(laws::finishes_where_accepted(broken), std::nullopt);
  EXPECT_EQ(laws::is_no_faster_than_its_chains(broken), std::nullopt);
}

}  // namespace
}  // namespace capo::testing
