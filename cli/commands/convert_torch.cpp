// A table lowered as torch's own passes lower it, for `capo convert --lower`.

#include "cli/commands/convert_request.h"
#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/numbers.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/convert/for_torch.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/wiring.h"
#include "core/text/printable.h"
#include "core/text/scan.h"
#include "sim/simulation.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

const torch::Version& torch_version(const std::string& name) {
  if (name.empty() || name == "torch") return torch::kNewest;
  std::vector<std::string> names{"torch"};
  for (const torch::Version& version : torch::kVersions) {
    names.push_back(fmt::format("torch@{}", version.release));
    if (names.back() == name) return version;
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw CLI::ValidationError(
      "--for", "cannot be " + shown(name) + "; " +
                   did_you_mean(name, known, "tables are lowered for " + listed(known)));
}

torch::Policy policy_of(const TorchFlags& flags) {
  torch::Policy policy{.defer_reduce_grad_wait = flags.defer_reduce_wait,
                       .defer_pp_recv = !flags.defer_recv.empty(),
                       .max_outstanding_sends = flags.max_sends};
  policy.max_active_stages = flags.max_active.value_or(policy.max_active_stages);
  if (flags.lookahead == "auto") {
    policy.unshard_lookahead = torch::Lookahead::Auto;
  } else if (!flags.lookahead.empty() && flags.lookahead != "full") {
    const auto list = number_list(flags.lookahead, "--unshard-lookahead", -0x7fffffff);
    policy.unshard_lookahead = std::vector<std::int64_t>(list.begin(), list.end());
  }
  return policy;
}

int refuse_as_torch(const torch::Version& version, const RaisedByTorch& raised) {
  print_stderr(fmt::format("error: torch {} refuses the table\n  {}\n", version.number,
                           printable(raised.text, raised.text.size())));
  return kFindings;
}

bool is_csv(const Input& input) {
  return !input.csv_in_json && (input.form == Form::TorchCompute || input.form == Form::TorchComms);
}

// The error that torch raises at a text that capo refuses to read, if it is a table with a cell
// that torch refuses too.
std::optional<RaisedByTorch> raised_at(const CommandError& error, const ConvertRequest& request,
                                       const torch::Version& version) {
  const auto* refused = std::get_if<RefusedInput>(&error);
  if (refused == nullptr || refused->refusal.kind == Refusal::Kind::Limit) return std::nullopt;
  const Source& source = refused->source;
  const TextForm form = request.input.form.value_or(detect_form(source.name, source.text));
  if (form != TextForm::TorchCsv) return std::nullopt;
  const auto rows = split_torch_csv(source.text, request.input.limits);
  if (!rows) return std::nullopt;
  const auto read = read_for_torch(*rows, version);
  return read ? std::nullopt : std::optional(read.error());
}

// The lowered table as an input, with which it is judged and written in other forms.
Result<Input, RefusedInput> load_lowered(std::string text, const ForTorch& lowering,
                                         const ConvertRequest& request) {
  LoadOptions options{.form = TextForm::TorchCsv, .limits = request.input.limits};
  options.limits.bytes = std::max<std::uint64_t>(options.limits.bytes, text.size());
  options.limits.entries = std::max<std::uint64_t>(options.limits.entries, text.size());
  options.torch.microbatches = static_cast<std::int32_t>(lowering.microbatches);
  options.torch.stages = static_cast<std::int32_t>(lowering.stages);
  options.torch.communicates = true;
  return load(Source{.name = "<lowered>", .text = std::move(text)}, options);
}

// How long a step takes on links that queue, with f, b and w of 1 and messages that take no time;
// nullopt if it never ends.
std::optional<double> makespan(const std::string& table, const ForTorch& lowering,
                               const ConvertRequest& request, const CheckOptions& options,
                               bool ideal_links) {
  const auto lowered = load_lowered(table, lowering, request);
  if (!lowered) return std::nullopt;
  const SimulationOptions simulated{.check = options, .ideal_links = ideal_links};
  const auto simulation = simulation_of(*lowered, simulated);
  return simulation ? std::optional((*simulation)->makespan()) : std::nullopt;
}

// Says how many receives are put off, and what comes of it.
void note_deferral(const SafelyDeferred& deferred, const std::string& posted,
                   const ForTorch& lowering, const ConvertRequest& request,
                   const CheckOptions& options) {
  std::string note =
      fmt::format("note: {} of {} receives are put off", deferred.put_off, deferred.receives);
  const auto time = [&](const std::string& table, bool ideal_links) {
    return makespan(table, lowering, request, options, ideal_links);
  };
  const auto before = time(posted, false);
  const auto after = time(deferred.table, false);
  const auto ideal = time(posted, true);
  if (before && after && ideal) {
    note += fmt::format(
        "; simulated ({}, computations of 1) a step takes {}, {} with none put off, {} where no "
        "message keeps another waiting",
        name_of(options.environment.layout()), *after, *before, *ideal);
    if (*before > *ideal)
      note += fmt::format(": {:.0f} % of that bubble is won back",
                          100 * (*before - *after) / (*before - *ideal));
  }
  print_stderr(note + "\n");
}

// Whether the messages of a table meet as they are meant to, and all are over in the end.
// Precondition: capo accepts the table with its receives in other places.
bool communicates_well(const Input& lowered, const CheckOptions& options) {
  const Context context(lowered, options);
  const auto& wirings = context.wirings();
  return std::all_of(wirings.begin(), wirings.end(), [](const auto& wiring) {
    return wiring->transfers().faults.empty() && wiring->execution().finishes();
  });
}

// torch's deferral where capo accepts it, and none where capo rejects even that.
Result<std::string, RaisedByTorch> lower_safely(const torch::Rows& rows, ForTorch lowering,
                                                const ConvertRequest& request,
                                                const CheckOptions& options) {
  lowering.policy.defer_pp_recv = false;
  auto posted = lower_for_torch(rows, lowering);
  if (!posted) return posted.error();
  const auto accepted = [&](const std::string& table) {
    const auto lowered = load_lowered(table, lowering, request);
    return lowered && check(*lowered, options).verdict == Verdict::Accepted;
  };
  if (!accepted(*posted)) return posted;
  const auto deferred = defer_safely(rows, lowering, [&](const std::string& table) {
    const auto lowered = load_lowered(table, lowering, request);
    return lowered && communicates_well(*lowered, options);
  });
  if (!deferred || !accepted(deferred->table)) return posted;
  note_deferral(*deferred, *posted, lowering, request, options);
  return deferred->table;
}

void warn_if_rejected(const Input& lowered, const CheckOptions& options) {
  const CheckResult result = check(lowered, options);
  const Diagnostic* first = result.diagnostics.foremost();
  if (result.verdict != Verdict::Rejected || first == nullptr) return;
  print_stderr(
      fmt::format("warning: capo rejects the lowered table, {}: {}; `capo check` tells more\n",
                  first->rule, first->message));
}

std::string line_of(const std::string& text, std::size_t number) {
  std::size_t begin = 0;
  for (; number > 0; --number) begin = text.find('\n', begin) + 1;
  return text.substr(begin, text.find('\n', begin) - begin + 1);
}

int write_lowered(const ConvertRequest& request, const std::string& text, const Input& lowered) {
  const TextForm form = *request.to;
  if (form == TextForm::TorchCsv) {
    const std::size_t ranks = lowered.schedule.ranks.size();
    return exit_code_after(write_output(
        request.output, request.rank < 0 ? text : line_of(text, chosen_rank(request, ranks))));
  }
  Schedule schedule = lowered.schedule;
  if (request.rank >= 0) {
    const std::size_t rank = chosen_rank(request, schedule.ranks.size());
    schedule = only_rank(std::move(schedule), rank, form);
  }
  const Beside beside = request.lossy ? Beside::Drop : Beside::Refuse;
  const auto written_text = written(schedule, form, beside, request.input.limits);
  if (!written_text) return refuse_form(lowered, request, written_text.error());
  return exit_code_after(write_output(request.output, *written_text));
}

}  // namespace

