#include "core/report/report.h"

#include "core/base/assert.h"
#include "core/diag/lines.h"
#include "core/text/stated_transfers.h"

#include <nlohmann/json.hpp>

#include <set>
#include <tuple>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

Json span_of(const Lines& lines, Span span) {
  const LineColumn at = lines.place(span.offset);
  return {{"source", lines.source().name_at(span.offset)},
          {"line", at.line},
          {"column", at.column},
          {"offset", span.offset},
          {"length", span.length}};
}

Json json_of(const WitnessEntry& task) {
  return {{"rank", task.rank},
          {"index", task.index},
          {"text", task.text},
          {"action", task.action.empty() ? Json(nullptr) : Json(task.action)}};
}

Json json_of(const Lines& lines, const Diagnostic& diagnostic) {
  Json spans = Json::array();
  for (const Label& label : diagnostic.labels) {
    Json span = span_of(lines, label.span);
    if (!label.text.empty()) span["label"] = label.text;
    spans.push_back(std::move(span));
  }
  Json notes = Json::array();
  for (const Note& note : diagnostic.notes) {
    Json item{{"text", note.text}};
    if (note.span) item["span"] = span_of(lines, *note.span);
    notes.push_back(std::move(item));
  }
  Json help = nullptr;
  if (!diagnostic.help.text.empty()) {
    help = {{"text", diagnostic.help.text}, {"edits", Json::array()}};
    for (const Edit& edit : diagnostic.help.edits) {
      help["edits"].push_back(
          {{"span", span_of(lines, edit.span)}, {"replacement", edit.replacement}});
    }
  }
  Json tasks = Json::array();
  for (const WitnessEntry& task : diagnostic.witness.tasks) tasks.push_back(json_of(task));
  return {{"rule", diagnostic.rule},
          {"name", find_rule(diagnostic.rule)->name},
          {"family", name_of(diagnostic.family)},
          {"severity", name_of(diagnostic.severity)},
          {"message", diagnostic.message},
          {"spans", std::move(spans)},
          {"notes", std::move(notes)},
          {"help", std::move(help)},
          {"witness", {{"kind", name_of(diagnostic.witness.kind)}, {"tasks", std::move(tasks)}}}};
}

Json json_of(const Layers& layers) {
  switch (layers.form) {
    case Layers::Form::Unstated:
    case Layers::Form::Null:
      return nullptr;
    case Layers::Form::Count:
      return layers.values.front();
    case Layers::Form::List:
      return layers.values;
  }
  CAPO_UNREACHABLE();
}

Json json_of(const Setting& environment) {
  Json out = {
      {"topology", environment.topology},
      {"plan", environment.plan ? Json(name_of(*environment.plan)) : Json(nullptr)},
      {"modules", environment.modules.empty() ? Json(nullptr) : Json(environment.modules)},
      {"ranks", environment.ranks},
      {"chunks", environment.chunks},
      {"microbatches", environment.microbatches},
      {"layers_per_chunk", json_of(environment.layers)},
      {"delayed", environment.delayed_everywhere ? Json("all") : Json(environment.delayed)},
      {"communicators",
       environment.communicates ? Json(name_of(environment.across.layout())) : Json(nullptr)},
      {"transfers",
       environment.communicates ? Json(transfers_text(environment.across)) : Json(nullptr)},
      {"p2p", environment.across.p2p ? Json(name_of(*environment.across.p2p)) : Json(nullptr)},
      {"ep_overlap", environment.across.ep_overlap},
      {"weight_stream", environment.across.has_weight_stream()},
      {"collective_groups", environment.groups},
      {"assumed", environment.assumed}};
  if (environment.communicates && environment.across.made_lazily())
    out["comm_init"] = name_of(CommInit::Lazy);
  if (environment.across.architecture)
    out["architecture"] = name_of(*environment.across.architecture);
  if (const auto version = environment.across.cublaslt)
    out["cublaslt"] = fmt::format("{}.{}", *version / 100, *version % 100);
  if (!environment.across.amax_group.empty()) out["amax_group"] = environment.across.amax_group;
  return out;
}

Json json_of(const Lines& lines, const Suppressed& suppressed) {
  Json out = json_of(lines, suppressed.finding);
  out["suppression"] = {{"reason", suppressed.by.reason}, {"written_at", suppressed.by.written_at}};
  return out;
}

Json json_of(const Report& report, const Opinion& opinion) {
  Json out = Json::object();
  out["version"] = opinion.version;
  out["accepts"] = opinion.accepts ? Json(*opinion.accepts) : Json(nullptr);
  out["error_kind"] = opinion.error_kind ? Json(*opinion.error_kind) : Json(nullptr);
  out["reason"] = opinion.reason.empty() ? Json(nullptr) : Json(opinion.reason);
  for (const auto& [step, says] : opinion.steps)
    out[std::string(step)] = says ? Json(*says) : Json(nullptr);
  if (!opinion.slots.empty()) {
    out["slots"] = Json::array();
    for (const auto& slots : opinion.slots)
      out["slots"].push_back(slots ? Json(*slots) : Json(nullptr));
  }
  if (opinion.framework == "torch") {
    out["reads"] = Json::array();
    for (const TorchMisreading& misreading : opinion.misreadings) {
      out["reads"].push_back({{"rank", misreading.rank},
                              {"index", misreading.cell},
                              {"text", misreading.text},
                              {"torch", misreading.torch_reads}});
    }
  }
  const std::string_view words = disagreement(report, opinion);
  out["disagreement"] = words.empty() ? Json(nullptr) : Json(words);
  return out;
}

