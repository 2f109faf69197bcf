#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "cli/options/numbers.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/convert/for_torch.h"
#include "core/convert/written.h"
#include "core/diag/lines.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/graph/lowered.h"
#include "core/rules/context.h"
#include "core/rules/lower.h"
#include "core/text/printable.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace capo::cli {

namespace {

// The flags of torch's passes. Those that are not given have torch's defaults.
struct TorchFlags {
  std::string version;     ///< "torch@2.15", or empty
  std::string defer_recv;  ///< "torch", or empty: receives stand where they are posted first
  bool defer_reduce_wait = false;
  std::optional<std::int64_t> max_sends;
  std::optional<std::int64_t> max_active;
  std::string lookahead;  ///< "full", "auto", numbers with commas, or empty

  [[nodiscard]] bool any_policy() const {
    return !defer_recv.empty() || defer_reduce_wait || max_sends || max_active ||
           !lookahead.empty();
  }
  [[nodiscard]] bool any() const { return !version.empty() || any_policy(); }
};

struct ConvertRequest : InputRequest {
  std::optional<TextForm> to;
  std::string output = "-";
  std::int32_t rank = -1;  ///< -1: all
  bool lossy = false;
  bool lower = false;
  TorchFlags torch;

  /// Whether transfers are those of torch's own passes if the orders state none of Megatron's
  /// calls.
  [[nodiscard]] bool lowers_for_torch() const {
    return lower && !environment.p2p && (to == TextForm::TorchCsv || torch.any());
  }
};

// Refuses flags about how ranks communicate for an order that is only rewritten.
void refuse_unused(const ConvertRequest& request) {
  const EnvironmentOptions& given = request.environment;
  if (request.lower && request.torch.any() && given.p2p)
    throw CLI::ValidationError("--p2p", "is for Megatron's transfers, and torch's are asked for");
  if (request.lower) return;
  const TorchFlags& torch = request.torch;
  const std::pair<const char*, bool> flags[] = {
      {"--comm", given.communicators.has_value()},
      {"--transfers", given.transfers.has_value()},
      {"--p2p", given.p2p.has_value()},
      {"--for", !torch.version.empty()},
      {"--defer-pp-recv", !torch.defer_recv.empty()},
      {"--max-outstanding-sends", torch.max_sends.has_value()},
      {"--defer-reduce-grad-wait", torch.defer_reduce_wait},
      {"--max-active-stages", torch.max_active.has_value()},
      {"--unshard-lookahead", !torch.lookahead.empty()},
      {"--ep-overlap", given.ep_overlap},
      {"--ep-slots", !given.ep_slots.empty()},
      {"--weight-stream", given.weight_stream.has_value()}};
  for (const auto& [flag, used] : flags) {
    if (used) throw CLI::ValidationError(flag, "needs --lower");
  }
}

bool has_fused_transfers(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const RankOrder& rank) {
    return std::any_of(rank.order.begin(), rank.order.end(), [](const Entry& entry) {
      return is_transfer(entry.kind) && entry.group == Group::Continues;
    });
  });
}

// The schedule of one rank. The stages of the others are not known to it: a table is not told how
// many there are, and a list is not told how its own chunks stand among them.
Schedule only_rank(Schedule schedule, std::size_t rank, TextForm form) {
  if (schedule.topology != Topology::Independent) schedule.topology = Topology::Custom;
  const bool one_of_several = schedule.ranks.size() > 1;
  RankOrder kept = std::move(schedule.ranks[rank]);
  schedule.ranks.clear();
  schedule.ranks.push_back(std::move(kept));
  if (!one_of_several) return schedule;
  if (form == TextForm::TorchCsv) schedule.stages.reset();
  if (form == TextForm::TeList) {
    schedule.topology = Topology::Independent;
    schedule.ranks.front().stages.clear();
  }
  return schedule;
}

// An entry that is no action is no part of the schedule, so no form but its own can say it.
std::optional<Inexpressible> no_action(const Input& input) {
  if (!input.odd_entries.empty()) {
    return Inexpressible{
        .reason = "the list holds entries that are no action; `capo check` names them",
        .span = input.te_list.entries[input.odd_entries.front()].span()};
  }
  if (!input.cell_faults.empty()) {
    return Inexpressible{
        .reason = "the table holds cells that cannot be carried over; `capo check` names them",
        .span = input.cell_faults.front().span};
  }
  return std::nullopt;
}

std::size_t chosen_rank(const ConvertRequest& request, std::size_t ranks) {
  if (RankId(request.rank).index() < ranks) return RankId(request.rank).index();
  throw CLI::ValidationError("--rank", fmt::format("the schedule has ranks 0 to {}", ranks - 1));
}

