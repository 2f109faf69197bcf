// What rules call entries in their messages, where no rule comes to all of it.

#include "core/rules/words.h"

#include "core/input/load.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace capo {
namespace {

Input input_of(std::string text, const LoadOptions& options = {}) {
  auto input = load(Source{.name = "x", .text = std::move(text)}, options);
  EXPECT_TRUE(input);
  return std::move(*input);
}

const CheckOptions kNothing;

TEST(Words, QuoteAStringWithoutItsQuotes) {
  const Input input = input_of(R"({"ranks": [{"order": ["F1.0", "B1.0"]}]})");
  const Context context(input, kNothing);
  const Entry& entry = context.orders().front().entries[0];
  EXPECT_EQ(words::quoted(context, entry), "`F1.0`");
  Entry cut = entry;
  --cut.length;
  EXPECT_EQ(words::quoted(context, cut), "`\"F1.0`") << "a string that does not end here";
}

TEST(Words, WriteAnEntryAsItsFormHasIt) {
  const Input list = input_of("[1, -1]");
  const Context of_list(list, kNothing);
  const OrderView& order = of_list.orders().front();
  const auto text = [&](Kind kind) {
    return words::entry_text(of_list, order, {.kind = kind, .chunk = 2});
  };
  EXPECT_EQ(text(Kind::Forward), "2");
  EXPECT_EQ(text(Kind::Backward), "-2");
  EXPECT_EQ(text(Kind::BackwardWeight), "-2.5");
}

TEST(Words, InsertBehindAnEntryWhereThereIsAPlace) {
  const auto edits = [](const Input& input, std::size_t at, auto change) {
    const Context context(input, kNothing);
    OrderView order = context.orders().front();
    std::vector<Entry> entries(order.entries.begin(), order.entries.end());
    change(entries.at(at));
    order.entries = entries;
    return words::insert_after(context, order, at,
                               {.kind = Kind::Forward, .chunk = 1, .microbatch = 0})
        .size();
  };
  const auto nothing = [](Entry&) {};
  EXPECT_EQ(edits(input_of("[1, -1]"), 1, nothing), 1u);
  EXPECT_EQ(edits(input_of("capo 1\nrank 0: F1.0 (F1.1 B1.0) B1.1\n"), 1, nothing), 0u);
  EXPECT_EQ(edits(input_of("[1, -1]"), 1, [](Entry& entry) { entry.length = 0xffff; }), 0u)
      << "nobody knows where it ends";
  EXPECT_EQ(edits(input_of(R"({"csv": ["0F0,0B0"]})"), 0, nothing), 1u);
  EXPECT_EQ(edits(input_of(R"({"csv": ["0F0,\u0030B0"]})"), 0, nothing), 0u)
      << "the row does not stand there byte for byte";
}

}  // namespace
}  // namespace capo
