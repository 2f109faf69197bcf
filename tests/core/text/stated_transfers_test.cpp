// Modes of transfers with the bytes of a channel, as flags and files state them.

#include "core/text/stated_transfers.h"

#include <gtest/gtest.h>

#include <string_view>

namespace capo {
namespace {

TEST(StatedTransfers, ReadBackAsTheyArePrinted) {
  for (const std::string_view text : {"rendezvous", "buffered", "buffered:0", "buffered:4194304"}) {
    const auto stated = transfers_stated(text);
    ASSERT_TRUE(stated) << text;
    EXPECT_EQ(transfers_text({.transfers = stated->mode, .channel_bytes = stated->channel_bytes}),
              text);
  }
  for (const std::string_view text : {"buffered:", "buffered:-1", "buffered:1k", "buffered: 1",
                                      "rendezvous:1", "buffered:9223372036854775808", ""})
    EXPECT_FALSE(transfers_stated(text)) << text;
}

}  // namespace
}  // namespace capo
