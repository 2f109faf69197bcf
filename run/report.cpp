#include "run/report.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/report/report.h"
#include "core/text/action_token.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

namespace {

using Json = nlohmann::ordered_json;

// "B01, E01".
std::string rules_of(const CheckResult& result) {
  std::set<std::string_view> rules;
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity == Severity::Error) rules.insert(finding.rule);
  }
  return fmt::format("{}", fmt::join(rules, ", "));
}

}  // namespace

std::string reason_of(const CheckResult& result) {
  if (result.verdict == Verdict::Accepted) return "it is accepted";
  const char* what = result.verdict == Verdict::Rejected ? "rejected for" : "no verdict, for";
  return fmt::format("{} {}", what, rules_of(result));
}

namespace {

std::string victims_in_words(const std::set<Victim>& victims, std::size_t ranks) {
  std::vector<std::string> words;
  for (const Victim& victim : victims) {
    words.push_back(ranks > 1
                        ? fmt::format("(r{},c{},m{})", victim.rank, victim.chunk, victim.microbatch)
                        : fmt::format("(c{},m{})", victim.chunk, victim.microbatch));
  }
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
}

std::size_t differing(const std::vector<TensorReport>& tensors) {
  std::size_t found = 0;
  for (const TensorReport& tensor : tensors) found += tensor.difference ? 1 : 0;
  return found;
}

void tell_differences(std::string& out, const std::vector<TensorReport>& tensors) {
  constexpr std::size_t kMost = 8;
  std::size_t told = 0;
  for (const TensorReport& tensor : tensors) {
    if (!tensor.difference) continue;
    if (++told > kMost) continue;
    const Difference& found = *tensor.difference;
    out += fmt::format(
        "  {}: {} of {} elements in replay {}, first [{}]: {} instead of {}, relative error "
        "{:.3g}\n",
        tensor.name, found.differing, tensor.elements, tensor.replay, found.first, found.is,
        found.should, found.relative_error);
  }
  if (told > kMost) out += fmt::format("  and {} more\n", told - kMost);
}

void tell_float64(std::string& out, const RunReport& report) {
  constexpr std::size_t kMost = 8;
  const std::size_t told = std::min(report.beyond.size(), kMost);
  for (std::size_t i = 0; i < told; ++i) {
    const BeyondBound& tensor = report.beyond[i];
    out += fmt::format("  {}: relative error {:.3g}, its bound is {:.3g}\n", tensor.name,
                       tensor.error, tensor.bound);
  }
  if (report.beyond.size() > told) {
    out += fmt::format("  and {} more\n", report.beyond.size() - told);
  }
  if (report.sampled) {
    out += fmt::format(
        "  {} elements of {}, drawn by seed {} ({} of each microbatch, and as many columns of each "
        "weight); the worst of them is off by {:.3g}\n",
        report.sampled->elements, counted(report.sampled->tensors, "tensor"), report.sampled->seed,
        counted(as_index(report.sampled->samples), "row"), report.sampled->worst_element);
  }
  if (report.other_ways > 0) {
    out += fmt::format(
        "  {} on the edge went the other way in eager execution, and float64's followed\n",
        counted(report.other_ways, "rounding"));
  }
}

// JSON knows no infinity.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// true or false if something was compared; null without replays.
Json equal_or_null(const RunReport& report, bool equal) {
  return report.replays > 0 ? Json(equal) : Json(nullptr);
}

Json tensors_as_json(const RunReport& report, const std::vector<TensorReport>& tensors) {
  Json list = Json::array();
  for (const TensorReport& tensor : tensors) {
    Json entry{{"name", tensor.name},
               {"elements", tensor.elements},
               {"bit_equal", equal_or_null(report, !tensor.difference.has_value())}};
    if (tensor.difference) {
      const Difference& found = *tensor.difference;
      entry["difference"] = {{"replay", tensor.replay},
                             {"elements", found.differing},
                             {"first", found.first},
                             {"eager", number(static_cast<double>(found.should))},
                             {"replayed", number(static_cast<double>(found.is))},
                             {"ulps", found.ulps},
                             {"relative_error", number(found.relative_error)}};
    }
    const bool met = !report.sampled || tensor.float64_elements.value_or(0) > 0;
    if (tensor.bound > 0 && report.float64_compared && met) {
      entry["float64"] = {{"relative_error", number(tensor.float64_error)},
                          {"bound", tensor.bound}};
      if (tensor.ascending_error) {
        entry["float64"]["ascending"] = number(*tensor.ascending_error);
      }
      if (tensor.float64_elements) entry["float64"]["elements"] = *tensor.float64_elements;
      if (tensor.zero) entry["float64"]["zero"] = *tensor.zero;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// The gradients that show nothing, equal or not.
std::size_t zero_in(const RunReport& report) {
  const auto zero = [](const TensorReport& tensor) { return tensor.zero.value_or(false); };
  return as_index(
      std::count_if(report.parameters.begin(), report.parameters.end(), zero) +
      std::count_if(report.input_gradients.begin(), report.input_gradients.end(), zero));
}

Json float64_as_json(const RunReport& report) {
  if (!report.float64_compared) return nullptr;
  Json beyond = Json::array();
  for (const BeyondBound& tensor : report.beyond) {
    beyond.push_back(
        {{"name", tensor.name}, {"relative_error", number(tensor.error)}, {"bound", tensor.bound}});
  }
  Json json{{"worst_relative_error", number(report.worst_relative_error)},
            {"within_bounds", report.within_bounds},
            {"beyond", std::move(beyond)},
            {"other_ways", report.other_ways}};
  if (report.sampled) {
    json["sampled"] = {{"samples", report.sampled->samples},
                       {"seed", report.sampled->seed},
                       {"tensors", report.sampled->tensors},
                       {"elements", report.sampled->elements},
                       {"worst_element", number(report.sampled->worst_element)}};
  }
  return json;
}

Json findings_as_json(const CheckResult& result) {
  Json findings = Json::array();
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity != Severity::Error) continue;
    findings.push_back({{"rule", finding.rule}, {"message", finding.message}});
  }
  return findings;
}

Json victims_as_json(const std::set<Victim>& victims, std::size_t ranks) {
  Json list = Json::array();
  for (const Victim& victim : victims) {
    Json entry = Json::array();
    if (ranks > 1) entry.push_back(victim.rank);
    entry.push_back(victim.chunk);
    entry.push_back(victim.microbatch);
    list.push_back(std::move(entry));
  }
  return list;
}

Json victims_as_json(const Victims& victims, std::size_t ranks) {
  return {{"static_input", victims_as_json(victims.static_input, ranks)},
          {"grad_output", victims_as_json(victims.grad_output, ranks)},
          {"grad_input", victims_as_json(victims.grad_input, ranks)},
          {"other", victims_as_json(victims.other, ranks)}};
}

std::string act_name(const Work& work) {
  return to_token({.kind = work.kind, .chunk = work.chunk, .microbatch = work.microbatch},
                  Naming::Named) +
         (work.layer == kAllLayers ? "" : fmt::format(" l{}", work.layer));
}

// The end of a transfer that is finished, on the rank whose stream it is.
Kind kind_of_end(const OpPart& part) {
  const bool forward = part.way == Way::Forward;
  if (part.end == End::Send) return forward ? Kind::SendForward : Kind::SendBackward;
  return forward ? Kind::ReceiveForward : Kind::ReceiveBackward;
}

std::string act_name(const Program& program, const OpPart& part) {
  switch (part.kind) {
    case OpPart::Kind::Work: {
      std::vector<std::string> names;
      for_each_work(part, [&](const Work& work) { names.push_back(act_name(work)); });
      return fmt::format("{}", fmt::join(names, " "));
    }
    case OpPart::Kind::Deliver:
      return std::string(word_of(kind_of_end(part)));
    case OpPart::Kind::Permute:
    case OpPart::Kind::Return:
    case OpPart::Kind::Cross:
      return "exchange";
    case OpPart::Kind::Reduce:
      return fmt::format("reduce{}", program.reductions[part.to].chunk);
    case OpPart::Kind::Send:
    case OpPart::Kind::Receive:
    case OpPart::Kind::Delivered:
    case OpPart::Kind::Collect:
      break;
  }
  CAPO_UNREACHABLE();
}

Kind kind_of(const Program& program, const OpPart& part) {
  const bool forward = part.way == Way::Forward;
  switch (part.kind) {
    case OpPart::Kind::Work:
      return part.work.kind;
    case OpPart::Kind::Deliver:
      return kind_of_end(part);
    case OpPart::Kind::Permute:
      return forward ? Kind::DispatchForward : Kind::CombineBackward;
    case OpPart::Kind::Return:
      return forward ? Kind::CombineForward : Kind::DispatchBackward;
    case OpPart::Kind::Reduce:
      return Kind::ReduceGradient;
    case OpPart::Kind::Cross:
      // In a backward the gradient of the combine comes first.
      return program.crossings[part.to].out.empty()
                 ? (forward ? Kind::CombineForward : Kind::DispatchBackward)
                 : (forward ? Kind::DispatchForward : Kind::CombineBackward);
    case OpPart::Kind::Send:
    case OpPart::Kind::Receive:
    case OpPart::Kind::Delivered:
    case OpPart::Kind::Collect:
      break;
  }
  CAPO_UNREACHABLE();
}

// A transfer is shown once, at the end that finishes first; what is collected takes no time.
bool is_shown(const OpPart& part) {
  return part.kind == OpPart::Kind::Work || part.kind == OpPart::Kind::Deliver ||
         part.kind == OpPart::Kind::Permute || part.kind == OpPart::Kind::Return || meets(part);
}

// The first part of an op that has a label; null if none has, as of an op that only waits.
const OpPart* first_shown(const Program& program, const Op& op) {
  for (std::uint32_t at = op.first_part; at < op.end_part; ++at) {
    if (is_shown(program.parts[at])) return &program.parts[at];
  }
  return nullptr;
}

std::string label_of(const Program& program, const Op& op) {
  std::vector<std::string> names;
  for (std::uint32_t at = op.first_part; at < op.end_part; ++at) {
    if (is_shown(program.parts[at])) names.push_back(act_name(program, program.parts[at]));
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string_view lane_name(const OpPart& part) {
  if (part.kind == OpPart::Kind::Work) return "compute";
  if (part.kind == OpPart::Kind::Reduce) return "dp";
  return part.kind == OpPart::Kind::Deliver ? "p2p" : "comm";
}

// A program does not name its streams, so each is named after the first that runs on it.
std::vector<Lane> lanes_of(const Program& program) {
  std::vector<Lane> lanes;
  for (const std::int32_t rank : program.rank_of_stream) lanes.push_back({.rank = rank});
  for (const Op& op : program.ops) {
    Lane& lane = lanes[op.stream];
    const OpPart* first = first_shown(program, op);
    if (first != nullptr && lane.name.empty()) lane.name = lane_name(*first);
  }
  return lanes;
}

// The stage of a work, if the schedule places its chunk.
std::optional<std::int32_t> stage_of(const Work& work, std::int32_t rank,
                                     const Schedule& schedule) {
  const auto& stages = schedule.ranks[RankId(rank).index()].stages;
  const auto chunk = ChunkId(work.chunk).index();
  return chunk < stages.size() ? std::optional(stages[chunk]) : std::nullopt;
}

// Pairs of ranks with messages between them, or that reduce or exchange together, the lower one
// first; by whether they share a process.
using Edges = std::map<bool, std::set<std::pair<std::int32_t, std::int32_t>>>;

Edges edges_of(const RunReport& report) {
  Edges edges;
  const auto add = [&](std::int32_t a, std::int32_t b) {
    const bool within = report.division.home(a) == report.division.home(b);
    edges[within].insert(std::minmax(a, b));
  };
  for (const Transfer& transfer : report.program.transfers) {
    add(transfer.channel.sender, transfer.channel.receiver);
  }
  const auto add_all = [&](const std::vector<std::int32_t>& ranks) {
    for (auto a = ranks.begin(); a != ranks.end(); ++a) {
      for (auto b = a + 1; b != ranks.end(); ++b) add(*a, *b);
    }
  };
  for (const Reduction& reduction : report.program.reductions) add_all(reduction.ranks);
  for (const Crossing& crossing : report.program.crossings) add_all(crossing.ranks);
  return edges;
}

// The ranks of each group over which rows went.
std::set<std::vector<std::int32_t>> exchanged_over(const Program& program) {
  std::set<std::vector<std::int32_t>> all;
  for (const Crossing& crossing : program.crossings) all.insert(crossing.ranks);
  return all;
}

// "  edges: in process 0-1; nccl 1-2"
std::string edges_text(const RunReport& report) {
  Edges edges = edges_of(report);
  std::vector<std::string> parts;
  for (const bool within : {true, false}) {
    std::vector<std::string> names;
    for (const auto& [a, b] : edges[within]) names.push_back(fmt::format("{}-{}", a, b));
    if (names.empty()) continue;
    parts.push_back(
        fmt::format("{} {}", within ? "in process" : report.between, fmt::join(names, ", ")));
  }
  return fmt::format("  edges: {}\n", fmt::join(parts, "; "));
}

Json edges_as_json(const RunReport& report) {
  Edges edges = edges_of(report);
  return {{"in-process", edges[true]}, {report.between, edges[false]}};
}

}  // namespace

std::string text_report(const RunReport& report, const PlannedStep& step,
                        const std::vector<std::string>& assumed) {
  const CheckResult& result = step.result();
  const std::size_t ranks = step.input().schedule.ranks.size();
  const bool rejected = result.verdict == Verdict::Rejected;
  std::string out = fmt::format("{}: {}", step.input().source.name,
                                rejected ? reason_of(result) + ", and run all the same"
                                         : std::string(name_of(result.verdict)));
  out += '\n';
  const std::string transport =
      report.processes == 0
          ? ""
          : fmt::format(", {} between {} processes", report.between, report.processes);
  out += fmt::format("  engine {} ({}){}, {}, {}\n", report.engine, report.device, transport,
                     counted(report.graphs, "graph"), counted(report.replays, "replay"));
  const auto replicas = as_index(step.input().schedule.replicas);
  if (replicas > 1) {
    out += fmt::format("  {} replicas of {}\n", replicas, counted(ranks / replicas, "rank"));
  }
  if (report.division.per_process > 1) out += edges_text(report);
  for (const Reduction& reduction : report.program.reductions) {
    out += fmt::format("  reduced: chunk {} over ranks {}\n", reduction.chunk,
                       fmt::join(reduction.ranks, ", "));
  }
  for (const std::vector<std::int32_t>& ranks_of_group : exchanged_over(report.program)) {
    out += fmt::format("  exchanged: rows over ranks {}\n", fmt::join(ranks_of_group, ", "));
  }
  if (!assumed.empty()) out += fmt::format("  not declared: {}\n", fmt::join(assumed, "; "));
  const auto equal = [](const std::vector<TensorReport>& tensors) {
    return fmt::format("{} of {}", tensors.size() - differing(tensors), tensors.size());
  };
  if (report.replays > 0) {
    out += fmt::format("gradients equal to eager, to the bit: {} of parameters, {} of inputs\n",
                       equal(report.parameters), equal(report.input_gradients));
    tell_differences(out, report.parameters);
    tell_differences(out, report.input_gradients);
  }
  out += report.float64_compared
             ? fmt::format("eager against {}float64{}: worst relative error {:.3g}, {}\n",
                           report.sampled ? "a sample of " : "",
                           report.float64_replays < report.replays
                               ? fmt::format(", {} of {}", report.float64_replays,
                                             counted(report.replays, "replay"))
                               : "",
                           report.worst_relative_error,
                           report.within_bounds ? "within its bound" : "beyond its bound")
             : "eager against float64: not compared\n";
  tell_float64(out, report);
  if (const std::size_t zero = zero_in(report); zero > 0) {
    out += fmt::format(
        "  {} of {} gradients are zero throughout, and that those are equal shows nothing\n", zero,
        report.parameters.size() + report.input_gradients.size());
  }
  if (report.unchecked && report.replays > 0) {
    const auto line = [&](const char* what, const std::set<Victim>& seen,
                          const std::set<Victim>& expected) {
      if (seen.empty() && expected.empty()) return;
      out += fmt::format(
          "  {}: {}{}\n", what, victims_in_words(seen, ranks),
          seen == expected ? ", as predicted" : ", predicted " + victims_in_words(expected, ranks));
    };
    out += "victims\n";
    line("static input", report.victims.static_input, report.predicted.static_input);
    line("grad output", report.victims.grad_output, report.predicted.grad_output);
    line("grad input", report.victims.grad_input, report.predicted.grad_input);
    line("other memory", report.victims.other, report.predicted.other);
    for (const std::string& story : report.stories) out += "  " + story + "\n";
    out += fmt::format("  wrong weight gradients: {}\n",
                       victims_in_words(report.wrong_gradients, ranks));
  }
  if (report.replays > 0) {
    out += fmt::format("memory: {} bytes planned, {} allocated, {} at most in eager execution\n",
                       report.bytes.planned, report.bytes.allocated, report.bytes.eager_peak);
    const RunTimes& times = report.times;
    out += fmt::format(
        "times: capture {:.0f} us (instantiate {:.0f}, upload {:.0f}), replay {:.0f} us (launch "
        "{:.0f}), eager {:.0f} us\n",
        times.capture, times.instantiate, times.upload, times.replay, times.launch, times.eager);
  }
  if (report.predicted_makespan) {
    out += fmt::format(
        "makespan: {:.0f} us measured, {:.0f} us simulated, {:+.1f} %; parts took {:.2f} of it\n",
        report.times.makespan, *report.predicted_makespan,
        100 * (*report.predicted_makespan / report.times.makespan - 1),
        report.times.busy / report.times.makespan);
  }
  if (report.clock_doubt) {
    out += fmt::format("clocks: times of {} processes agree within {:.1f} us\n", report.processes,
                       *report.clock_doubt);
  }
  if (report.other_clocks) {
    out +=
        "clocks: some ranks ran on another machine, whose clock is another; their times are left "
        "out\n";
  }
  return out;
}

std::string json_report(const RunReport& report, const PlannedStep& step) {
  const std::size_t ranks = step.input().schedule.ranks.size();
  Json json{{"schema", 1},
            {"engine", report.engine},
            {"device", report.device},
            {"transport", report.processes == 0 ? "in-process" : report.between},
            {"verdict", name_of(step.result().verdict)},
            {"unchecked", report.unchecked},
            {"replays", report.replays},
            {"bit_equal", equal_or_null(report, report.bit_equal)},
            {"findings", findings_as_json(step.result())},
            {"parameters", tensors_as_json(report, report.parameters)},
            {"input_gradients", tensors_as_json(report, report.input_gradients)},
            {"victims", victims_as_json(report.victims, ranks)},
            {"predicted", victims_as_json(report.predicted, ranks)},
            {"wrong_gradients", victims_as_json(report.wrong_gradients, ranks)},
            {"float64", float64_as_json(report)},
            {"graphs", {{"count", report.graphs}, {"nodes", report.nodes}}},
            {"bytes",
             {{"planned", report.bytes.planned},
              {"allocated", report.bytes.allocated},
              {"eager_peak", report.bytes.eager_peak}}},
            {"times",
             {{"capture_us", report.times.capture},
              {"instantiate_us", report.times.instantiate},
              {"upload_us", report.times.upload},
              {"replay_us", report.times.replay},
              {"launch_us", report.times.launch},
              {"eager_us", report.times.eager},
              {"makespan_us", report.times.makespan},
              {"busy_us", report.times.busy}}}};
  if (report.division.per_process > 1) json["edges"] = edges_as_json(report);
  const std::int32_t replicas = step.input().schedule.replicas;
  if (replicas > 1) json["replicas"] = replicas;
  for (const Reduction& reduction : report.program.reductions) {
    json["reductions"].push_back({{"chunk", reduction.chunk}, {"ranks", reduction.ranks}});
  }
  for (const std::vector<std::int32_t>& over : exchanged_over(report.program)) {
    json["exchanges"].push_back({{"ranks", over}});
  }
  if (report.predicted_makespan) json["simulated_makespan_us"] = *report.predicted_makespan;
  if (report.clock_doubt) json["times"]["clock_doubt_us"] = *report.clock_doubt;
  if (report.other_clocks) json["times"]["other_clocks"] = true;
  return json.dump(2) + "\n";
}

std::string json_refusal(std::string_view verdict, std::string_view engine, const Reason& reason,
                         const CheckResult* result) {
  Json json{{"schema", 1},
            {"engine", engine},
            {"verdict", verdict},
            {"bit_equal", nullptr},
            {"reason", reason.reason}};
  if (!reason.help.empty()) json["help"] = reason.help;
  if (result != nullptr) json["findings"] = findings_as_json(*result);
  return json.dump(2) + "\n";
}

Timeline timeline_of(const RunReport& report, const Schedule& schedule) {
  const Program& program = report.program;
  Timeline timeline{.origin = Timeline::Origin::Measured,
                    .unit = Timeline::Unit::Microseconds,
                    .ranks = schedule.ranks.size(),
                    .makespan = report.times.makespan,
                    .lanes = lanes_of(program)};
  for (const Measured& measured : report.timeline) {
    const OpPart* first = first_shown(program, program.ops[measured.op]);
    if (first == nullptr) continue;
    const bool works = first->kind == OpPart::Kind::Work;
    timeline.tasks.push_back(
        {.begin = measured.begin,
         .end = measured.end,
         .lane = program.ops[measured.op].stream,
         .id = measured.op,
         .stage = works ? stage_of(first->work, first->rank, schedule) : std::nullopt,
         .microbatch = works ? MicrobatchId(first->work.microbatch) : kNoMicrobatch,
         .kind = kind_of(program, *first),
         .chunk = works ? first->work.chunk : 0});
  }
  timeline.label = [&program](std::uint32_t op) { return label_of(program, program.ops[op]); };
  return timeline;
}

}  // namespace capo::run
