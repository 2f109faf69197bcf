#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "core/convert/written.h"
#include "core/diag/lines.h"
#include "core/graph/lowered.h"
#include "core/rules/lower.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace capo::cli {

namespace {

struct ConvertRequest : InputRequest {
  std::optional<TextForm> to;
  std::string output = "-";
  std::int32_t rank = -1;  ///< -1: all
  bool lossy = false;
  bool lower = false;
};

// Refuses flags about how ranks communicate for an order that is only rewritten.
void refuse_unused(const ConvertRequest& request) {
  if (request.lower) return;
  const EnvironmentOptions& given = request.environment;
  const std::pair<const char*, bool> flags[] = {{"--comm", given.communicators.has_value()},
                                                {"--transfers", given.transfers.has_value()},
                                                {"--p2p", given.p2p.has_value()},
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

Result<std::string, Inexpressible> print(const Input& input, const ConvertRequest& request,
                                         const CheckOptions& options) {
  // An entry that is no action is no part of the schedule, so no form but its own can say it.
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
    if (RankId(request.rank).index() >= schedule.ranks.size()) {
      throw CLI::ValidationError(
          "--rank", fmt::format("the schedule has ranks 0 to {}", schedule.ranks.size() - 1));
    }
    schedule = only_rank(std::move(schedule), RankId(request.rank).index(), form);
  }
  return written(schedule, form, beside, request.input.limits);
}

int convert(const ConvertRequest& request) {
  if (!request.to) throw CLI::RequiredError("--to");
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  refuse_unused(request);
  const auto judged = judged_input(request);
  if (!judged) return refuse(judged.error());
  const Input& input = judged->input;
  const auto text = print(input, request, judged->check_options());
  if (!text) {
    const Inexpressible& why = text.error();
    std::string where;
    if (why.span) {
      const LineColumn at = Lines(input.source).place(why.span->offset);
      const std::string_view entry = input.source.slice(*why.span);
      where = fmt::format(" ({}:{}:{}: {})", input.source.name_at(why.span->offset), at.line,
                          at.column, entry.empty() ? "an idle slot" : shown(entry));
    }
    print_error(
        {.kind = ErrorKind::Unreadable,
         .message = fmt::format("cannot be written as {}: {}{}",
                                word_for(*request.to, form_words()), why.reason, where),
         .help = why.droppable && !request.lossy
                     ? "--lossy leaves out what the form has no notation for, where that changes "
                       "nothing that is computed"
                     : ""});
    return kFindings;
  }
  return exit_code_after(write_output(request.output, *text));
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
  request->environment.add_to(*command);
  command->add_flag("--lossy", request->lossy, "Leave out what the form has no notation for");
  return [request] { return convert(*request); };
}

}  // namespace capo::cli
