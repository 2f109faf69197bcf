#include "core/text/json_value.h"

#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

std::string refusal(const std::string& text, const Limits& limits = {}) {
  const auto document = JsonDocument::parse(text, limits);
  if (document) return "";
  const Diagnostic& finding = document.error().finding;
  return finding.message + " @" + std::to_string(finding.labels.at(0).span.offset);
}

TEST(JsonValue, KnowsTheBytesOfEveryValue) {
  const std::string text = R"( {"a": [1, -1.5 ,true], "b":"x", "c": null})";
  const JsonDocument document = JsonDocument::parse(text, {}).value();
  const auto slice = [&](const JsonValue& value) {
    return text.substr(value.span().offset, value.span().length);
  };
  const JsonValue a = document.root().find("a").value();
  EXPECT_EQ(slice(a), "[1, -1.5 ,true]");
  EXPECT_EQ(slice(*a.first()), "1");
  EXPECT_EQ(slice(*a.first()->next()), "-1.5");
  EXPECT_EQ(slice(*a.first()->next()->next()), "true");
  EXPECT_EQ(slice(*document.root().find("b")), "\"x\"");
  EXPECT_EQ(slice(*document.root().find("c")), "null");
  EXPECT_EQ(slice(document.root()), text.substr(1));
  EXPECT_FALSE(document.root().find("d"));
}

TEST(JsonValue, TellsIntegersFromFloats) {
  const JsonDocument document =
      JsonDocument::parse("[1, 1.0, 1e2, 99999999999999999999]", {}).value();
  auto value = document.root().first();
  EXPECT_EQ(value->number_type(), NumberType::Integer);
  value = value->next();
  EXPECT_EQ(value->number_type(), NumberType::Float);
  value = value->next();
  EXPECT_EQ(value->number_type(), NumberType::Float);
  value = value->next();
  EXPECT_EQ(value->number_type(), NumberType::Integer);
}

TEST(JsonValue, RefusesDuplicateKeysAndDeepNesting) {
  EXPECT_EQ(refusal(R"({"a":1,"a":2})"), "the key `a` occurs twice in one object @7");
  EXPECT_EQ(refusal(R"({"a":{"a":2}})"), "");
  EXPECT_EQ(refusal("[[1]]", {.depth = 2}), "");
  EXPECT_EQ(refusal("[[[1]]]", {.depth = 2}), "the JSON is nested more than 2 deep @2");
  EXPECT_NE(refusal(std::string(1'000'000, '[')), "");
}

TEST(JsonValue, RefusesWhatIsNoJson) {
  EXPECT_EQ(refusal(""), "the input is empty @0");
  EXPECT_NE(refusal("[1,"), "");
  EXPECT_NE(refusal("[1] 2"), "");
  EXPECT_NE(refusal(R"(["\ud800"])"), "");
  EXPECT_EQ(refusal("[1, 1e400]"), "this number is beyond the range of a double @4");
}

}  // namespace
}  // namespace capo
