#include "testing/truth/truth_line.h"

#include "core/base/index.h"
#include "core/report/report.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace capo::testing {

namespace {

using Json = nlohmann::ordered_json;

struct CameWord {
  Came came;
  std::string_view word;
};
constexpr std::array<CameWord, 5> kCame{{{Came::Right, "right"},
                                         {Came::Seen, "seen"},
                                         {Came::Explained, "explained"},
                                         {Came::NotRun, "not-run"},
                                         {Came::Disagrees, "disagrees"}}};

// A kind of memory that victims held, by its name in a line.
struct Held {
  std::string_view name;
  std::set<run::Victim> run::Victims::*slot;
};
constexpr std::array<Held, 4> kHeld{{{"static_input", &run::Victims::static_input},
                                     {"grad_output", &run::Victims::grad_output},
                                     {"grad_input", &run::Victims::grad_input},
                                     {"other", &run::Victims::other}}};

Json cells(const std::set<run::Victim>& victims) {
  Json list = Json::array();
  for (const run::Victim& victim : victims) {
    list.push_back({victim.rank, victim.chunk, victim.microbatch});
  }
  return list;
}

// Kinds of memory that hurt nobody are left out.
Json victims_of(const run::Victims& victims) {
  Json all = Json::object();
  for (const Held& held : kHeld) {
    if (!(victims.*held.slot).empty()) all[std::string(held.name)] = cells(victims.*held.slot);
  }
  return all;
}

run::Victims read_victims(const Json& json) {
  run::Victims victims;
  for (const Held& held : kHeld) {
    const auto found = json.find(held.name);
    if (found == json.end()) continue;
    for (const Json& cell : *found) {
      (victims.*held.slot)
          .insert({.rank = cell.at(0), .chunk = cell.at(1), .microbatch = cell.at(2)});
    }
  }
  return victims;
}

void add_run(Json& json, const TruthLine& line) {
  json["bit_equal"] = line.bit_equal;
  json["within_bounds"] = line.within_bounds;
  json["float64"] = line.float64;
  if (!line.beyond.empty()) json["beyond"] = line.beyond;
  if (line.other_ways > 0) json["other_ways"] = line.other_ways;
  json["gradients"] = line.gradients;
  json["replays"] = line.replays;
  const run::Victims nobody;
  if (line.victims == nobody && line.predicted == nobody && !line.host_victims) return;
  json["victims"] = victims_of(line.victims);
  json["predicted"] = victims_of(line.predicted);
  if (line.host_victims) json["host_victims"] = victims_of(*line.host_victims);
}

void read_run(const Json& json, TruthLine& line) {
  line.ran = true;
  line.bit_equal = json.at("bit_equal");
  line.within_bounds = json.at("within_bounds");
  line.float64 = json.at("float64");
  line.beyond = json.value("beyond", std::vector<std::string>{});
  line.other_ways = json.value("other_ways", std::size_t{0});
  line.gradients = json.at("gradients");
  line.replays = json.at("replays");
  if (const auto found = json.find("victims"); found != json.end()) {
    line.victims = read_victims(*found);
    line.predicted = read_victims(json.at("predicted"));
  }
  if (const auto found = json.find("host_victims"); found != json.end()) {
    line.host_victims = read_victims(*found);
  }
}

bool is_verdict(std::string_view word) {
  constexpr std::array kVerdicts{Verdict::Accepted, Verdict::Rejected, Verdict::NoVerdict};
  return std::any_of(kVerdicts.begin(), kVerdicts.end(),
                     [&](Verdict verdict) { return capo::name_of(verdict) == word; });
}

std::optional<TruthLine> line_of(const Json& json) {
  TruthLine line{.number = json.at("n"),
                 .order = json.at("order"),
                 .module = json.at("module"),
                 .plan = json.at("plan"),
                 .graphs = json.at("graphs"),
                 .replicas = json.value("replicas", 1),
                 .fault = json.value("fault", ""),
                 .across = json.value("across", ""),
                 .verdict = json.at("verdict"),
                 .rules = json.value("rules", std::vector<std::string>{}),
                 .reason = json.value("reason", ""),
                 .engine = json.at("engine")};
  const std::string came = json.at("came");
  const auto* const found = std::find_if(kCame.begin(), kCame.end(),
                                         [&](const CameWord& one) { return one.word == came; });
  if (found == kCame.end() || !is_verdict(line.verdict)) return std::nullopt;
  line.came = found->came;
  if (json.contains("bit_equal")) read_run(json, line);
  return line;
}

}  // namespace

std::string_view name_of(Came came) {
  return kCame[as_index(came)].word;
}

std::string to_text(const TruthLine& line) {
  Json json{{"n", line.number},       {"order", line.order},   {"module", line.module},
            {"plan", line.plan},      {"graphs", line.graphs}, {"engine", line.engine},
            {"verdict", line.verdict}};
  if (line.replicas > 1) json["replicas"] = line.replicas;
  if (!line.fault.empty()) json["fault"] = line.fault;
  if (!line.across.empty()) json["across"] = line.across;
  if (!line.rules.empty()) json["rules"] = line.rules;
  json["came"] = name_of(line.came);
  if (!line.reason.empty()) json["reason"] = line.reason;
  if (line.ran) add_run(json, line);
  return json.dump();
}

std::optional<TruthLine> read_truth_line(std::string_view text) {
  try {
    return line_of(Json::parse(text));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace capo::testing
