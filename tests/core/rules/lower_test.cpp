#include <capo/core/rules/lower.h>

#include <capo/core/order/declare_topology.h>
#include <capo/core/text/load.h>
#include <capo/core/text/torch_csv_printer.h>

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
  if (!lowered) return lowered.error();
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

TEST(Lower, SaysWhyNot) {
  EXPECT_EQ(table(input_of("0F0,0F0,0B0\n1F0,1B0\n")),
            "the orders have errors of their own; `capo check` names them");
  EXPECT_EQ(table(input_of("[1, -1]")),
            "its chunks are not wired to each other; --topology wires them");
  EXPECT_EQ(table(input_of("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")),
            "the orders wait for each other; `capo check` shows where");
  Input chain = input_of(
      "capo 1\nranks 2\nchunks 2\nmicrobatches 1\nplacement chain\n"
      "rank 0: F1.0 F2.0 B2.0 B1.0\nrank 1: F1.0 F2.0 B2.0 B1.0\n");
  EXPECT_EQ(table(chain, {.environment = {.p2p = MegatronCalls::Overlap}}),
            "Megatron's transfers need stages that go around the ranks in a loop");
}

TEST(Lower, SaysWhyNotWhereMegatronStops) {
  const Input input = input_of(
      "capo 1\nmicrobatches 2\nplacement loop\n"
      "rank 0: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n"
      "rank 1: F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1\n");
  EXPECT_EQ(table(input, {.environment = {.p2p = MegatronCalls::Batch}}),
            "Megatron's runtime stops at it; `capo check` shows where");
  EXPECT_NE(table(Input{}), "");
}

}  // namespace
}  // namespace capo
