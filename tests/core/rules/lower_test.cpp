#include "core/rules/lower.h"

#include "core/frameworks/torch/csv_printer.h"
#include "core/input/load.h"
#include "core/order/declare.h"
#include "core/text/order_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

Input input_of(std::string text) {
  auto input = load(Source{.name = "x", .text = std::move(text)}, {});
  EXPECT_TRUE(input);
  return std::move(*input);
}

std::string table(const Input& input, const CheckOptions& options = {}) {
  const auto lowered = lower(input, options);
  if (!lowered) return lowered.error().reason;
  const auto text = print_torch_csv(*lowered);
  return text ? *text : text.error().reason;
}

TEST(Lower, SendsFollowWhatTheySendAndReceivesJoinAtOnce) {
  EXPECT_EQ(table(input_of("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")),
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
}

TEST(Lower, ATableWithTransfersIsAsItWas) {
  const std::string text = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  EXPECT_EQ(table(input_of(text)), text);
}

TEST(Lower, WhatMegatronCallsStandsWhereItCallsIt) {
  Input input = input_of("0F0,0B0\n1F0,1B0\n");
  EXPECT_EQ(table(input, {.environment = {.p2p = MegatronCalls::Batch}}),
            "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
}

// --- reasons for none ----------------------------------------------------------------------------

const std::string kNone = "no transfers can be put in: ";

TEST(Lower, SaysWhyNot) {
  EXPECT_EQ(table(input_of("0F0,0F0,0B0\n1F0,1B0\n")),
            kNone + "the orders have errors of their own; `capo check` names them");
  EXPECT_EQ(table(input_of("[1, -1]")),
            kNone + "its chunks are not wired to each other; --topology wires them");
  EXPECT_EQ(table(input_of("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")),
            kNone + "the orders wait for each other; `capo check` shows where");
  Input chain = input_of(
      "capo 1\nranks 2\nchunks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_EQ(table(chain, {.environment = {.p2p = MegatronCalls::Overlap}}),
            kNone + "Megatron's transfers need stages that go around the ranks in a loop");
}

// No member of a composite can read another; what comes behind it would be left out.
TEST(Lower, SaysWhyNotWhereACompositeWaitsForItself) {
  for (const char* text :
       {"capo 1\nmicrobatches 1\nplacement chain\nrank 0: F1.0 F2.0 (B2.0 B1.0)\n",
        "capo 1\nmicrobatches 1\nplacement v\n"
        "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 (B2.0 B1.0)\n"}) {
    EXPECT_EQ(table(input_of(text)),
              kNone + "the orders wait for each other; `capo check` shows where")
        << text;
    EXPECT_EQ(table(input_of(text), {.environment = {.p2p = MegatronCalls::Flush}}).find(kNone),
              0U);
  }
}

TEST(Lower, SaysWhyNotWhereMegatronStops) {
  const Input input = input_of(
      "capo 1\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n"
      "rank 1: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n");
  EXPECT_EQ(table(input, {.environment = {.p2p = MegatronCalls::Batch}}),
            kNone + "Megatron's runtime stops at it; `capo check` shows where");
  EXPECT_NE(table(Input{}), "");
}

TEST(Lower, PartsOfLayersHaveNoNotation) {
  const CheckOptions options{.environment = {.ep_overlap = true},
                             .groups = {{.name = "experts",
                                         .members = {0, 1},
                                         .actions = {Kind::DispatchForward, Kind::CombineForward,
                                                     Kind::DispatchBackward, Kind::CombineBackward},
                                         .streams = {}}}};
  EXPECT_EQ(table(input_of("0F0,0B0\n1F0,1B0\n"), options),
            kNone + "its layers are taken apart, and no form has a notation for their parts");
}

// --- the verdict ---------------------------------------------------------------------------------

// Megatron's own order for two ranks, whose flushed calls finish because odd ranks send through a
// communicator of their own.
constexpr const char* kTwoCommunicators =
    "capo 1\nmicrobatches 4\nplacement loop\n"
    "rank 0: F1 F1 F2 F2 F1 B2 F1 B2 F2 B1 F2 B1 B2 B2 B1 B1\n"
    "rank 1: F1 F1 F2 B2 F2 B2 F1 B1 F1 B1 F2 B2 F2 B2 B1 B1\n";

TEST(Lower, WhatTheVerdictDependsOnAndNoFormSaysIsARefusal) {
  const Input input = input_of(kTwoCommunicators);
  const CheckOptions options{.environment = {.p2p = MegatronCalls::Flush}};
  ASSERT_EQ(check(input, options).verdict, Verdict::Accepted);
  const auto refused = lower(input, options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason,
            "no form says who waits for a transfer and which communicator it goes through; "
            "written down without that, the orders are rejected");
  EXPECT_TRUE(refused.error().droppable);
  EXPECT_TRUE(lower(input, options, Beside::Drop));
}

TEST(Lower, WhatIsWrittenHasTheVerdictOfTheInput) {
  for (const auto calls : {MegatronCalls::Batch, MegatronCalls::Overlap, MegatronCalls::Flush}) {
    for (const auto layout :
         {Communicators::PerRank, Communicators::PerPair, Communicators::PerEdge}) {
      const Input input = input_of(kTwoCommunicators);
      CheckOptions options{.environment = {.communicators = layout, .p2p = calls}};
      const Verdict verdict = check(input, options).verdict;
      const auto lowered = lower(input, options);
      if (!lowered) continue;
      options.environment.p2p.reset();
      EXPECT_EQ(check({.form = Form::OrderFile, .schedule = *lowered}, options).verdict, verdict);
    }
  }
}

TEST(Lower, AReplayHasTransfersOfItsOwn) {
  const auto lowered =
      lower(input_of("capo 1\nmicrobatches 2\nplacement chain\n"
                     "rank 0: F1.0 F1.1 B1.0 B1.1\nrank 0 replay: F1.1 F1.0 B1.1 B1.0\n"
                     "rank 1: F1.0 B1.0 F1.1 B1.1\nrank 1 replay: F1.1 B1.1 F1.0 B1.0\n"),
            {});
  ASSERT_TRUE(lowered);
  const std::string text = print_order_file(*lowered);
  EXPECT_NE(text.find("rank 0 replay: F1.1 send-F1.1 F1.0 send-F1.0 recv-B1.1 B1.1"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace capo