Result<std::string, Inexpressible> print(const Input& input, const ConvertRequest& request,
                                         const CheckOptions& options) {
  if (auto why = no_action(input)) return std::move(*why);
  const TextForm form = *request.to;
  const Beside beside = request.lossy ? Beside::Drop : Beside::Refuse;
  Schedule schedule = input.schedule;
  if (request.lower) {
    auto lowered = lower(input, options, beside);
    if (!lowered) return lowered.error();
    schedule = std::move(*lowered);
    if (form == TextForm::TorchCsv && has_fused_transfers(schedule)) {
      return Inexpressible{.reason = "a table has no notation for fused groups of transfers"};
    }
  }
  if (request.rank >= 0) {
    const std::size_t rank = chosen_rank(request, schedule.ranks.size());
    schedule = only_rank(std::move(schedule), rank, form);
  }
  return written(schedule, form, beside, request.input.limits);
}

int refuse_form(const Input& input, const ConvertRequest& request, const Inexpressible& why) {
  std::string where;
  if (why.span) {
    const LineColumn at = Lines(input.source).place(why.span->offset);
    const std::string_view entry = input.source.slice(*why.span);
    where = fmt::format(" ({}:{}:{}: {})", input.source.name_at(why.span->offset), at.line,
                        at.column, entry.empty() ? "an idle slot" : shown(entry));
  }
  print_error(
      {.kind = ErrorKind::Unreadable,
       .message = fmt::format("cannot be written as {}: {}{}", word_for(*request.to, form_words()),
                              why.reason, where),
       .help = why.droppable && !request.lossy
                   ? "--lossy leaves out what the form has no notation for, where that changes "
                     "nothing that is computed"
                   : ""});
  return kFindings;
}

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

void warn_if_rejected(const Input& lowered, const CheckOptions& options) {
  const CheckResult result = check(lowered, options);
  const Diagnostic* first = first_finding(result.diagnostics);
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
  const auto text = lower_for_torch(*std::move(read), lowering);
  if (!text) return refuse_as_torch(version, text.error());
  const auto lowered = load_lowered(*text, lowering, request);
  if (!lowered) return refuse(lowered.error());
  warn_if_rejected(*lowered, options);
  return write_lowered(request, *text, *lowered);
}

// The version that tables are lowered for; torch 2.11 has no policies.
const torch::Version& asked_version(const TorchFlags& flags) {
  const torch::Version& version = torch_version(flags.version);
  if (version.refuse == nullptr && flags.any_policy())
    throw CLI::ValidationError("--for", fmt::format("torch {} has none of the policies of {}",
                                                    version.release, torch::kNewest.release));
  return version;
}

int convert(const ConvertRequest& request) {
  if (!request.to) throw CLI::RequiredError("--to");
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  refuse_unused(request);
  const torch::Version& version = asked_version(request.torch);
  const auto judged = judged_input(request);
  if (!judged && request.lowers_for_torch()) {
    if (const auto raised = raised_at(judged.error(), request, version))
      return refuse_as_torch(version, *raised);
  }
  if (!judged) return refuse(judged.error());
  const Input& input = judged->input;
  if (request.lowers_for_torch() && !input.schedule.p2p)
    return convert_for_torch(request, *judged, version);
  const auto text = print(input, request, judged->check_options());
  if (!text) return refuse_form(input, request, text.error());
  return exit_code_after(write_output(request.output, *text));
}

void add_torch_flags(CLI::App& app, TorchFlags& flags) {
  const std::string group = "PyTorch's passes (with --lower)";
  app.add_option("--for", flags.version,
                 "Lower as this version does, torch@2.15 or torch@2.11, and write what its passes "
                 "write whatever capo's verdict is; with --to csv the newest is taken")
      ->group(group);
  app.add_flag("--defer-pp-recv{torch}", flags.defer_recv,
               "Each receive right before its reader, as torch puts it")
      ->check(CLI::IsMember({"torch"}))
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

}  // namespace

Run add_convert(CLI::App& app) {
  auto* command = app.add_subcommand(
      "convert", "Write an order in another form, or say what that form cannot express");
  command->footer("Example: capo convert schedule.csv --to te --rank 0 --lossy");
  auto request = std::make_shared<ConvertRequest>();
  request->input.add_to(*command);
  add_choice(*command, "--to", request->to, form_words(), "te, order, csv or json");
  command->add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  command->add_option("--rank", request->rank, "Only this rank")->check(CLI::Range(0, 1 << 24));
  command->add_flag(
      "--lower", request->lower,
      "With the transfers that the ranks perform: as PyTorch adds them, or with --p2p "
      "as Megatron calls them");
  add_torch_flags(*command, request->torch);
  request->environment.add_to(*command);
  command->add_flag("--lossy", request->lossy, "Leave out what the form has no notation for");
  return [request] { return convert(*request); };
}

}  // namespace capo::cli
