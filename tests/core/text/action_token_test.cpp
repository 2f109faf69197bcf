#include "core/text/action_token.h"

#include <gtest/gtest.h>

#include <limits>

namespace capo {
namespace {

TEST(ActionToken, ReadsAndWritesEveryKind) {
  for (const char* text :
       {"F1.0", "B2.3", "I1.1", "W7.0", "send-F1.0", "recv-F2.1", "send-B1.0", "recv-B3.2",
        "dispatch-F1.0", "combine-F2.1", "dispatch-B1.0", "combine-B3.2", "unshard1", "reshard2",
        "reduce3", "wait-send-F1.0", "wait-send-B2.7", "wait-reduce3", "."}) {
    const auto token = read_action_token(text);
    ASSERT_TRUE(token) << text;
    const Action action{
        .kind = token->kind,
        .chunk = static_cast<std::int32_t>(token->chunk),
        .microbatch = token->microbatch
                          ? MicrobatchId(static_cast<std::int32_t>(*token->microbatch))
                          : kNoMicrobatch};
    EXPECT_EQ(to_token(action, Naming::Named), text);
  }
}

TEST(ActionToken, LeavesTheMicrobatchOutWhereItIsCounted) {
  EXPECT_FALSE(read_action_token("F1")->microbatch);
  EXPECT_EQ(to_token({.kind = Kind::Forward, .chunk = 1, .microbatch = 4}, Naming::Counted), "F1");
}

TEST(ActionToken, IsNoOtherText) {
  for (const char* text : {"", "F", "f1", "F01", "F1.", "F1.01", "F1.0x", "F-1", "X1", "reduce1.0",
                           "F1.0.0", "sendF1", "dispatch1", "dispatch-W1", "combine-F",
                           "dispatch-F1.0.0", "wait-F1.0", "wait-recv-F1.0", "wait-reduce1.0"}) {
    EXPECT_FALSE(read_action_token(text)) << text;
  }
}

TEST(ResetToken, ReadsAndWritesEachName) {
  for (const char* text : {"reset", "reset2", "reset1.0", "reset3.12"}) {
    const auto token = read_reset_token(text);
    ASSERT_TRUE(token) << text;
    const Reset reset{
        .chunk = static_cast<std::int32_t>(token->chunk.value_or(0)),
        .microbatch = token->microbatch
                          ? MicrobatchId(static_cast<std::int32_t>(*token->microbatch))
                          : kNoMicrobatch};
    EXPECT_EQ(to_token(reset), text);
    EXPECT_FALSE(read_action_token(text)) << text;
  }
}

TEST(ResetToken, IsNoOtherText) {
  for (const char* text : {"", "res", "resets", "reset-1", "reset01", "reset1.", "reset1.x",
                           "reset.0", "reset1.0.0", "reshard1"}) {
    EXPECT_FALSE(read_reset_token(text)) << text;
  }
}

TEST(ActionToken, TakesANumberTooLongForTheLargest) {
  EXPECT_EQ(read_action_token("F99999999999999999999")->chunk,
            std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace capo
