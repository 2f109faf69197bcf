#include "core/text/model_reader.h"

#include "core/text/group_reader.h"
#include "core/text/json_fields.h"
#include "core/text/module_reader.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

namespace capo {

namespace {

using Type = JsonValue::Type;
using Maybe = std::optional<Refusal>;
using Stages = std::vector<std::vector<std::int32_t>>;

constexpr std::array<std::string_view, 17> kModelKeys{
    "schema",     "comment",  "topology",      "communicators", "transfers",   "p2p",
    "ep_overlap", "ep_slots", "weight_stream", "modules",       "layers",      "groups",
    "transfer",   "plan",     "alias",         "budget",        "model_chunks"};
constexpr std::array<std::string_view, 3> kTopologyKeys{"schema", "comment", "stages"};
constexpr std::array<std::string_view, 1> kStagesKeys{"stages"};
constexpr std::array<std::string_view, 3> kSlotKeys{"multi_token_prediction", "early_release",
                                                    "delayed_weights"};
constexpr std::array<std::string_view, 3> kTransferKeys{"latency", "bandwidth", "bytes"};

constexpr std::array kTopologies{Topology::Independent, Topology::Chain, Topology::Loop,
                                 Topology::V, Topology::Bidirectional};
constexpr std::array kCommunicators{Communicators::PerRank, Communicators::PerPair,
                                    Communicators::PerEdge};
constexpr std::array kTransferModes{TransferMode::Rendezvous, TransferMode::Buffered};
constexpr std::array kMegatronCalls{MegatronCalls::Batch, MegatronCalls::Overlap,
                                    MegatronCalls::Flush};
constexpr std::array kPlans{PlanKind::Te, PlanKind::Safe};

// An operand of a weight gradient that may be a static buffer.
struct Operand {
  std::string_view word;
  bool Aliases::*slot;
};
constexpr std::array<Operand, 2> kOperands{{
    {"input", &Aliases::input},
    {"grad-output", &Aliases::grad_output},
}};

// --- stages --------------------------------------------------------------------------------------

using Places = std::map<std::int32_t, Span>;  // of stages, where they stand

Maybe refuse_gaps(const JsonValue& value, const Places& places) {
  if (places.empty()) return malformed(value.span(), "a topology has at least one stage");
  std::int32_t next = 0;
  for (const auto& [stage, span] : places) {
    if (stage != next) {
      return malformed(span,
                       fmt::format("stage {} is here, but stage {} is on no rank", stage, next),
                       "stages are numbered from 0 without gaps");
    }
    ++next;
  }
  return std::nullopt;
}

Read<Stages> read_stages(const JsonValue& value, const Limits& limits) {
  if (value.type() != Type::Array) {
    return wrong_type(value, "`stages`", "an array with the stages of each rank");
  }
  Stages stages;
  Places places;
  for (auto item = value.first(); item; item = item->next()) {
    if (stages.size() >= limits.ranks) {
      return over_limit(item->span(), fmt::format("more than {} ranks", limits.ranks),
                        "--max-ranks");
    }
    if (item->type() != Type::Array) {
      return wrong_type(*item, "a rank of `stages`", "an array of whole numbers");
    }
    auto& rank = stages.emplace_back();
    for (auto number = item->first(); number; number = number->next()) {
      const auto stage = read_count(*number, "a stage", limits);
      if (!stage) return stage.error();
      const auto [before, first] = places.emplace(*stage, number->span());
      if (!first) {
        Refusal refusal = malformed(number->span(), fmt::format("stage {} stands twice", *stage),
                                    "a stage is one chunk of one rank");
        refusal.finding.labels.push_back({before->second, "it stands here already"});
        return refusal;
      }
      rank.push_back(*stage);
    }
  }
  if (auto refusal = refuse_gaps(value, places)) return std::move(*refusal);
  return stages;
}

// --- the plan ------------------------------------------------------------------------------------

Read<Aliases> read_aliases(const JsonValue& value) {
  if (value.type() != Type::Array) return wrong_type(value, "`alias`", "an array of operands");
  Aliases aliases;
  for (auto item = value.first(); item; item = item->next()) {
    const std::array words{kOperands[0].word, kOperands[1].word};
    const auto word = read_word(*item, "an operand of `alias`", words);
    if (!word) return word.error();
    bool& slot = aliases.*kOperands[*word].slot;
    if (slot) {
      return malformed(item->span(), fmt::format("`{}` is twice in `alias`", words[*word]));
    }
    slot = true;
  }
  return aliases;
}

Read<std::vector<std::int32_t>> read_model_chunks(const JsonValue& value, const Limits& limits) {
  auto layers = read_counts(value, "`model_chunks`", limits, 1);
  if (layers && layers->empty()) return malformed(value.span(), "`model_chunks` is empty");
  return layers;
}

// --- the model -----------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(const Limits& limits) : limits_(limits) {}

  Read<Model> read(const JsonValue& root) {
    if (root.type() != Type::Object) return wrong_type(root, "the model", "an object");
    for (const auto step :
         {&Reader::read_keys, &Reader::read_topology_member, &Reader::read_environment,
          &Reader::read_parts, &Reader::read_transfer, &Reader::read_plan}) {
      if (auto refusal = (this->*step)(root)) return std::move(*refusal);
    }
    return std::move(model_);
  }

 private:
  Maybe read_keys(const JsonValue& root) {
    if (auto refusal = refuse_schema(root)) return refusal;
    return refuse_unknown_keys(root, kModelKeys, kModelSchema);
  }

