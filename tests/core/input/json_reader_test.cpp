#include "core/input/json_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Read<Input> read(const std::string& text, ExtraKeys extra = ExtraKeys::Refused) {
  auto document = JsonDocument::parse(text, {});
  if (!document) return document.error();
  return read_json_schedule(*document, {}, extra);
}

std::string refusal(const std::string& text) {
  const auto input = read(text);
  return input ? "" : input.error().finding.message;
}

TEST(JsonReader, ReadsATeListAsPythonHoldsIt) {
  const Input input =
      read(R"({"order":[1,-1.5,1.0,"NaN",-0],"num_layers_per_chunk":2,"need_wgrad":[true]})")
          .value();
  EXPECT_EQ(input.form, Form::TeList);
  EXPECT_EQ(input.te_list.entries.at(1).type, NumberType::Float);
  EXPECT_EQ(input.te_list.entries.at(2).type, NumberType::Float);
  EXPECT_EQ(input.odd_entries, (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(input.schedule.ranks.at(0).layers.form, Layers::Form::Count);
  EXPECT_EQ(read(R"({"order":[1],"num_layers_per_chunk":null})")->schedule.ranks.at(0).layers.form,
            Layers::Form::Null);
}

TEST(JsonReader, ReadsATableWithItsPlaces) {
  const std::string text =
      R"({"csv":["0F0,0B0","1F0,1B0"],"stage_to_rank":[0,1],"microbatches":1})";
  const Input input = read(text).value();
  EXPECT_EQ(input.form, Form::TorchCompute);
  const Entry& entry = input.schedule.ranks.at(1).order.at(1);
  EXPECT_EQ(text.substr(entry.offset, entry.length), "1B0");
}

TEST(JsonReader, ReadsOneOrderPerRank) {
  const Input input =
      read(
          R"({"placement":"loop","microbatches":1,"ranks":[{"order":["F1.0",["B1.0","reduce1"],null]}]})")
          .value();
  EXPECT_EQ(input.form, Form::Json);
  const auto& order = input.schedule.ranks.at(0).order;
  EXPECT_EQ(order.at(1).group, Group::Opens);
  EXPECT_EQ(order.at(2).group, Group::Continues);
  EXPECT_EQ(order.at(3).kind, Kind::Idle);
}

TEST(JsonReader, RefusesTheRest) {
  EXPECT_EQ(refusal("[1]"), "the schedule is an array, not an object");
  EXPECT_EQ(refusal("{}"), "the object needs exactly one of `order`, `csv` and `ranks`");
  EXPECT_EQ(refusal(R"({"order":[1],"nedwgrad":1})"), "unknown key `nedwgrad`");
  EXPECT_EQ(refusal(R"({"order":[true]})"), "an entry of `order` is a boolean, not a number");
  EXPECT_EQ(refusal(R"({"csv":[]})"), "the table has no row");
  EXPECT_EQ(refusal(R"({"ranks":[]})"), "a schedule has at least one rank");
  EXPECT_EQ(refusal(R"({"ranks":[{"order":["F1"],"chunks":1.5}]})"),
            "`chunks` is a float, not a whole number");
  EXPECT_EQ(refusal(R"({"schema":2,"order":[1]})"), "this capo reads schema 1");
}

TEST(JsonReader, LetsABatchLineKeepItsOwnKeys) {
  EXPECT_TRUE(read(R"({"order":[1,-1],"id":7})", ExtraKeys::Allowed));
  const JsonDocument document = JsonDocument::parse(R"({"csv":["0F0"],"id":7})", {}).value();
  const auto known = schedule_keys(document);
  EXPECT_NE(std::find(known.begin(), known.end(), "stage_to_rank"), known.end());
  EXPECT_EQ(std::find(known.begin(), known.end(), "need_wgrad"), known.end());
}

}  // namespace
}  // namespace capo
