#include "core/input/json_reader.h"

#include "core/text/json_fields.h"
#include "core/text/number.h"
#include "core/text/scan.h"
#include "core/text/schedule_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace capo {

namespace {

using Type = JsonValue::Type;
using Maybe = std::optional<Refusal>;

constexpr std::array<std::string_view, 6> kTeKeys{
    "schema", "order", "num_layers_per_chunk", "need_wgrad", "microbatches", "comment"};
constexpr std::array<std::string_view, 7> kTorchKeys{
    "schema", "csv", "stage_to_rank", "microbatches", "stages", "format", "comment"};
constexpr std::array<std::string_view, 9> kOrderKeys{"schema",    "ranks",        "microbatches",
                                                     "placement", "p2p",          "layers",
                                                     "stages",    "model_chunks", "comment"};
constexpr std::array<std::string_view, 8> kRankKeys{"chunks", "layers",       "delayed", "mixed",
                                                    "stages", "model_chunks", "order",   "replay"};

Maybe check_keys(const JsonValue& object, std::span<const std::string_view> known,
                 ExtraKeys extra) {
  if (extra == ExtraKeys::Allowed) return std::nullopt;
  return refuse_unknown_keys(object, known, kScheduleSchema);
}

class Reader {
 public:
  Reader(const Limits& limits, ExtraKeys extra)
      : limits_(limits), extra_(extra), builder_(limits) {}

  Read<Input> read(const JsonValue& root, TeDeclarations te, TorchDeclarations torch) {
    if (root.type() != Type::Object) return wrong_type(root, "the schedule", "an object");
    if (auto refusal = refuse_schema(root)) return std::move(*refusal);
    const auto order = root.find("order");
    const auto csv = root.find("csv");
    const auto ranks = root.find("ranks");
    if ((order ? 1 : 0) + (csv ? 1 : 0) + (ranks ? 1 : 0) != 1) {
      return malformed(root.span(), "the object needs exactly one of `order`, `csv` and `ranks`",
                       "`order` is a TE list, `csv` a PyTorch table, `ranks` one order per rank");
    }
    Maybe refusal = order ? read_te(root, *order, te)
                    : csv ? read_torch(root, *csv, torch)
                          : read_ranks(root, *ranks);
    if (refusal) return std::move(*refusal);
    return std::move(input_);
  }

 private:
  Maybe read_te(const JsonValue& root, const JsonValue& order, TeDeclarations& declared) {
    if (auto refusal = check_keys(root, kTeKeys, extra_)) return refusal;
    input_.form = Form::TeList;
    if (const auto layers = root.find("num_layers_per_chunk")) {
      if (auto refusal = read_layers(declared.layers, *layers)) return refusal;
    }
    if (const auto need = root.find("need_wgrad"); need && need->type() != Type::Null) {
      if (auto refusal = read_booleans(declared.need_wgrad.emplace(), *need)) return refusal;
    }
    if (auto refusal = read_microbatches(root, declared.microbatches)) return refusal;
    if (order.type() != Type::Array) return wrong_type(order, "`order`", "an array of numbers");
    const auto first = order.first();
    const bool ranks = first && first->type() == Type::Array;
    std::vector<std::uint32_t> begins;
    if (!ranks) begins.push_back(0);
    for (auto item = first; item; item = item->next()) {
      if (auto refusal = ranks ? read_rank(*item, begins) : read_entry(*item)) return refusal;
    }
    TeList list = std::move(input_.te_list);
    take_te_lists(input_, std::move(list), std::move(begins), declared);
    return std::nullopt;
  }

  // The list of a rank, one of several.
  Maybe read_rank(const JsonValue& list, std::vector<std::uint32_t>& begins) {
    if (list.type() != Type::Array) return wrong_type(list, "a rank of `order`", "an array");
    if (begins.size() >= limits_.ranks) {
      return over_limit(list.span(), fmt::format("more than {} ranks", limits_.ranks),
                        "--max-ranks");
    }
    begins.push_back(static_cast<std::uint32_t>(input_.te_list.entries.size()));
    for (auto item = list.first(); item; item = item->next()) {
      if (auto refusal = read_entry(*item)) return refusal;
    }
    return std::nullopt;
  }

