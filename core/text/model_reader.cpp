#include "core/text/model_reader.h"

#include "core/base/nearest.h"
#include "core/model/derive.h"
#include "core/text/json_fields.h"
#include "core/text/model_parts.h"
#include "core/text/number.h"
#include "core/text/stated_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace capo {

namespace {

using Type = JsonValue::Type;
using Maybe = std::optional<Refusal>;
using Stages = std::vector<std::vector<std::int32_t>>;

constexpr std::array<std::string_view, 3> kTopologyKeys{"schema", "comment", "stages"};
constexpr std::array<std::string_view, 1> kStagesKeys{"stages"};

constexpr std::array kTopologies{Topology::Independent, Topology::Chain, Topology::Loop,
                                 Topology::V, Topology::Bidirectional};
constexpr std::array kArchitectures{Architecture::Hopper, Architecture::Blackwell};
constexpr std::array kCommunicators{Communicators::PerRank, Communicators::PerPair,
                                    Communicators::PerEdge, Communicators::PerDirection,
                                    Communicators::LazyHybrid};
constexpr std::array kCommInits{CommInit::Eager, CommInit::Lazy};
constexpr std::array kMegatronCalls{MegatronCalls::Batch, MegatronCalls::Overlap,
                                    MegatronCalls::Flush};
constexpr std::array kPlans{PlanKind::Te, PlanKind::Safe, PlanKind::McoreLocal};

// An operand of a weight gradient that may be a static buffer.
struct Operand {
  std::string_view word;
  bool Aliases::*slot;
};
constexpr std::array<Operand, 2> kOperands{{
    {"input", &Aliases::input},
    {"grad-output", &Aliases::grad_output},
}};

using StagePlaces = std::map<std::int32_t, Span>;  // a stage and its place in the text

Maybe refuse_gaps(const JsonValue& value, const StagePlaces& places) {
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
  StagePlaces places;
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

// "13.4", as 1304.
Read<std::int32_t> read_cublaslt(const JsonValue& value, std::string_view what) {
  const std::string_view text =
      value.type() == Type::String ? std::string_view(value.string()) : std::string_view{};
  const std::size_t dot = text.find('.');
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.size() <= 2 &&
           std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (dot == std::string_view::npos || !digits(text.substr(0, dot)) ||
      !digits(text.substr(dot + 1))) {
    return malformed(value.span(), fmt::format("{} is no version such as \"13.4\"", what));
  }
  const auto number = [](std::string_view part) {
    std::int32_t sum = 0;
    for (const char c : part) sum = sum * 10 + (c - '0');
    return sum;
  };
  return 100 * number(text.substr(0, dot)) + number(text.substr(dot + 1));
}

Read<std::vector<std::int32_t>> read_amax_group(const JsonValue& value, const Limits& limits) {
  auto ranks = read_counts(value, "`amax_group`", limits);
  if (!ranks) return ranks;
  std::sort(ranks->begin(), ranks->end());
  const auto twice = std::adjacent_find(ranks->begin(), ranks->end());
  if (twice != ranks->end())
    return malformed(value.span(), fmt::format("rank {} is twice in `amax_group`", *twice));
  if (ranks->size() == 1) return malformed(value.span(), "`amax_group` is of two ranks at least");
  return ranks;
}

Read<std::vector<double>> read_paces(const JsonValue& value, const Limits& limits) {
  if (value.type() != Type::Array) {
    return wrong_type(value, "`paces`", "an array with a number for each rank");
  }
  std::vector<double> paces;
  for (auto item = value.first(); item; item = item->next()) {
    if (paces.size() >= limits.ranks) {
      return over_limit(item->span(), fmt::format("more than {} ranks", limits.ranks),
                        "--max-ranks");
    }
    const auto pace = read_real(*item, "a pace", kLeastPace, kMostPace);
    if (!pace) return pace.error();
    paces.push_back(*pace);
  }
  return paces;
}

// A number of bytes, or a size with its unit as --budget takes it: "80GiB".
Read<std::int64_t> read_budget(const JsonValue& value, std::string_view what) {
  if (value.type() != Type::String) return read_whole(value, what, 1, (std::int64_t{1} << 53) - 1);
  const auto size = read_size(value.string());
  if (!size) return malformed(value.span(), fmt::format("{}: {}", what, size.error()));
  return *size;
}

// Bytes a microsecond. A byte a second is the slowest, so that no quotient is infinite.
Read<double> read_bandwidth(const JsonValue& value, std::string_view what) {
  return read_real(value, what, 1e-6, 1e12);
}

Read<double> read_times_as_long(const JsonValue& value, std::string_view what) {
  return read_real(value, what, 1, 1e6);
}

constexpr std::array<JsonMember<EpOverlap>, 3> kSlots{{
    {"multi_token_prediction", put<&EpOverlap::multi_token_prediction, read_boolean>},
    {"early_release", put<&EpOverlap::early_release, read_boolean>},
    {"delayed_weights", put<&EpOverlap::delayed_weights, read_boolean>},
}};
constexpr std::array<JsonMember<TransferCost>, 6> kTransfer{{
    {"latency", put<&TransferCost::latency, read_microseconds>},
    {"bandwidth", put<&TransferCost::bandwidth, read_bandwidth>},
    {"bytes", put<&TransferCost::bytes, read_bytes>},
    {"crowded", put<&TransferCost::crowded, read_times_as_long>},
    {"slowdown", put<&TransferCost::slowdown, read_times_as_long>},
    {"ahead", put<&TransferCost::ahead, read_bytes>},
}};

struct Reading {
  Model model;
  const Limits& limits;
};

Maybe read_topology_member(const JsonValue& topology, std::string_view what, Reading& into) {
  if (topology.type() != Type::Object) {
    auto refusal = put<&Model::topology, read_choice<kTopologies>>(topology, what, into.model);
    if (refusal && refusal->finding.help.text.empty()) {
      refusal->finding.help.text = "stages are listed as `{\"stages\": [[0, 3], [1, 2]]}`";
    }
    return refusal;
  }
  if (auto refusal = refuse_unknown_keys(topology, kStagesKeys, kModelSchema)) return refusal;
  const auto member = topology.find("stages");
  if (!member) return malformed(topology.span(), "the topology has no `stages`");
  auto stages = read_stages(*member, into.limits);
  if (!stages) return stages.error();
  into.model.topology = Topology::Custom;
  into.model.stages = std::move(*stages);
  return std::nullopt;
}

Maybe read_slots(const JsonValue& value, std::string_view what, Reading& into) {
  if (auto refusal = refuse_other_object(value, what, keys_of(kSlots), kModelSchema)) {
    return refusal;
  }
  return read_members(value, "", kSlots, into.model.environment.ep_slots);
}

Maybe read_transfers(const JsonValue& value, std::string_view what, Reading& into) {
  const bool text = value.type() == Type::String;
  const auto stated = text ? transfers_stated(value.string()) : std::nullopt;
  if (!stated) {
    constexpr std::array<std::string_view, 2> kSends{"rendezvous", "buffered"};
    return malformed(value.span(),
                     fmt::format("{} is one of rendezvous, buffered, buffered:BYTES", what),
                     text ? did_you_mean(value.string(), kSends, "") : "");
  }
  into.model.environment.transfers = stated->mode;
  into.model.environment.channel_bytes = stated->channel_bytes;
  return std::nullopt;
}

Maybe read_transfer(const JsonValue& value, std::string_view what, Reading& into) {
  if (auto refusal = refuse_other_object(value, what, keys_of(kTransfer), kModelSchema)) {
    return refusal;
  }
  return read_members(value, "transfer.", kTransfer, into.model.transfer);
}

Maybe skip(const JsonValue& /*value*/, std::string_view /*what*/, Reading& /*into*/) {
  return std::nullopt;
}

// Reads a value with kRead into a slot of a part of the model.
template <auto kPart, auto kSlot, auto kRead>
Maybe in(const JsonValue& value, std::string_view what, Reading& into) {
  return put<kSlot, kRead>(value, what, into.model.*kPart);
}

// Moves what a reader of one part made into the model.
template <typename Slot, typename Made>
Maybe keep(Slot& slot, Made made) {
  if (!made) return made.error();
  slot = std::move(*made);
  return std::nullopt;
}

constexpr auto kEnvironment = &Model::environment;
constexpr auto kPlan = &Model::plan;

constexpr std::array<JsonMember<Reading>, 25> kModelMembers{{
    {"schema", skip},
    {"comment", skip},
    {"topology", read_topology_member},
    {"communicators", in<kEnvironment, &Environment::communicators, read_choice<kCommunicators>>},
    {"comm_init", in<kEnvironment, &Environment::comm_init, read_choice<kCommInits>>},
    {"transfers", read_transfers},
    {"p2p", in<kEnvironment, &Environment::p2p, read_choice<kMegatronCalls>>},
    {"ep_overlap", in<kEnvironment, &Environment::ep_overlap, read_boolean>},
    {"ep_slots", read_slots},
    {"weight_stream", in<kEnvironment, &Environment::weight_stream, read_boolean>},
    {"architecture", in<kEnvironment, &Environment::architecture, read_choice<kArchitectures>>},
    {"cublaslt", in<kEnvironment, &Environment::cublaslt, read_cublaslt>},
    {"amax_group",
     [](const JsonValue& value, std::string_view, Reading& into) {
       return keep(into.model.environment.amax_group, read_amax_group(value, into.limits));
     }},
    {"configuration",
     [](const JsonValue& value, std::string_view, Reading& into) {
       return keep(into.model.configuration, read_configuration(value));
     }},
    {"modules",
     [](const JsonValue& value, std::string_view, Reading& into) {
       return keep(into.model.modules.list, read_modules(value, into.limits));
     }},
    {"layers",
     [](const JsonValue& value, std::string_view, Reading& into) {
       ModuleTable& modules = into.model.modules;
       return keep(modules.layers, read_module_layers(value, modules.list, into.limits));
     }},
    {"groups",
     [](const JsonValue& value, std::string_view, Reading& into) {
       return keep(into.model.groups, read_groups(value, into.limits));
     }},
    {"transfer", read_transfer},
    {"paces", [](const JsonValue& value, std::string_view,
                 Reading& into) { return keep(into.model.paces, read_paces(value, into.limits)); }},
    {"plan", in<kPlan, &PlanOptions::kind, read_choice<kPlans>>},
    {"alias", [](const JsonValue& value, std::string_view,
                 Reading& into) { return keep(into.model.plan.aliases, read_aliases(value)); }},
    {"budget", in<kPlan, &PlanOptions::budget, read_budget>},
    {"warm_up_keeps_outputs", in<kPlan, &PlanOptions::warm_up_keeps_outputs, read_boolean>},
    {"paged_stash", in<kPlan, &PlanOptions::paged_stash, read_boolean>},
    {"model_chunks",
     [](const JsonValue& value, std::string_view, Reading& into) {
       return keep(into.model.plan.model_chunks, read_model_chunks(value, into.limits));
     }},
}};

// Without `layers` one module is every layer; of several nobody says which layer is which.
Maybe complete_layers(const JsonValue& root, ModuleTable& modules) {
  if (modules.list.empty() || root.find("layers")) return std::nullopt;
  if (modules.list.size() == 1) {
    modules.layers = {{{0}}};
    return std::nullopt;
  }
  return malformed(
      root.find("modules")->span(),
      fmt::format("there are {} modules here, and no `layers` say which layer is which",
                  modules.list.size()),
      fmt::format("`\"layers\": \"{0}\"` makes each layer a `{0}`; lists tell them apart",
                  modules.list.front().name));
}

// Which modules and what else say fp8, "module `mlp` and 2 more"; empty if nothing does.
std::string said_fp8(const JsonValue& root) {
  std::vector<std::string> places;
  const auto look_at = [&](const JsonValue& object, std::string place) {
    const auto type = object.find("dtype");
    if (type && is_fp8(*type)) places.push_back(std::move(place));
  };
  if (const auto configuration = root.find("configuration"))
    look_at(*configuration, "`configuration`");
  if (const auto modules = root.find("modules")) {
    for (auto module = modules->first(); module; module = module->next())
      look_at(*module, fmt::format("module {}", shown(module->key())));
  }
  if (places.empty()) return "";
  if (places.size() == 1) return places.front();
  return fmt::format("{} and {} more", places.front(), places.size() - 1);
}

void note_old_types(const JsonValue& root, Model& model) {
  const std::string places = said_fp8(root);
  if (places.empty()) return;
  model.notes.push_back(
      fmt::format("the `dtype` fp8 of {} is read as bf16, with recipe current unless another is "
                  "declared: `recipe` says how operands are quantized",
                  places));
}

}  // namespace

Read<Model> read_model(std::string_view text, const Limits& limits) {
  const auto document = JsonDocument::parse(text, limits);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (root.type() != Type::Object) return wrong_type(root, "the model", "an object");
  if (auto refusal = refuse_schema(root)) return std::move(*refusal);
  if (auto refusal = refuse_unknown_keys(root, keys_of(kModelMembers), kModelSchema)) {
    return std::move(*refusal);
  }
  Reading reading{.limits = limits};
  if (auto refusal = read_members(root, "", kModelMembers, reading)) return std::move(*refusal);
  if (auto refusal = complete_layers(root, reading.model.modules)) return std::move(*refusal);
  note_old_types(root, reading.model);
  derive(reading.model);
  return std::move(reading.model);
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
