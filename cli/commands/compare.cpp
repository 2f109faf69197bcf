// `capo compare A B [C ...]`: the same simulation of several orders, side by side.
//
// An order is a file, or with --ranks and --microbatches a published schedule by its name; `all` is
// every published schedule that there is of these counts.

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/judged_input.h"
#include "cli/options/named_schedule.h"
#include "cli/options/terminal.h"
#include "core/base/index.h"
#include "core/base/plural.h"
#include "schedules/catalogue.h"
#include "sim/report.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

struct CompareRequest {
  std::vector<std::string> files;
  std::optional<TextForm> form;
  std::int32_t ranks = 0;  ///< 0: only files are compared
  std::int32_t microbatches = 0;
  EnvironmentOptions environment;
  CostOptions costs;
  SortBy sort = SortBy::Given;
  TextOrJson format = TextOrJson::Text;
  std::string output = "-";
  Limits limits;

  [[nodiscard]] bool has_counts() const { return ranks > 0; }
};

/// One of the compared orders. The simulation refers to the members before it.
struct Compared {
  JudgedInput judged;
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;
};

bool names_a_file(const std::string& name) {
  std::error_code why;
  return name == "-" || std::filesystem::exists(name, why);
}

// Orders that are simulated one after the other, and why one of them is not.
class Comparison {
 public:
  Comparison(const CompareRequest& request, const Model& declared)
      : request_(request), declared_(declared) {}

  /// Returns the exit code if the order cannot be compared.
  std::optional<int> add(const std::string& name) {
    const bool published = request_.has_counts() && !names_a_file(name);
    return published ? add_published(name) : add_file(name);
  }

  /// Adds every published schedule that there is of these counts, and tells of the others.
  void add_all() {
    for (const schedules::Entry& entry : schedules::entries()) {
      const auto schedule = made(std::string(entry.name));
      const auto why = schedule ? simulate_made(std::string(entry.name), *schedule)
                                : std::optional(reason(schedule.error()));
      if (why) print_stderr(fmt::format("note: {} is left out: {}\n", entry.name, *why));
    }
  }

  [[nodiscard]] const std::vector<Named>& named() const { return named_; }

 private:
  std::optional<int> add_file(const std::string& file) {
    auto judged =
        judged_input({.input = {.file = file, .form = request_.form, .limits = request_.limits},
                      .environment = request_.environment},
                     declared_);
    if (judged) {
      const auto why = simulate(file, *std::move(judged));
      return why ? std::optional(refuse_simulation(compared_.back().judged.input, failure_))
                 : std::nullopt;
    }
    const auto* failed = std::get_if<Error>(&judged.error());
    if (failed == nullptr || names_a_file(file)) return refuse(judged.error());
    Error error = *failed;
    if (!schedules::unknown_name(file)) {
      error.help = fmt::format(
          "{} is also a published schedule: with --ranks and "
          "--microbatches it is made and compared",
          file);
    } else if (!error.help.empty()) {
      // CLI11 takes an argument such as `[1, -1]` apart where several may come.
      error.help =
          "an order to compare is a file or `-`; the text of one, `[1, -1]`, is no argument, and a "
          "file called like that is `./[1, -1]`";
    }
    return fail(error);
  }

  std::optional<int> add_published(const std::string& name) {
    const auto schedule = made(name);
    if (!schedule) {
      if (const auto* limit = std::get_if<Error>(&schedule.error())) return fail(*limit);
      throw CLI::ValidationError("FILE", std::get<std::string>(schedule.error()));
    }
    if (!simulate_made(name, *schedule)) return std::nullopt;
    return refuse_simulation(compared_.back().judged.input, failure_);
  }

  Result<Schedule, NotMade> made(const std::string& name) const {
    const std::vector<CostSetting> costs = cost_settings(request_.costs.costs);
    refuse_scopes(costs, request_.ranks);
    schedules::Request request{
        .name = name, .ranks = request_.ranks, .microbatches = request_.microbatches};
    if (const auto& limit = request_.costs.memory_limit;
        limit && schedules::takes_memory_limit(name)) {
      request.memory_limit = limit;
      request.memory =
          generator_memory(memory_change(request_.costs.memory).value_or(MemoryChange{}));
    }
    return make_named(request, costs, request_.costs.per, request_.limits);
  }

  [[nodiscard]] JudgedInput input_of(const Schedule& schedule) const {
    return {.input = {.form = Form::OrderFile, .schedule = schedule}, .model = declared_};
  }

  static std::string reason(const NotMade& why) {
    const auto* limit = std::get_if<Error>(&why);
    return limit != nullptr ? limit->message : std::get<std::string>(why);
  }

