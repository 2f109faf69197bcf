#include "core/report/report.h"

#include "core/diag/lines.h"
#include "core/text/printable.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <set>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostResults = 5'000;
constexpr std::size_t kMostLocations = 100;
constexpr std::size_t kMostSteps = 1'000;  // GitHub shows so many steps of a code flow

// The hash is FNV-1a. A finding keeps its fingerprint when lines above it change.
std::string fingerprint(const Diagnostic& diagnostic) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : std::string(diagnostic.rule) + diagnostic.message) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

// A relative reference for a file; what has no path, such as --order, gets a name that is one.
std::string uri_of(std::string_view name) {
  std::string uri;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

// SARIF counts columns in UTF-16 code units: a character beyond the basic plane is two. A text of
// ASCII is not walked for that, since all of it may be one line.
class SourceLines {
 public:
  explicit SourceLines(const Source& source)
      : lines_(source), ascii_(std::all_of(source.text.begin(), source.text.end(), [](char c) {
          return static_cast<unsigned char>(c) < 0x80;
        })) {}

  LineColumn at(std::size_t offset) const {
    LineColumn at = lines_.place(offset);
    if (ascii_) return at;
    const std::string& text = lines_.source().text;
    std::string_view before = std::string_view(text).substr(
        std::min(offset, text.size()) - (at.column - 1), at.column - 1);
    at.column = 1;
    while (!before.empty()) {
      const std::size_t length = std::max<std::size_t>(utf8_length(before), 1);
      at.column += length == 4 ? 2 : 1;
      before.remove_prefix(length);
    }
    return at;
  }

 private:
  Lines lines_;
  bool ascii_;
};

Json driver(std::span<const Report> reports, std::string_view version) {
  std::set<std::string_view> used;
  for (const Report& report : reports) {
    for (const Diagnostic& diagnostic : report.diagnostics.kept()) used.insert(diagnostic.rule);
    for (const Suppressed& suppressed : report.suppressed) used.insert(suppressed.finding.rule);
  }
  Json rules = Json::array();
  for (const Rule& rule : catalogue()) {
    if (!used.contains(rule.id)) continue;
    rules.push_back({{"id", rule.id},
                     {"name", rule.name},
                     {"shortDescription", {{"text", rule.title}}},
                     {"help", {{"text", fmt::format("capo explain {}", rule.id)}}},
                     {"properties", {{"tags", Json::array({name_of(rule.family)})}}}});
  }
  return {{"name", "capo"}, {"version", version}, {"rules", std::move(rules)}};
}

Json notification(const char* level, std::string_view text) {
  return {{"level", level}, {"message", {{"text", text}}}};
}

Json invocation(std::span<const Report> reports, std::size_t left_out) {
  const auto any = [&](auto holds) { return std::any_of(reports.begin(), reports.end(), holds); };
  const bool undecided =
      any([](const Report& report) { return report.verdict == Verdict::NoVerdict; });
  Json notifications = Json::array();
  if (left_out > 0) {
    notifications.push_back(notification(
        "warning", fmt::format("{} more findings are left out of this file", left_out)));
  }
  if (any([](const Report& report) { return report.left_unasked; })) {
    notifications.push_back(notification("note", kLeftUnasked));
  }
  if (undecided) notifications.push_back(notification("error", "there is no verdict"));
  for (const Report& report : reports) {
    for (const std::string& note : report.notes)
      notifications.push_back(notification("note", note));
  }
  return {{"executionSuccessful", !undecided},
          {"toolExecutionNotifications", std::move(notifications)}};
}

// The results of one report.
class SarifWriter {
 public:
  explicit SarifWriter(const Report& report) : report_(report), places_(*report.source) {}

  void write(Json& results) const {
    for (const Diagnostic& diagnostic : report_.diagnostics.kept()) {
      if (results.size() < kMostResults) results.push_back(result(diagnostic));
    }
    for (const Suppressed& suppressed : report_.suppressed) {
      if (results.size() < kMostResults) results.push_back(result(suppressed));
    }
  }

 private:
  Json location(Span span, const std::string& label) const {
    const LineColumn begin = places_.at(span.offset);
    const LineColumn end = places_.at(span.offset + std::max<std::uint32_t>(span.length, 1));
    Json out{{"physicalLocation",
              {{"artifactLocation", {{"uri", uri_of(report_.source->name_at(span.offset))}}},
               {"region",
                {{"startLine", begin.line},
                 {"startColumn", begin.column},
                 {"endLine", end.line},
                 {"endColumn", end.column}}}}}};
    if (!label.empty()) out["message"] = {{"text", label}};
    return out;
  }

  // A path or a cycle of waits, step by step: its labels stand in that order.
  Json code_flow(const Diagnostic& diagnostic) const {
    Json steps = Json::array();
    for (std::size_t i = 0; i < std::min(diagnostic.labels.size(), kMostSteps); ++i) {
      const Label& label = diagnostic.labels[i];
      steps.push_back({{"location", location(label.span, label.text)}});
    }
    return {{"threadFlows", Json::array({{{"locations", std::move(steps)}}})}};
  }

  Json result(const Suppressed& suppressed) const {
    Json out = result(suppressed.finding);
    const bool in_source = suppressed.by.span.has_value();
    Json suppression{{"kind", in_source ? "inSource" : "external"},
                     {"justification", suppressed.by.reason}};
    if (in_source) suppression["location"] = location(*suppressed.by.span, "");
    out["suppressions"] = Json::array({std::move(suppression)});
    return out;
  }

  Json result(const Diagnostic& diagnostic) const {
    Json out{{"ruleId", diagnostic.rule},
             {"level", name_of(diagnostic.severity)},
             {"message", {{"text", diagnostic.message}}},
             {"partialFingerprints", {{"capo/v1", fingerprint(diagnostic)}}}};
    // GitHub shows a result only if it has a place: the beginning of the file stands for the whole.
    const Label whole{};
    out["locations"] = Json::array(
        {location((diagnostic.labels.empty() ? whole : diagnostic.labels.front()).span, "")});
    Json related = Json::array();
    for (std::size_t i = 1; i < std::min(diagnostic.labels.size(), kMostLocations); ++i) {
      related.push_back(location(diagnostic.labels[i].span, diagnostic.labels[i].text));
    }
    if (!related.empty()) out["relatedLocations"] = std::move(related);
    const WitnessKind kind = diagnostic.witness.kind;
    if (kind == WitnessKind::Path || kind == WitnessKind::WaitCycle) {
      out["codeFlows"] = Json::array({code_flow(diagnostic)});
    }
    if (!diagnostic.help.edits.empty()) {
      Json replacements = Json::array();
      for (const Edit& edit : diagnostic.help.edits) {
        const LineColumn begin = places_.at(edit.span.offset);
        const LineColumn end = places_.at(edit.span.offset + edit.span.length);
        replacements.push_back({{"deletedRegion",
                                 {{"startLine", begin.line},
                                  {"startColumn", begin.column},
                                  {"endLine", end.line},
                                  {"endColumn", end.column}}},
                                {"insertedContent", {{"text", edit.replacement}}}});
      }
      out["fixes"] =
          Json::array({{{"description", {{"text", diagnostic.help.text}}},
                        {"artifactChanges",
                         Json::array({{{"artifactLocation",
                                        {{"uri", uri_of(report_.source->name_at(
                                                     diagnostic.help.edits.front().span.offset))}}},
                                       {"replacements", std::move(replacements)}}})}}});
    }
    return out;
  }

  const Report& report_;
  const SourceLines places_;
};

}  // namespace

std::string to_sarif(std::span<const Report> reports, std::string_view version) {
  Json results = Json::array();
  std::size_t found = 0;
  for (const Report& report : reports) {
    SarifWriter(report).write(results);
    found += report.diagnostics.kept().size() + report.diagnostics.dropped();
    found += report.suppressed.size();
  }
  const std::size_t left_out = found - results.size();
  // SARIF wants the member in every result of a run or in none.
  const bool suppresses = std::any_of(reports.begin(), reports.end(), [](const Report& report) {
    return !report.suppressed.empty();
  });
  for (Json& result : results) {
    if (suppresses) result.emplace("suppressions", Json::array());
  }
  Json run{{"tool", {{"driver", driver(reports, version)}}},
           {"invocations", Json::array({invocation(reports, left_out)})},
           {"columnKind", "utf16CodeUnits"},
           {"results", std::move(results)}};
  return Json{{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
              {"version", "2.1.0"},
              {"runs", Json::array({std::move(run)})}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace capo
