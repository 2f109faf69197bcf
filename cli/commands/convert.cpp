#include <capo/cli/commands/commands.h>
#include <capo/cli/environment_options.h>
#include <capo/cli/files.h>
#include <capo/cli/input_options.h>
#include <capo/cli/placed_input.h>
#include <capo/core/diag/lines.h>
#include <capo/core/graph/lowered.h>
#include <capo/core/order/to_te_list.h>
#include <capo/core/rules/lower.h>
#include <capo/core/text/json_printer.h>
#include <capo/core/text/order_printer.h>
#include <capo/core/text/scan.h>
#include <capo/core/text/te_list_printer.h>
#include <capo/core/text/torch_csv_printer.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace capo::cli {

namespace {

struct ConvertRequest {
  InputOptions input;
  std::string to;
  std::string output = "-";
  std::int32_t rank = -1;  ///< -1: all
  bool lossy = false;
  bool lower = false;
  EnvironmentOptions environment;
};

// How ranks communicate says nothing about an order that is only rewritten.
void refuse_unused(const ConvertRequest& request) {
  if (request.lower) return;
  const EnvironmentOptions& given = request.environment;
  const std::pair<const char*, bool> flags[] = {{"--comm", !given.communicators.empty()},
                                                {"--transfers", !given.transfers.empty()},
                                                {"--p2p", !given.p2p.empty()},
                                                {"--ep-overlap", given.ep_overlap},
                                                {"--ep-slots", !given.ep_slots.empty()},
                                                {"--weight-stream", given.weight_stream}};
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

Result<std::string, Inexpressible> print_te(const Schedule& schedule,
                                            const ConvertRequest& request) {
  if (schedule.ranks.size() > 1) {
    return Inexpressible{.reason = "a TE list is the order of one rank; choose one with --rank"};
  }
  const RankOrder& rank = schedule.ranks.front();
  if (rank.replay) {
    return Inexpressible{.reason = "a TE list holds one order, not a capture and a replay order"};
  }
  auto list = to_te_list(rank, rank.order, request.lossy ? Beside::Drop : Beside::Refuse);
  if (!list) return list.error();
  return print_te_list(*list);
}

// A schedule can be wrong in ways that the target's reader refuses outright, such as an order that
// names only some of its microbatches. What is written must be readable.
std::optional<Inexpressible> unreadable(const std::string& text, const ConvertRequest& request) {
  const TextForm form = request.to == "order" ? TextForm::OrderFile : TextForm::Json;
  const auto again = load(Source{.name = request.output, .text = text},
                          {.form = form, .limits = request.input.limits});
  if (again) return std::nullopt;
  return Inexpressible{.reason =
                           "it would be refused there, " + again.error().refusal.finding.message};
}

Result<std::string, Inexpressible> print(const Input& input, const ConvertRequest& request,
                                         const CheckOptions& options) {
  // What stands beside the schedule is no action, so no form but its own can say it.
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
  Schedule schedule = input.schedule;
  if (request.lower) {
    auto lowered = lower(input, options);
    if (!lowered) return Inexpressible{.reason = "no transfers can be put in: " + lowered.error()};
    schedule = std::move(*lowered);
    if (request.to == "csv" && has_fused_transfers(schedule)) {
      return Inexpressible{.reason = "a table has no notation for fused groups of transfers"};
    }
  }
  if (request.rank >= 0) {
    if (static_cast<std::size_t>(request.rank) >= schedule.ranks.size()) {
      throw CLI::ValidationError(
          "--rank", fmt::format("the schedule has ranks 0 to {}", schedule.ranks.size() - 1));
    }
    if (schedule.topology != Topology::Independent) schedule.topology = Topology::Custom;
    RankOrder kept = std::move(schedule.ranks[static_cast<std::size_t>(request.rank)]);
    schedule.ranks.clear();
    schedule.ranks.push_back(std::move(kept));
  }
  if (request.to == "te") return print_te(schedule, request);
  if (request.to == "csv") {
    return print_torch_csv(schedule, request.lossy ? Beside::Drop : Beside::Refuse);
  }
  std::string text = request.to == "order" ? print_order_file(schedule) : print_json(schedule);
  if (auto why = unreadable(text, request)) return std::move(*why);
  return text;
}

int convert(const ConvertRequest& request) {
  if (request.to.empty()) throw CLI::RequiredError("--to");
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  refuse_unused(request);
  auto loaded = load_placed(request.input, request.environment);
  if (const int* code = std::get_if<int>(&loaded)) return *code;
  const auto& [input, model] = std::get<PlacedInput>(loaded);
  const auto text =
      print(input, request, {.environment = model.environment, .groups = model.groups});
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
         .message = fmt::format("cannot be written as {}: {}{}", request.to, why.reason, where),
         .help = why.droppable && !request.lossy
                     ? "--lossy leaves out what the form has no notation for, where that changes "
                       "nothing that is computed"
                     : ""});
    return kFindings;
  }
  const auto error = write_output(request.output, *text);
  if (!error) return kAccepted;
  print_error(*error);
  return exit_code_of(error->kind);
}

}  // namespace

Run add_convert(CLI::App& app) {
  auto* command = app.add_subcommand(
      "convert", "Write an order in another form, or say what that form cannot express");
  command->footer("Example: capo convert schedule.csv --to te --rank 0 --lossy");
  auto request = std::make_shared<ConvertRequest>();
  request->input.add_to(*command);
  command->add_option("--to", request->to, "te, order, csv or json")
      ->check(CLI::IsMember({"te", "order", "csv", "json"}));
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