  // Seq1F1B cuts microbatches in segments, which are the microbatches of its schedule.
  std::optional<std::string> simulate_made(const std::string& name, const Schedule& schedule) {
    auto why = simulate(name, input_of(schedule));
    if (!why && schedule.microbatches.value_or(0) > request_.microbatches) {
      print_stderr(
          fmt::format("note: {} runs {} segments of {}, each at the cost of a whole microbatch\n",
                      name, *schedule.microbatches,
                      counted(as_index(request_.microbatches), "microbatch", "microbatches")));
    }
    return why;
  }

  // Returns the reason if the order has no times; `failure_` tells more.
  std::optional<std::string> simulate(const std::string& name, JudgedInput judged) {
    Compared& each = compared_.emplace_back();
    each.judged = std::move(judged);
    if (each.judged.input.source.name.empty()) each.judged.input.source.name = name;
    each.options = request_.costs.resolve(each.judged.model);
    request_.costs.refuse_misfits(each.judged.input.schedule, each.options);
    auto simulation = simulation_of(each.judged.input, each.options);
    if (!simulation) {
      failure_ = std::move(simulation.error());
      return failure_.why;
    }
    each.simulation = std::move(*simulation);
    named_.push_back({.name = name, .simulation = each.simulation.get()});
    return std::nullopt;
  }

  const CompareRequest& request_;
  const Model& declared_;
  std::deque<Compared> compared_;  // addresses stay
  std::vector<Named> named_;
  CannotSimulate failure_;
};

void refuse_counts(const CompareRequest& request) {
  const bool all =
      std::find(request.files.begin(), request.files.end(), "all") != request.files.end();
  if (all && !request.has_counts()) {
    throw CLI::ValidationError("all",
                               "needs --ranks and --microbatches: it is every published "
                               "schedule of these counts");
  }
  if (!all && request.files.size() < 2) {
    throw CLI::ValidationError("FILE", "there are at least two to compare");
  }
  if (request.has_counts() != (request.microbatches > 0)) {
    throw CLI::ValidationError(request.has_counts() ? "--ranks" : "--microbatches",
                               request.has_counts() ? "needs --microbatches" : "needs --ranks");
  }
}

int compare(const CompareRequest& request) {
  refuse_counts(request);
  // One model for all: it may come from a pipe, which can be read once.
  const auto declared =
      declared_model({.input = {.limits = request.limits}, .environment = request.environment});
  if (!declared) return refuse(declared.error());
  Comparison comparison(request, *declared);
  for (const std::string& name : request.files) {
    if (name == "all") {
      comparison.add_all();
    } else if (const auto code = comparison.add(name)) {
      return *code;
    }
  }
  const CompareOptions options{.sort = request.sort,
                               .memory_limit = request.costs.memory_limit,
                               .width = request.output == "-" ? terminal_width() : kUsualWidth};
  const std::string text = request.format == TextOrJson::Json
                               ? json_comparison(comparison.named(), options)
                               : text_comparison(comparison.named(), options);
  return exit_code_after(write_output(request.output, text));
}

}  // namespace

Run add_compare(CLI::App& command) {
  command.footer(
      "Example: capo compare 1f1b.order zb-h1.order zb-2p.order --cost comm=0.1\n"
      "Example: capo compare 1f1b zbv dualpipev --ranks 8 --microbatches 32 --cost f=10,b=12,w=8");
  auto request = std::make_shared<CompareRequest>();
  command.add_option("FILE", request->files,
                     "Two orders or more, in any form that `check` reads; with --ranks and "
                     "--microbatches also published schedules by name, `all` for every one");
  const CLI::Range count(1, std::numeric_limits<std::int32_t>::max());
  command
      .add_option("--ranks,--pp,--pipeline-model-parallel-size", request->ranks,
                  "Pipeline ranks of published schedules")
      ->check(count);
  command
      .add_option("--microbatches,--num-microbatches", request->microbatches,
                  "Microbatches of published schedules")
      ->check(count);
  add_choice(command, "--form", request->form, form_words(),
             "Their form; default: told by their beginnings");
  request->environment.add_to(command);
  request->environment.overlaps_anyway = true;  // every layer is taken apart
  request->costs.add_to(command);
  add_sort(command, request->sort);
  add_format(command, request->format);
  command.add_option("-o,--output", request->output, "Where to write; - is standard output")
      ->capture_default_str();
  add_size_limits(command, request->limits);
  return [request] { return compare(*request); };
}

}  // namespace capo::cli