  Maybe read_topology_member(const JsonValue& root) {
    const auto topology = root.find("topology");
    if (!topology) return std::nullopt;
    if (topology->type() != Type::Object) {
      auto refusal = read_choice(root, "topology", kTopologies, model_.topology);
      if (refusal && refusal->finding.help.text.empty()) {
        refusal->finding.help.text = "stages are listed as `{\"stages\": [[0, 3], [1, 2]]}`";
      }
      return refusal;
    }
    if (auto refusal = refuse_unknown_keys(*topology, kStagesKeys, kModelSchema)) return refusal;
    const auto member = topology->find("stages");
    if (!member) return malformed(topology->span(), "the topology has no `stages`");
    auto stages = read_stages(*member, limits_);
    if (!stages) return stages.error();
    model_.topology = Topology::Custom;
    model_.stages = std::move(*stages);
    return std::nullopt;
  }

  Maybe read_environment(const JsonValue& root) {
    Environment& environment = model_.environment;
    if (auto refusal =
            read_choice(root, "communicators", kCommunicators, environment.communicators)) {
      return refusal;
    }
    if (auto refusal = read_choice(root, "transfers", kTransferModes, environment.transfers)) {
      return refusal;
    }
    if (auto refusal = read_choice(root, "p2p", kMegatronCalls, environment.p2p)) return refusal;
    if (auto refusal = read_switch(root, "ep_overlap", environment.ep_overlap)) return refusal;
    if (auto refusal = read_slots(root, environment.ep_slots)) return refusal;
    return read_switch(root, "weight_stream", environment.weight_stream);
  }

  static Maybe read_slots(const JsonValue& root, EpOverlap& slots) {
    const auto value = root.find("ep_slots");
    if (!value) return std::nullopt;
    if (value->type() != Type::Object) return wrong_type(*value, "`ep_slots`", "an object");
    if (auto refusal = refuse_unknown_keys(*value, kSlotKeys, kModelSchema)) return refusal;
    bool* const members[]{&slots.multi_token_prediction, &slots.early_release,
                          &slots.delayed_weights};
    for (std::size_t i = 0; i < kSlotKeys.size(); ++i) {
      if (auto refusal = read_switch(*value, kSlotKeys[i], *members[i])) return refusal;
    }
    return std::nullopt;
  }

  static Maybe read_switch(const JsonValue& root, std::string_view key, bool& member) {
    const auto value = root.find(key);
    if (!value) return std::nullopt;
    const auto on = read_boolean(*value, fmt::format("`{}`", key));
    if (!on) return on.error();
    member = *on;
    return std::nullopt;
  }

  Maybe read_parts(const JsonValue& root) {
    if (const auto value = root.find("modules")) {
      auto modules = read_modules(*value, limits_);
      if (!modules) return modules.error();
      model_.modules.list = std::move(*modules);
    }
    if (const auto value = root.find("layers")) {
      auto layers = read_module_layers(*value, model_.modules.list, limits_);
      if (!layers) return layers.error();
      model_.modules.layers = std::move(*layers);
    }
    if (const auto value = root.find("groups")) {
      auto groups = read_groups(*value, limits_);
      if (!groups) return groups.error();
      model_.groups = std::move(*groups);
    }
    return std::nullopt;
  }

  Maybe read_transfer(const JsonValue& root) {
    const auto transfer = root.find("transfer");
    if (!transfer) return std::nullopt;
    if (transfer->type() != Type::Object) return wrong_type(*transfer, "`transfer`", "an object");
    if (auto refusal = refuse_unknown_keys(*transfer, kTransferKeys, kModelSchema)) return refusal;
    TransferCost& cost = model_.transfer;
    if (const auto value = transfer->find("latency")) {
      if (auto refusal = take(cost.latency, read_microseconds(*value, "`transfer.latency`"))) {
        return refusal;
      }
    }
    if (const auto value = transfer->find("bandwidth")) {
      // Bytes a microsecond; a byte a second is the slowest, so that no quotient is infinite.
      if (auto refusal =
              take(cost.bandwidth, read_real(*value, "`transfer.bandwidth`", 1e-6, 1e12))) {
        return refusal;
      }
    }
    const auto value = transfer->find("bytes");
    if (!value) return std::nullopt;
    return take(cost.bytes, read_bytes(*value, "`transfer.bytes`"));
  }

  Maybe read_plan(const JsonValue& root) {
    PlanOptions& plan = model_.plan;
    if (auto refusal = read_choice(root, "plan", kPlans, plan.kind)) return refusal;
    if (const auto value = root.find("alias")) {
      if (auto refusal = take(plan.aliases, read_aliases(*value))) return refusal;
    }
    if (const auto value = root.find("budget")) {
      const auto budget = read_whole(*value, "`budget`", 1, (std::int64_t{1} << 53) - 1);
      if (auto refusal = take(plan.budget, budget)) return refusal;
    }
    const auto value = root.find("model_chunks");
    if (!value) return std::nullopt;
    auto chunks = read_model_chunks(*value, limits_);
    if (!chunks) return chunks.error();
    plan.model_chunks = std::move(*chunks);
    return std::nullopt;
  }

  const Limits& limits_;
  Model model_;
};

}  // namespace

Read<Model> read_model(std::string_view text, const Limits& limits) {
  const auto document = JsonDocument::parse(text, limits);
  if (!document) return document.error();
  return Reader(limits).read(document->root());
}

Read<Stages> read_topology(std::string_view text, const Limits& limits) {
  const auto document = JsonDocument::parse(text, limits);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (root.type() != Type::Object) return wrong_type(root, "the topology", "an object");
  if (auto refusal = refuse_schema(root)) return std::move(*refusal);
  if (auto refusal = refuse_unknown_keys(root, kTopologyKeys, "docs/model-json.md")) {
    return std::move(*refusal);
  }
  const auto stages = root.find("stages");
  if (!stages) return malformed(root.span(), "the topology has no `stages`");
  return read_stages(*stages, limits);
}

}  // namespace capo