  Maybe read_entry(const JsonValue& item) {
    if (input_.te_list.entries.size() >= limits_.entries)
      return too_many_entries(item.span(), limits_);
    Number number;
    if (item.type() == Type::Number) {
      number = {.value = item.number(), .type = item.number_type()};
      // Python's json reads -0 as the int 0.
      if (number.type == NumberType::Integer && number.value == 0) number.value = 0;
    } else {
      const bool named =
          item.type() == Type::String &&
          (item.string() == "NaN" || item.string() == "Infinity" || item.string() == "-Infinity");
      if (!named) return wrong_type(item, "an entry of `order`", "a number");
      number = *read_number(item.string());
    }
    const Span span = item.span();
    input_.te_list.entries.push_back(
        {.value = number.value,
         .offset = span.offset,
         .length = static_cast<std::uint16_t>(std::min<std::uint32_t>(span.length, 0xffff)),
         .type = number.type});
    return std::nullopt;
  }

  Maybe read_layers(Layers& layers, const JsonValue& value) {
    layers = {};
    if (value.type() == Type::Null) {
      layers.form = Layers::Form::Null;
      return std::nullopt;
    }
    const bool list = value.type() == Type::Array;
    layers.form = list ? Layers::Form::List : Layers::Form::Count;
    if (!list) return read_layer_count(layers, value);
    for (auto item = value.first(); item; item = item->next()) {
      if (auto refusal = read_layer_count(layers, *item)) return refusal;
    }
    return std::nullopt;
  }

  // Zero and less are read, so that the rule about layers can say what is wrong with them.
  Maybe read_layer_count(Layers& layers, const JsonValue& value) {
    auto count = read_count(value, "a number of layers", limits_, -0x7fffffff);
    if (!count) return count.error();
    layers.values.push_back(*count);
    return std::nullopt;
  }

  Maybe read_booleans(std::vector<bool>& out, const JsonValue& value) {
    if (value.type() != Type::Array)
      return wrong_type(value, "`need_wgrad`", "an array of booleans");
    for (auto item = value.first(); item; item = item->next()) {
      if (item->type() != Type::Boolean)
        return wrong_type(*item, "an item of `need_wgrad`", "a boolean");
      out.push_back(item->boolean());
    }
    return std::nullopt;
  }

  Maybe read_microbatches(const JsonValue& root, std::optional<std::int32_t>& slot) {
    const auto value = root.find("microbatches");
    if (!value || value->type() == Type::Null) return std::nullopt;
    return take(slot, read_count(*value, "`microbatches`", limits_, 1));
  }

  Maybe read_torch(const JsonValue& root, const JsonValue& csv, TorchDeclarations& declared) {
    if (auto refusal = check_keys(root, kTorchKeys, extra_)) return refusal;
    if (auto refusal = read_microbatches(root, declared.microbatches)) return refusal;
    if (const auto stages = root.find("stages"); stages && stages->type() != Type::Null) {
      if (auto refusal = take(declared.stages, read_count(*stages, "`stages`", limits_, 1)))
        return refusal;
    }
    if (const auto owners = root.find("stage_to_rank"); owners && owners->type() != Type::Null) {
      if (auto refusal =
              take(declared.stage_to_rank, read_counts(*owners, "`stage_to_rank`", limits_))) {
        return refusal;
      }
    }
    if (const auto format = root.find("format")) {
      const bool known = format->type() == Type::String &&
                         (format->string() == "compute" || format->string() == "comms");
      if (!known) return malformed(format->span(), "`format` is \"compute\" or \"comms\"");
      declared.communicates = format->string() == "comms";
    }
    if (csv.type() != Type::Array) return wrong_type(csv, "`csv`", "an array of rows");
    std::vector<TorchRow> rows;
    for (auto item = csv.first(); item; item = item->next()) {
      if (item->type() != Type::String) return wrong_type(*item, "a row of `csv`", "a string");
      if (auto refusal = read_row(rows, *item)) return refusal;
    }
    auto reading = read_torch_rows(rows, declared, limits_);
    if (!reading) return reading.error();
    input_.form = reading->communicates ? Form::TorchComms : Form::TorchCompute;
    input_.csv_in_json = true;
    input_.schedule = std::move(reading->schedule);
    input_.cell_faults = std::move(reading->faults);
    return std::nullopt;
  }

