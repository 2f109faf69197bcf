#include <capo/core/text/json_reader.h>

#include <capo/core/base/nearest.h>
#include <capo/core/text/action_token.h>
#include <capo/core/text/number.h>
#include <capo/core/text/scan.h>

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
constexpr std::array<std::string_view, 7> kOrderKeys{
    "schema", "ranks", "microbatches", "placement", "layers", "stages", "comment"};
constexpr std::array<std::string_view, 7> kRankKeys{"chunks", "layers", "delayed", "mixed",
                                                    "stages", "order",  "replay"};

std::string name_of(Type type) {
  constexpr std::array<std::string_view, 6> kNames{"null",     "a boolean", "a number",
                                                   "a string", "an array",  "an object"};
  return std::string(kNames[static_cast<std::size_t>(type)]);
}

Refusal wrong_type(const JsonValue& value, std::string_view what, std::string_view wanted) {
  return malformed(value.span(),
                   fmt::format("{} is {}, not {}", what, name_of(value.type()), wanted));
}

Maybe check_keys(const JsonValue& object, std::span<const std::string_view> known,
                 ExtraKeys extra) {
  if (extra == ExtraKeys::Allowed) return std::nullopt;
  for (auto member = object.first(); member; member = member->next()) {
    if (std::find(known.begin(), known.end(), member->key()) != known.end()) continue;
    const std::string_view close = nearest(member->key(), known);
    return malformed(member->key_span(), fmt::format("unknown key {}", shown(member->key())),
                     close.empty() ? "docs/schema/schedule.schema.json lists the keys"
                                   : fmt::format("did you mean `{}`?", close));
  }
  return std::nullopt;
}

Read<std::int32_t> read_count(const JsonValue& value, std::string_view what, const Limits& limits,
                              double least = 0) {
  if (value.type() != Type::Number || value.number_type() != NumberType::Integer) {
    return wrong_type(value, what, "a whole number");
  }
  if (value.number() < least) {
    return malformed(value.span(), fmt::format("{} must be at least {}", what, least));
  }
  if (value.number() > static_cast<double>(std::min<std::uint64_t>(limits.counts, 0x7fffffff))) {
    return over_limit(value.span(), fmt::format("{} is above the limit of {}", what, limits.counts),
                      "--max-count");
  }
  return static_cast<std::int32_t>(value.number());
}

Read<std::vector<std::int32_t>> read_counts(const JsonValue& value, std::string_view what,
                                            const Limits& limits, double least = 0) {
  if (value.type() != Type::Array) return wrong_type(value, what, "an array of whole numbers");
  std::vector<std::int32_t> counts;
  for (auto item = value.first(); item; item = item->next()) {
    auto count = read_count(*item, fmt::format("an item of {}", what), limits, least);
    if (!count) return count.error();
    counts.push_back(*count);
  }
  return counts;
}

template <typename T, typename Reading>
Maybe take(std::optional<T>& slot, Reading&& reading) {
  if (!reading) return reading.error();
  slot = *std::forward<Reading>(reading);
  return std::nullopt;
}

class Reader {
 public:
  Reader(const Limits& limits, ExtraKeys extra) : limits_(limits), extra_(extra) {}