const torch::Version& asked_version(const TorchFlags& flags) {
  const torch::Version& version = torch_version(flags.version);
  if (version.refuse == nullptr && flags.any_policy())
    throw CLI::ValidationError("--for", fmt::format("torch {} has none of the policies of {}",
                                                    version.release, torch::kNewest.release));
  return version;
}

void add_torch_flags(CLI::App& app, TorchFlags& flags) {
  const std::string group = "PyTorch's passes (with --lower)";
  app.add_option("--for", flags.version,
                 "Lower as this version does, torch@2.15 or torch@2.11, and write what its passes "
                 "write whatever capo's verdict is; with --to csv the newest is taken")
      ->group(group);
  app.add_flag("--defer-pp-recv{torch}", flags.defer_recv,
               "Each receive right before its reader, as torch puts it, or with =safe where capo "
               "accepts that")
      ->check(CLI::IsMember({"torch", "safe"}))
      ->group(group);
  app.add_option("--max-outstanding-sends", flags.max_sends,
                 "Sends of a rank that may be pending at once")
      ->group(group);
  app.add_flag("--defer-reduce-grad-wait", flags.defer_reduce_wait,
               "Wait for a reduction before the next one of the rank, or at the end")
      ->group(group);
  app.add_option("--max-active-stages", flags.max_active,
                 "Stages of a rank whose parameters are gathered at once; 3 if not given")
      ->group(group);
  app.add_option("--unshard-lookahead", flags.lookahead,
                 "Stages that are gathered ahead: full, auto, or a number for each rank, with "
                 "commas")
      ->group(group);
}

