// The words for how ranks communicate, and what holds where nothing is declared.

#include "core/model/environment.h"

#include <gtest/gtest.h>

#include <string_view>

namespace capo {
namespace {

TEST(Environment, EveryWordNamesWhatItIsTheNameOf) {
  for (const std::string_view word : {"per-rank", "per-pair", "per-edge"})
    EXPECT_EQ(name_of(communicators_named(word).value()), word);
  for (const std::string_view word : {"rendezvous", "buffered"})
    EXPECT_EQ(name_of(transfer_mode_named(word).value()), word);
  for (const std::string_view word : {"batch", "overlap", "flush"})
    EXPECT_EQ(name_of(megatron_calls_named(word).value()), word);
}

TEST(Environment, TheWordsAreThese) {
  EXPECT_EQ(communicators_named("per-rank"), Communicators::PerRank);
  EXPECT_EQ(communicators_named("per-pair"), Communicators::PerPair);
  EXPECT_EQ(communicators_named("per-edge"), Communicators::PerEdge);
  EXPECT_EQ(transfer_mode_named("rendezvous"), TransferMode::Rendezvous);
  EXPECT_EQ(transfer_mode_named("buffered"), TransferMode::Buffered);
  EXPECT_EQ(megatron_calls_named("batch"), MegatronCalls::Batch);
  EXPECT_EQ(megatron_calls_named("overlap"), MegatronCalls::Overlap);
  EXPECT_EQ(megatron_calls_named("flush"), MegatronCalls::Flush);
}

TEST(Environment, OtherWordsNameNothing) {
  for (const std::string_view word : {"", "per", "Per-Rank", "per-rank ", "perrank", "batch"})
    EXPECT_EQ(communicators_named(word), std::nullopt) << word;
  for (const std::string_view word : {"", "buffer", "Buffered", "per-rank"})
    EXPECT_EQ(transfer_mode_named(word), std::nullopt) << word;
  for (const std::string_view word : {"", "none", "batched", "Flush"})
    EXPECT_EQ(megatron_calls_named(word), std::nullopt) << word;
}

// What finishes with one communicator a rank and with sends that wait finishes with every other.
TEST(Environment, WhatIsNotDeclaredIsTheStrictest) {
  const Environment nothing;
  EXPECT_EQ(nothing.layout(), Communicators::PerRank);
  EXPECT_FALSE(nothing.buffered());
  EXPECT_FALSE(nothing.p2p);
  EXPECT_FALSE(nothing.ep_overlap);
  EXPECT_EQ((Environment{.communicators = Communicators::PerEdge}.layout()),
            Communicators::PerEdge);
  EXPECT_TRUE((Environment{.transfers = TransferMode::Buffered}.buffered()));
}

TEST(Environment, AChannelHoldsWholeMessages) {
  const auto held = [](std::int64_t channel, std::int64_t message) {
    return Environment{
        .transfers = TransferMode::Buffered, .channel_bytes = channel, .message_bytes = message}
        .held();
  };
  EXPECT_EQ(held(0, 8), 0U);
  EXPECT_EQ(held(7, 8), 0U);
  EXPECT_EQ(held(8, 8), 1U);
  EXPECT_EQ(held(31, 8), 3U);
  EXPECT_EQ(Environment{}.held(), 0U);
  EXPECT_GT((Environment{.transfers = TransferMode::Buffered}.held()), 1U << 30);
}

TEST(Environment, WhatIsDeclaredDiffersFromWhatIsAssumed) {
  EXPECT_NE(Environment{}, (Environment{.communicators = Communicators::PerRank}));
}

TEST(Environment, ReducesMagnitudesOnRanksThatThereAre) {
  Environment environment;
  EXPECT_EQ(misfit_of_amax_group(environment, 1), std::nullopt);
  environment.amax_group = {0, 2};
  EXPECT_EQ(misfit_of_amax_group(environment, 3), std::nullopt);
  EXPECT_EQ(misfit_of_amax_group(environment, 2),
            "`amax_group` has rank 2, but the input has ranks 0 to 1");
}

}  // namespace
}  // namespace capo
