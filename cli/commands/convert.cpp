#include "cli/commands/commands.h"
#include "cli/commands/convert_request.h"
#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "core/convert/written.h"
#include "core/diag/lines.h"
#include "core/graph/lowered.h"
#include "core/rules/lower.h"
#include "core/text/printable.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capo::cli {

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

namespace {

// Refuses flags about how ranks communicate for an order that is only rewritten.
void refuse_unused(const ConvertRequest& request) {
  const EnvironmentOptions& given = request.environment;
  if (request.lower && request.torch.any() && given.p2p)
    throw CLI::ValidationError("--p2p", "is for Megatron's transfers, and torch's are asked for");
  if (request.lower) return;
  const TorchFlags& torch = request.torch;
  const std::pair<const char*, bool> flags[] = {
      {"--comm", given.communicators.has_value()},
      {"--comm-init", given.comm_init.has_value()},
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

int convert(const ConvertRequest& request) {
  if (!request.to) throw CLI::RequiredError("--to");
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  refuse_unused(request);
  const torch::Version& version = asked_version(request.torch);
  const auto judged = judged_input(request);
  if (!judged && request.lowers_for_torch()) {
    if (const auto refused = refuse_cell_as_torch(judged.error(), request, version))
      return *refused;
  }
  if (!judged) return refuse(judged.error());
  const Input& input = judged->input;
  if (request.lowers_for_torch() && !input.schedule.p2p)
    return convert_for_torch(request, *judged, version);
  const auto text = print(input, request, judged->check_options());
  if (!text) return refuse_form(input, request, text.error());
  return exit_code_after(write_output(request.output, *text));
}

}  // namespace

Run add_convert(CLI::App& command) {
  command.footer("Example: capo convert schedule.csv --to te --rank 0 --lossy");
  auto request = std::make_shared<ConvertRequest>();
  request->input.add_to(command);
  add_choice(command, "--to", request->to, form_words(), "te, order, csv or json");
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  command.add_option("--rank", request->rank, "Only this rank")->check(CLI::Range(0, 1 << 24));
  command.add_flag("--lower", request->lower,
                   "With the transfers that the ranks perform: as PyTorch adds them, or with --p2p "
                   "as Megatron calls them");
  add_torch_flags(command, request->torch);
  request->environment.add_to(command);
  command.add_flag("--lossy", request->lossy, "Leave out what the form has no notation for");
  return [request] { return convert(*request); };
}

}  // namespace capo::cli
