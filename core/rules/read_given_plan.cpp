// Reads the file of a given plan: buffers, or slots.

#include "core/rules/given_plan.h"
#include "core/text/json_fields.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace capo {

namespace {

using Type = JsonValue::Type;

constexpr std::string_view kGivenPlanSchema = "docs/schema/given-plan.schema.json";

// A certificate's members, of which only the buffers are read, and slots.
constexpr std::array<std::string_view, 11> kPlanKeys{"schema",   "comment", "plan",  "bytes",
                                                     "vertices", "streams", "edges", "order",
                                                     "buffers",  "shared",  "slots"};
constexpr std::array kBufferKindsByName{
    BufferKind::StaticInput, BufferKind::GradOutput, BufferKind::Output, BufferKind::GradInput,
    BufferKind::Activations, BufferKind::Operands,   BufferKind::Scratch};
constexpr std::array kRegions{Region::Pool, Region::WeightScratch};

template <auto kSlot, std::int64_t kLeast = 0>
std::optional<Refusal> number(const JsonValue& value, std::string_view what, GivenBuffer& into) {
  const auto read = read_whole(value, what, kLeast, std::numeric_limits<std::int32_t>::max());
  if (!read) return read.error();
  into.buffer.*kSlot = static_cast<std::int32_t>(*read);
  return std::nullopt;
}

std::optional<Refusal> kind(const JsonValue& value, std::string_view what, GivenBuffer& into) {
  return put<&Buffer::kind, read_choice<kBufferKindsByName>>(value, what, into.buffer);
}

constexpr std::array<JsonMember<GivenBuffer>, 8> kPlace{{
    {"rank", number<&Buffer::rank>},
    {"chunk", number<&Buffer::chunk, 1>},
    {"layer", number<&Buffer::layer>},
    {"microbatch", number<&Buffer::microbatch>},
    {"kind", kind},
    {"region", put<&GivenBuffer::region, read_choice<kRegions>>},
    {"offset", put<&GivenBuffer::offset, read_bytes>},
    {"bytes", put<&GivenBuffer::bytes, read_bytes>},
}};
constexpr std::array<std::string_view, 10> kBufferKeys{
    "rank", "chunk", "layer", "microbatch", "kind", "region", "offset", "bytes", "uses", "paths"};

Read<GivenBuffer> read_buffer(const JsonValue& item) {
  if (auto refusal = refuse_other_object(item, "a buffer", kBufferKeys, kGivenPlanSchema))
    return std::move(*refusal);
  for (const auto& member : kPlace) {
    if (!item.find(member.key))
      return malformed(item.span(), fmt::format("a buffer has no `{}`", member.key));
  }
  GivenBuffer given{.span = item.span()};
  if (auto refusal = read_members(item, "", kPlace, given)) return std::move(*refusal);
  return given;
}

Read<GivenPlan> read_buffers(const JsonValue& list) {
  if (list.type() != Type::Array) return wrong_type(list, "`buffers`", "an array of buffers");
  std::vector<GivenBuffer> buffers;
  for (auto item = list.first(); item; item = item->next()) {
    auto buffer = read_buffer(*item);
    if (!buffer) return buffer.error();
    buffers.push_back(*std::move(buffer));
  }
  return GivenPlan{.places = std::move(buffers), .span = list.span()};
}

// A whole number that is the name of a member: "12".
Read<std::int32_t> number_of_key(const JsonValue& member, std::string_view what) {
  const std::string& key = member.key();
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  const bool whole = error == std::errc() && end == key.data() + key.size() && number >= 0;
  if (!whole || key != std::to_string(number))
    return malformed(member.key_span(), fmt::format("the number of a {} should stand here", what));
  return number;
}

Read<GivenPlan> read_slots(const JsonValue& ranks, const Limits& limits) {
  if (ranks.type() != Type::Object)
    return wrong_type(ranks, "`slots`", "an object with the stages of each rank");
  std::vector<GivenSlots> all;
  for (auto rank = ranks.first(); rank; rank = rank->next()) {
    const auto rank_number = number_of_key(*rank, "rank");
    if (!rank_number) return rank_number.error();
    if (rank->type() != Type::Object)
      return wrong_type(*rank, "a rank of `slots`", "an object with the slots of each stage");
    for (auto stage = rank->first(); stage; stage = stage->next()) {
      const auto stage_number = number_of_key(*stage, "stage");
      if (!stage_number) return stage_number.error();
      auto slots = read_counts(*stage, "a stage of `slots`", limits);
      if (!slots) return slots.error();
      all.push_back({.rank = *rank_number,
                     .stage = *stage_number,
                     .slots = *std::move(slots),
                     .span = stage->span()});
    }
  }
  return GivenPlan{.places = std::move(all), .span = ranks.span()};
}

}  // namespace

Read<GivenPlan> read_given_plan(std::string_view text, const Limits& limits) {
  const auto document = JsonDocument::parse(text, limits);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (auto refusal = refuse_other_object(root, "the plan", kPlanKeys, kGivenPlanSchema))
    return std::move(*refusal);
  if (auto refusal = refuse_schema(root)) return std::move(*refusal);
  const auto buffers = root.find("buffers");
  const auto slots = root.find("slots");
  if (buffers.has_value() == slots.has_value())
    return malformed(root.span(), "a plan has either `buffers` or `slots`");
  return buffers ? read_buffers(*buffers) : read_slots(*slots, limits);
}

}  // namespace capo