  Maybe read_row(std::vector<TorchRow>& rows, const JsonValue& item) {
    if (item.string().empty()) {
      rows.emplace_back();
      return std::nullopt;
    }
    auto split = split_torch_csv(item.string(), limits_);
    if (!split || split->size() != 1) {
      return malformed(item.span(),
                       split ? "a row holds a line end" : split.error().finding.message);
    }
    // Offsets move to those of the document if the string stands there byte for byte.
    const bool verbatim = item.span().length == item.string().size() + 2;
    for (TorchRow::Cell& cell : split->front().cells) {
      if (verbatim) {
        cell.span.offset += item.span().offset + 1;
      } else {
        cell.span = item.span();
      }
    }
    rows.push_back(std::move(split->front()));
    return std::nullopt;
  }

  Maybe read_ranks(const JsonValue& root, const JsonValue& ranks) {
    if (auto refusal = check_keys(root, kOrderKeys, extra_)) return refusal;
    input_.form = Form::Json;
    Schedule& schedule = builder_.schedule();
    if (auto refusal = read_microbatches(root, schedule.microbatches)) return refusal;
    if (const auto stages = root.find("stages"); stages && stages->type() != Type::Null) {
      if (auto refusal = take(schedule.stages, read_count(*stages, "`stages`", limits_, 1))) {
        return refusal;
      }
    }
    if (const auto placement = root.find("placement")) {
      if (auto refusal = read_placement(*placement)) return refusal;
    }
    if (const auto calls = root.find("p2p"); calls && calls->type() != Type::Null) {
      if (auto refusal = read_p2p(*calls)) return refusal;
    }
    RankFacts shared;
    if (const auto layers = root.find("layers")) {
      if (auto refusal = read_layers(shared.layers.emplace(), *layers)) return refusal;
    }
    if (auto refusal = read_model_chunks(root, shared)) return refusal;
    if (ranks.type() != Type::Array) return wrong_type(ranks, "`ranks`", "an array of objects");
    if (!ranks.first()) return malformed(ranks.span(), "a schedule has at least one rank");
    for (auto item = ranks.first(); item; item = item->next()) {
      if (schedule.ranks.size() >= limits_.ranks) {
        return over_limit(item->span(), fmt::format("more than {} ranks", limits_.ranks),
                          "--max-ranks");
      }
      if (auto refusal = read_rank(*item, shared)) return refusal;
    }
    auto finished = std::move(builder_).finish();
    if (!finished) return finished.error();
    input_.schedule = std::move(*finished);
    return std::nullopt;
  }

  Maybe read_placement(const JsonValue& value) {
    if (const auto topology =
            value.type() == Type::String ? topology_named(value.string()) : std::nullopt) {
      builder_.schedule().topology = *topology;
      return std::nullopt;
    }
    return malformed(value.span(),
                     "`placement` is one of independent, chain, loop, v, bidirectional, custom");
  }

  Maybe read_p2p(const JsonValue& value) {
    std::optional<MegatronCalls>& calls = builder_.schedule().p2p;
    if (value.type() == Type::String) calls = megatron_calls_named(value.string());
    if (calls) return std::nullopt;
    return malformed(value.span(), "`p2p` is one of batch, overlap, flush, or null");
  }

  Maybe read_model_chunks(const JsonValue& object, RankFacts& facts) {
    const auto layers = object.find("model_chunks");
    if (!layers) return std::nullopt;
    return take(facts.model_chunks, read_counts(*layers, "`model_chunks`", limits_, 1));
  }

