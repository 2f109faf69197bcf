#include <capo/core/report/json_report.h>

#include <nlohmann/json.hpp>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

Json span_of(const Source& source, Span span) {
  const LineColumn at = source.line_column(span.offset);
  return {{"source", source.name},
          {"line", at.line},
          {"column", at.column},
          {"offset", span.offset},
          {"length", span.length}};
}

Json json_of(const Source& source, const Diagnostic& diagnostic) {
  Json spans = Json::array();
  for (const Label& label : diagnostic.labels) {
    Json span = span_of(source, label.span);
    if (!label.text.empty()) span["label"] = label.text;
    spans.push_back(std::move(span));
  }
  Json notes = Json::array();
  for (const Note& note : diagnostic.notes) {
    Json item{{"text", note.text}};
    if (note.span) item["span"] = span_of(source, *note.span);
    notes.push_back(std::move(item));
  }
  Json help = nullptr;
  if (!diagnostic.help.text.empty()) {
    help = {{"text", diagnostic.help.text}, {"edits", Json::array()}};
    for (const Edit& edit : diagnostic.help.edits) {
      help["edits"].push_back(
          {{"span", span_of(source, edit.span)}, {"replacement", edit.replacement}});
    }
  }
  Json tasks = Json::array();
  for (const TaskReference& task : diagnostic.witness.tasks) {
    tasks.push_back({{"rank", task.rank},
                     {"index", task.index},
                     {"text", task.text},
                     {"action", task.action.empty() ? Json(nullptr) : Json(task.action)}});
  }
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
  return nullptr;
}

Json json_of(const Environment& environment) {
  return {{"topology", environment.topology},
          {"plan", nullptr},
          {"modules", nullptr},
          {"ranks", environment.ranks},
          {"chunks", environment.chunks},
          {"microbatches", environment.microbatches},
          {"layers_per_chunk", json_of(environment.layers)},
          {"delayed", environment.delayed_everywhere ? Json("all") : Json(environment.delayed)},
          {"assumed", environment.assumed}};
}

Json json_of(Verdict verdict, const Opinion& opinion) {
  Json out;
  out["accepts"] = opinion.accepts ? Json(*opinion.accepts) : Json(nullptr);
  out["error_kind"] = opinion.error_kind ? Json(*opinion.error_kind) : Json(nullptr);
  out["reason"] = opinion.reason.empty() ? Json(nullptr) : Json(opinion.reason);
  for (const auto& [step, says] : opinion.steps)
    out[std::string(step)] = says ? Json(*says) : Json(nullptr);
  if (opinion.profile == "torch") {
    out["reads"] = Json::array();
    for (const TorchMisreading& misreading : opinion.misreadings) {
      out["reads"].push_back({{"rank", misreading.rank},
                              {"index", misreading.cell},
                              {"text", misreading.text},
                              {"torch", misreading.torch_reads}});
    }
  }
  const std::string_view words = disagreement(verdict, opinion);
  out["disagreement"] = words.empty() ? Json(nullptr) : Json(words);
  return out;
}

}  // namespace

std::string to_json(const Report& report, JsonLayout layout, const std::string& extra_input) {
  Json out{{"schema", 1}, {"verdict", name_of(report.verdict)}};
  out["environment"] = report.environment ? json_of(*report.environment) : Json(nullptr);
  out["diagnostics"] = Json::array();
  for (const Diagnostic& diagnostic : report.diagnostics.kept()) {
    out["diagnostics"].push_back(json_of(*report.source, diagnostic));
  }
  out["findings"] = {{"errors", report.diagnostics.errors()},
                     {"warnings", report.diagnostics.warnings()},
                     {"not_shown", report.diagnostics.dropped()}};
  out["skipped"] = Json::array();
  for (const Pass pass : report.skipped) out["skipped"].push_back(name_of(pass));
  out["profiles"] = Json::object();
  for (const Opinion& opinion : report.opinions) {
    out["profiles"][std::string(opinion.profile)] = json_of(report.verdict, opinion);
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