std::optional<int> refuse_cell_as_torch(const CommandError& error, const ConvertRequest& request,
                                        const torch::Version& version) {
  const auto raised = raised_at(error, request, version);
  return raised ? std::optional(refuse_as_torch(version, *raised)) : std::nullopt;
}

int convert_for_torch(const ConvertRequest& request, const JudgedInput& judged,
                      const torch::Version& version) {
  const Input& input = judged.input;
  const Beside beside = request.lossy ? Beside::Drop : Beside::Refuse;
  std::string table = input.source.text;
  if (!is_csv(input)) {
    if (auto why = no_action(input)) return refuse_form(input, request, *why);
    auto printed = print_torch_csv(input.schedule, beside);
    if (!printed) return refuse_form(input, request, printed.error());
    table = std::move(*printed);
  }
  const auto rows = split_torch_csv(table, request.input.limits);
  if (!rows)
    return refuse(
        RefusedInput{.source = {.name = "<table>", .text = table}, .refusal = rows.error()});
  auto read = read_for_torch(*rows, version);
  if (!read) return refuse_as_torch(version, read.error());
  const CheckOptions options = judged.check_options();
  ForTorch lowering{.version = &version,
                    .policy = policy_of(request.torch),
                    .stages = torch::stages_of(input),
                    .microbatches = Context(input, options).microbatches()};
  if (request.input.csv) lowering.communicates = *request.input.csv == TableKind::Comms;
  const bool safely = request.torch.defer_recv == "safe";
  const auto text = safely ? lower_safely(*read, lowering, request, options)
                           : lower_for_torch(*std::move(read), lowering);
  if (!text) return refuse_as_torch(version, text.error());
  const auto lowered = load_lowered(*text, lowering, request);
  if (!lowered) return refuse(lowered.error());
  warn_if_rejected(*lowered, options);
  return write_lowered(request, *text, *lowered);
}

}  // namespace capo::cli