  Maybe read_rank(const JsonValue& value, const RankFacts& shared) {
    if (value.type() != Type::Object) return wrong_type(value, "a rank", "an object");
    if (auto refusal = check_keys(value, kRankKeys, ExtraKeys::Refused)) return refusal;
    RankFacts facts;
    if (const auto layers = value.find("layers")) {
      if (auto refusal = read_layers(facts.layers.emplace(), *layers)) return refusal;
    }
    if (const auto chunks = value.find("chunks")) {
      if (auto refusal = take(facts.chunks, read_count(*chunks, "`chunks`", limits_))) {
        return refusal;
      }
    }
    if (const auto stages = value.find("stages")) {
      if (auto refusal = take(facts.stages, read_counts(*stages, "`stages`", limits_)))
        return refusal;
    }
    if (auto refusal = read_model_chunks(value, facts)) return refusal;
    if (auto refusal = read_mentions(value, "delayed", facts.delayed)) return refusal;
    if (auto refusal = read_mentions(value, "mixed", facts.mixed)) return refusal;

    const auto actions = value.find("order");
    if (!actions) return malformed(value.span(), "the rank has no `order`");
    ReadOrder order;
    if (auto refusal = read_order(order, *actions)) return refusal;
    std::optional<ReadOrder> replay;
    if (const auto again = value.find("replay"); again && again->type() != Type::Null) {
      if (auto refusal = read_order(replay.emplace(), *again)) return refusal;
    }
    return builder_.add_rank(value.span(), std::move(facts), shared, std::move(order),
                             std::move(replay));
  }

  Maybe read_mentions(const JsonValue& rank, const char* key,
                      std::optional<std::vector<ChunkMention>>& slot) {
    const auto list = rank.find(key);
    if (!list) return std::nullopt;
    if (list->type() != Type::Array) {
      return wrong_type(*list, fmt::format("`{}`", key), "an array of whole numbers");
    }
    slot.emplace();
    for (auto item = list->first(); item; item = item->next()) {
      auto chunk = read_count(*item, fmt::format("an item of `{}`", key), limits_, 1);
      if (!chunk) return chunk.error();
      slot->push_back({.chunk = *chunk, .span = item->span()});
    }
    return std::nullopt;
  }

  // An action is a string, an idle slot is null or ".", a composite is an array of strings.
  Maybe read_order(ReadOrder& order, const JsonValue& value) {
    if (value.type() != Type::Array) return wrong_type(value, "an order", "an array of actions");
    for (auto item = value.first(); item; item = item->next()) {
      if (item->type() == Type::Array) {
        Group group = Group::Opens;
        for (auto member = item->first(); member; member = member->next()) {
          if (auto refusal = read_action(order, *member, group)) return refusal;
          group = Group::Continues;
        }
        if (!item->first()) return malformed(item->span(), "a composite without members");
      } else if (auto refusal = read_action(order, *item, Group::Alone)) {
        return refusal;
      }
    }
    return std::nullopt;
  }

  Maybe read_action(ReadOrder& order, const JsonValue& item, Group group) {
    if (item.type() == Type::Null) return builder_.add_token(order, ".", item.span(), group);
    if (item.type() != Type::String) return wrong_type(item, "an action", "a string");
    return builder_.add_token(order, item.string(), item.span(), group);
  }

  const Limits& limits_;
  ExtraKeys extra_;
  Input input_;
  ScheduleBuilder builder_;
};

}  // namespace

std::span<const std::string_view> schedule_keys(const JsonDocument& document) {
  const JsonValue root = document.root();
  if (root.type() != Type::Object) return {};
  if (root.find("order")) return kTeKeys;
  if (root.find("csv")) return kTorchKeys;
  if (root.find("ranks")) return kOrderKeys;
  return {};
}

Read<Input> read_json_schedule(const JsonDocument& document, const Limits& limits,
                               ExtraKeys extra_keys, TeDeclarations te, TorchDeclarations torch) {
  return Reader(limits, extra_keys).read(document.root(), std::move(te), std::move(torch));
}

}  // namespace capo