  Read<Input> read(const JsonValue& root, TeDeclarations te, TorchDeclarations torch) {
    if (root.type() != Type::Object) return wrong_type(root, "the schedule", "an object");
    if (const auto schema = root.find("schema")) {
      if (schema->type() != Type::Number || schema->number() != 1) {
        return malformed(schema->span(), "this capo reads schema 1", "write `\"schema\": 1`");
      }
    }
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
  // --- a TE list -------------------------------------------------------------------------------

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
    for (auto item = order.first(); item; item = item->next()) {
      if (auto refusal = read_entry(*item)) return refusal;
    }
    TeReading reading = from_te_list(input_.te_list, declared);
    input_.schedule = std::move(reading.schedule);
    input_.odd_entries = std::move(reading.odd_entries);
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

  // --- a PyTorch table -------------------------------------------------------------------------

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
    // Offsets move to the document's where the string stands there byte for byte.
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

  // --- one order per rank ----------------------------------------------------------------------

  Maybe read_ranks(const JsonValue& root, const JsonValue& ranks) {
    if (auto refusal = check_keys(root, kOrderKeys, extra_)) return refusal;
    input_.form = Form::Json;
    Schedule& schedule = input_.schedule;
    if (auto refusal = read_microbatches(root, schedule.microbatches)) return refusal;
    if (const auto stages = root.find("stages"); stages && stages->type() != Type::Null) {
      if (auto refusal = take(schedule.stages, read_count(*stages, "`stages`", limits_, 1)))
        return refusal;
    }
    if (const auto placement = root.find("placement")) {
      if (auto refusal = read_placement(*placement)) return refusal;
    }
    Layers shared;
    if (const auto layers = root.find("layers")) {
      if (auto refusal = read_layers(shared, *layers)) return refusal;
    }
    if (ranks.type() != Type::Array) return wrong_type(ranks, "`ranks`", "an array of objects");
    for (auto item = ranks.first(); item; item = item->next()) {
      if (schedule.ranks.size() >= limits_.ranks) {
        return over_limit(item->span(), fmt::format("more than {} ranks", limits_.ranks),
                          "--max-ranks");
      }
      if (auto refusal = read_rank(*item, shared)) return refusal;
    }
    if (schedule.ranks.empty()) return malformed(ranks.span(), "a schedule has at least one rank");
    schedule.naming = naming_.value_or(Naming::Counted);
    if (schedule.naming == Naming::Counted) {
      for (RankOrder& rank : schedule.ranks) {
        number_microbatches(rank.order, rank.chunks);
        if (rank.replay) number_microbatches(*rank.replay, rank.chunks);
      }
    }
    place_stages(schedule);
    return refuse_size(schedule, limits_);
  }

  Maybe read_placement(const JsonValue& value) {
    if (const auto topology =
            value.type() == Type::String ? topology_named(value.string()) : std::nullopt) {
      input_.schedule.topology = *topology;
      return std::nullopt;
    }
    return malformed(value.span(), "`placement` is one of independent, chain, loop, v, custom");
  }

  Maybe read_rank(const JsonValue& value, const Layers& shared) {
    if (value.type() != Type::Object) return wrong_type(value, "a rank", "an object");
    if (auto refusal = check_keys(value, kRankKeys, ExtraKeys::Refused)) return refusal;
    RankOrder rank;
    rank.layers = shared;
    if (const auto layers = value.find("layers")) {
      if (auto refusal = read_layers(rank.layers, *layers)) return refusal;
    }
    const auto order = value.find("order");
    if (!order) return malformed(value.span(), "the rank has no `order`");
    if (auto refusal = read_order(rank.order, *order)) return refusal;
    if (const auto replay = value.find("replay"); replay && replay->type() != Type::Null) {
      if (auto refusal = read_order(rank.replay.emplace(), *replay)) return refusal;
    }
    if (const auto stages = value.find("stages")) {
      if (input_.schedule.topology != Topology::Custom) {
        return malformed(stages->key_span(), "`stages` needs `\"placement\": \"custom\"`");
      }
      auto read = read_counts(*stages, "`stages`", limits_);
      if (!read) return read.error();
      rank.stages = std::move(*read);
    }
    if (auto refusal = settle_chunks(rank, value)) return refusal;
    if (auto refusal = read_delay(rank, value)) return refusal;
    input_.schedule.ranks.push_back(std::move(rank));
    return std::nullopt;
  }

  Maybe settle_chunks(RankOrder& rank, const JsonValue& value) {
    rank.chunks_declared = true;
    if (const auto chunks = value.find("chunks")) {
      auto count = read_count(*chunks, "`chunks`", limits_);
      if (!count) return count.error();
      rank.chunks = *count;
      declared_chunks_ += static_cast<std::uint64_t>(rank.chunks);
      if (declared_chunks_ > limits_.counts) {
        return over_limit(chunks->span(),
                          fmt::format("the ranks declare more than {} chunks", limits_.counts),
                          "--max-count");
      }
    } else if (!rank.stages.empty()) {
      rank.chunks = static_cast<std::int32_t>(rank.stages.size());
    } else if (rank.layers.form == Layers::Form::List) {
      rank.chunks = static_cast<std::int32_t>(rank.layers.values.size());
    } else {
      rank.chunks_declared = false;
      for (const Entry& entry : rank.order) {
        if (static_cast<std::size_t>(entry.chunk) <= rank.order.size()) {
          rank.chunks = std::max(rank.chunks, entry.chunk);
        }
      }
    }
    if (input_.schedule.topology == Topology::Custom &&
        rank.stages.size() != static_cast<std::size_t>(rank.chunks)) {
      return malformed(value.span(),
                       fmt::format("the rank has {} chunks and the stages of {}", rank.chunks,
                                   rank.stages.size()),
                       "under a custom placement every rank lists the stage of each of its chunks");
    }
    return std::nullopt;
  }

  Maybe read_delay(RankOrder& rank, const JsonValue& value) {
    for (const auto& [key, delay] :
         {std::pair("delayed", Delay::Always), std::pair("mixed", Delay::Mixed)}) {
      const auto ids = value.find(key);
      if (!ids) continue;
      auto read = read_counts(*ids, fmt::format("`{}`", key), limits_, 1);
      if (!read) return read.error();
      if (!rank.delay) rank.delay.emplace(static_cast<std::size_t>(rank.chunks), Delay::Never);
      for (const std::int32_t id : *read) {
        if (id > rank.chunks) {
          return malformed(ids->span(),
                           fmt::format("chunk {} is said to split its backwards, but the "
                                       "rank has {} chunks",
                                       id, rank.chunks));
        }
        (*rank.delay)[static_cast<std::size_t>(id) - 1] = delay;
      }
    }
    return std::nullopt;
  }

  // An action is a string, an idle slot is null or ".", a composite is an array of strings.
  Maybe read_order(std::vector<Entry>& order, const JsonValue& value) {
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

  Maybe read_action(std::vector<Entry>& order, const JsonValue& item, Group group) {
    if (++entries_ > limits_.entries) return too_many_entries(item.span(), limits_);
    const bool idle = item.type() == Type::Null;
    if (!idle && item.type() != Type::String) return wrong_type(item, "an action", "a string");
    const auto token = idle ? ActionToken{} : read_action_token(item.string());
    if (!token || (token->kind == Kind::Idle && group != Group::Alone)) {
      return malformed(item.span(),
                       fmt::format("{} is no action", idle ? "null" : shown(item.string())),
                       "an action is a kind, a chunk and, if named, a microbatch: F1, B2.0, W1");
    }
    if (token->chunk > limits_.counts || token->microbatch.value_or(0) > limits_.counts) {
      return over_limit(
          item.span(),
          fmt::format("{} has a number above {}", shown(item.string()), limits_.counts),
          "--max-count");
    }
    if (token->kind != Kind::Idle && token->chunk == 0) {
      return malformed(item.span(), "chunks are counted from 1");
    }
    if (token->kind == Kind::BackwardInput && !token->microbatch) return unnamed_input(item.span());
    if (has_microbatch(token->kind)) {
      const Naming naming = token->microbatch ? Naming::Named : Naming::Counted;
      if (naming_.value_or(naming) != naming) {
        return malformed(item.span(), "some actions name their microbatch and some do not",
                         "name the microbatch of every action, or of none");
      }
      naming_ = naming;
    }
    order.push_back(
        {.chunk = static_cast<std::int32_t>(token->chunk),
         .microbatch =
             token->microbatch ? static_cast<std::int32_t>(*token->microbatch) : kNoMicrobatch,
         .offset = item.span().offset,
         .length = static_cast<std::uint16_t>(std::min<std::uint32_t>(item.span().length, 0xffff)),
         .kind = token->kind,
         .group = group});
    return std::nullopt;
  }

  const Limits& limits_;
  ExtraKeys extra_;
  Input input_;
  std::optional<Naming> naming_;
  std::uint64_t entries_ = 0;
  std::uint64_t declared_chunks_ = 0;
};

}  // namespace

Read<Input> read_json_schedule(const JsonDocument& document, const Limits& limits,
                               ExtraKeys extra_keys, TeDeclarations te, TorchDeclarations torch) {
  return Reader(limits, extra_keys).read(document.root(), std::move(te), std::move(torch));
}

}  // namespace capo
