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
constexpr std::array<std::string_view, 12> kPlanKeys{
    "schema", "comment", "plan",    "bytes",  "vertices", "streams",
    "edges",  "order",   "buffers", "shared", "slots",    "graph_memory_slots"};
constexpr std::array kBufferKindsByName{
    BufferKind::StaticInput,     BufferKind::GradOutput,      BufferKind::Output,
    BufferKind::GradInput,       BufferKind::Activations,     BufferKind::Operands,
    BufferKind::Scratch,         BufferKind::QuantizedWeight, BufferKind::ReceivedActivation,
    BufferKind::ReceivedGradient};

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
constexpr std::array<std::string_view, 12> kBufferKeys{"rank", "chunk",  "layer",  "microbatch",
                                                       "kind", "region", "offset", "bytes",
                                                       "also", "made",   "uses",   "paths"};

// The names of buffers that are another's tensor.
std::optional<Refusal> read_also(const JsonValue& list, std::vector<Buffer>& also) {
  if (list.type() != Type::Array) return wrong_type(list, "`also`", "an array of buffers' names");
  constexpr std::array kName{kPlace[0], kPlace[1], kPlace[2], kPlace[3], kPlace[4]};
  for (auto item = list.first(); item; item = item->next()) {
    if (auto refusal =
            refuse_other_object(*item, "a name in `also`", keys_of(kName), kGivenPlanSchema))
      return refusal;
    for (const auto& member : kName) {
      if (!item->find(member.key))
        return malformed(item->span(), fmt::format("a name has no `{}`", member.key));
    }
    GivenBuffer named;
    if (auto refusal = read_members(*item, "", kName, named)) return refusal;
    also.push_back(named.buffer);
  }
  return std::nullopt;
}

Read<GivenBuffer> read_buffer(const JsonValue& item) {
  if (auto refusal = refuse_other_object(item, "a buffer", kBufferKeys, kGivenPlanSchema))
    return std::move(*refusal);
  for (const auto& member : kPlace) {
    if (!item.find(member.key))
      return malformed(item.span(), fmt::format("a buffer has no `{}`", member.key));
  }
  GivenBuffer given{.span = item.span()};
  if (auto refusal = read_members(item, "", kPlace, given)) return std::move(*refusal);
  if (const auto also = item.find("also")) {
    if (auto refusal = read_also(*also, given.also)) return std::move(*refusal);
  }
  return given;
}

Read<GivenPlan> read_buffers(const JsonValue& list) {
  if (list.type() != Type::Array) return wrong_type(list, "`buffers`", "an array of buffers");
  std::vector<GivenBuffer> buffers;
  for (auto item = list.first(); item; item = item->next()) {
    auto buffer = read_buffer(*item);
    if (!buffer) return buffer.error();
    if (!item->find("made")) buffers.push_back(*std::move(buffer));
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

std::optional<Refusal> read_stages(const JsonValue& stages, std::int32_t rank, const Limits& limits,
                                   std::vector<GivenSlots>& into) {
  if (stages.type() != Type::Object)
    return wrong_type(stages, "a rank of `slots`", "an object with the slots of each stage");
  for (auto stage = stages.first(); stage; stage = stage->next()) {
    const auto number = number_of_key(*stage, "stage");
    if (!number) return number.error();
    auto slots = read_counts(*stage, "a stage of `slots`", limits);
    if (!slots) return slots.error();
    into.push_back(
        {.rank = rank, .stage = *number, .slots = *std::move(slots), .span = stage->span()});
  }
  return std::nullopt;
}

Read<GraphSlot> read_graph_slot(const JsonValue& value, const Limits& limits) {
  const auto numbers = read_counts(value, "a slot of `graph_memory_slots`", limits);
  if (!numbers) return numbers.error();
  if (numbers->size() != 7)
    return malformed(value.span(),
                     fmt::format("a slot has seven numbers, and here are {}", numbers->size()));
  const auto& n = *numbers;
  return GraphSlot{n[0], n[1], n[2], n[3], n[4], n[5], n[6]};
}

std::optional<Refusal> read_graphs(const JsonValue& graphs, std::int32_t rank, const Limits& limits,
                                   std::vector<GivenGraphSlots>& into) {
  if (graphs.type() != Type::Array)
    return wrong_type(graphs, "a rank of `graph_memory_slots`",
                      "an array with a slot of each graph");
  GivenGraphSlots all{.rank = rank, .span = graphs.span()};
  for (auto graph = graphs.first(); graph; graph = graph->next()) {
    const auto slot = read_graph_slot(*graph, limits);
    if (!slot) return slot.error();
    all.slots.push_back(*slot);
  }
  into.push_back(std::move(all));
  return std::nullopt;
}

// An object whose keys are ranks, each read by kRead.
template <typename Given, auto kRead>
Read<GivenPlan> read_ranks(const JsonValue& ranks, std::string_view what, const Limits& limits) {
  if (ranks.type() != Type::Object) return wrong_type(ranks, what, "an object with each rank");
  std::vector<Given> all;
  for (auto rank = ranks.first(); rank; rank = rank->next()) {
    const auto number = number_of_key(*rank, "rank");
    if (!number) return number.error();
    if (auto refusal = kRead(*rank, *number, limits, all)) return std::move(*refusal);
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
  const auto graphs = root.find("graph_memory_slots");
  if (int{buffers.has_value()} + int{slots.has_value()} + int{graphs.has_value()} != 1) {
    return malformed(root.span(), "a plan has one of `buffers`, `slots` and `graph_memory_slots`");
  }
  if (buffers) return read_buffers(*buffers);
  if (slots) return read_ranks<GivenSlots, read_stages>(*slots, "`slots`", limits);
  return read_ranks<GivenGraphSlots, read_graphs>(*graphs, "`graph_memory_slots`", limits);
}

}  // namespace capo