// Chunk and microbatch of every buffer of a kind that is read after it was taken over, ascending.
Json victims_of(const PlanResult& plan, HazardKind kind) {
  std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> victims;
  for (const FoundHazard& hazard : plan.hazards) {
    if (hazard.kind != kind) continue;
    victims.emplace(hazard.victim.rank, hazard.victim.chunk, hazard.victim.microbatch);
  }
  Json out = Json::array();
  for (const auto& [rank, chunk, microbatch] : victims) {
    Json victim = Json::array({chunk, microbatch});
    if (plan.ranks.size() > 1) victim.push_back(rank);
    out.push_back(std::move(victim));
  }
  return out;
}

Json json_of(const FoundHazard& hazard) {
  return {{"kind", name_of(hazard.kind)},
          {"buffer", name_of(hazard.victim.kind)},
          {"rank", hazard.victim.rank},
          {"victim", {hazard.victim.chunk, hazard.victim.microbatch}},
          {"layer", hazard.victim.layer},
          {"writer", json_of(hazard.writer)},
          {"reader", json_of(hazard.reader)},
          {"possible", hazard.possible},
          {"race", hazard.race},
          {"by_replay", hazard.by_replay}};
}

Json bytes_of(const PlanResult& plan) {
  if (!plan.sized) return nullptr;
  Json ranks = Json::array();
  for (const RankMemory& memory : plan.ranks) {
    ranks.push_back({{"peak", memory.peak()},
                     {"peak_entry", memory.peak_entry},
                     {"lower_bound", memory.lower_bound},
                     {"static_inputs", memory.static_inputs},
                     {"grad_outputs", memory.grad_outputs},
                     {"pool", memory.pool},
                     {"warm_up", memory.warm_up},
                     {"weights", memory.weights}});
  }
  return {{"ranks", std::move(ranks)}};
}

// The buffers of each rank's transfers; null if no rank has any.
Json transfer_buffers_of(const PlanResult& plan) {
  if (!has_transfers(plan)) return nullptr;
  const auto bytes = [&](std::int64_t number) { return plan.sized ? Json(number) : Json(nullptr); };
  Json ranks = Json::array();
  for (const RankMemory& memory : plan.ranks) {
    const TransferMemory& of = memory.transfers;
    ranks.push_back({{"receives", of.receives},
                     {"receive_bytes", bytes(of.receive_bytes)},
                     {"sends", of.sends},
                     {"send_bytes", bytes(of.send_bytes)}});
  }
  return {{"ranks", std::move(ranks)}};
}

// The result of a plan; null if there was none to look at.
void add_plan(Json& out, const std::optional<PlanResult>& plan) {
  for (const char* key : {"hazards", "victims", "slots", "bytes", "transfer_buffers"})
    out[key] = nullptr;
  if (!plan) return;
  out["hazards"] = Json::array();
  for (const FoundHazard& hazard : plan->hazards) out["hazards"].push_back(json_of(hazard));
  out["victims"] = {{"static_input", victims_of(*plan, HazardKind::StaticInput)},
                    {"grad_output", victims_of(*plan, HazardKind::GradOutput)}};
  std::size_t slots = 0;
  for (const RankMemory& memory : plan->ranks) slots += memory.input_slots;
  out["slots"] = slots;
  out["bytes"] = bytes_of(*plan);
  out["transfer_buffers"] = transfer_buffers_of(*plan);
}

// Lists what nobody declared, with the verdict under each of its values.
Json undeclared_of(const Report& report) {
  Json out = Json::array();
  if (!report.environment) return out;
  for (const Undeclared& fact : report.environment->undeclared) {
    Json values = Json::array();
    for (const auto& value : fact.values) {
      values.push_back({{"value", value.name}, {"verdict", name_of(value.verdict)}});
    }
    out.push_back({{"key", fact.key}, {"values", std::move(values)}});
  }
  return out;
}

}  // namespace

std::string to_json(const Report& report, JsonLayout layout, const std::string& extra_input) {
  Json out{{"schema", 1}, {"verdict", name_of(report.verdict)}};
  out["environment"] = report.environment ? json_of(*report.environment) : Json(nullptr);
  out["finishes"] = report.finishes ? Json(*report.finishes) : Json(nullptr);
  out["diagnostics"] = Json::array();
  const Lines lines(*report.source);
  for (const Diagnostic& diagnostic : report.diagnostics.kept()) {
    out["diagnostics"].push_back(json_of(lines, diagnostic));
  }
  if (!report.suppressed.empty()) out["suppressed"] = Json::array();
  for (const Suppressed& suppressed : report.suppressed) {
    out["suppressed"].push_back(json_of(lines, suppressed));
  }
  add_plan(out, report.plan);
  out["undeclared"] = undeclared_of(report);
  if (report.left_unasked) out["left_unasked"] = true;
  if (!report.notes.empty()) out["notes"] = report.notes;
  out["findings"] = {{"errors", report.diagnostics.errors()},
                     {"warnings", report.diagnostics.warnings()},
                     {"not_shown", report.diagnostics.dropped()}};
  out["skipped"] = Json::array();
  for (const Pass pass : report.skipped) out["skipped"].push_back(name_of(pass));
  out["profiles"] = Json::object();
  for (const Opinion& opinion : report.opinions) {
    out["profiles"][opinion.profile] = json_of(report, opinion);
  }
  const int indent = layout == JsonLayout::Indented ? 2 : -1;
  std::string text = out.dump(indent, ' ', false, Json::error_handler_t::replace);
  if (!extra_input.empty()) {
    // The user's own values go through byte for byte, numbers of any precision included.
    text.pop_back();
    if (layout == JsonLayout::Indented) text.pop_back();
    text += ",\"input\":{" + extra_input + "}}";
  }
  return text;
}

}  // namespace capo
