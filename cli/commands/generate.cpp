// `capo generate NAME`: a published schedule by its name; `capo generate megatron`: a framework's.

#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/cost_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "cli/options/named_schedule.h"
#include "cli/options/numbers.h"
#include "cli/options/progress.h"
#include "core/base/assert.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "schedules/catalogue.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace capo::cli {

namespace {

enum class Format { Order, Csv, Json, Tokens };

const Words<Format>& formats() {
  static const Words<Format> words{{"order", Format::Order},
                                   {"csv", Format::Csv},
                                   {"json", Format::Json},
                                   {"tokens", Format::Tokens}};
  return words;
}

struct GenerateRequest {
  schedules::Request schedule;
  const CLI::Option* microbatches = nullptr;
  std::vector<std::string> costs;
  CostPer cost_per = CostPer::Rank;
  std::string memory;
  Format format = Format::Order;
  std::string output = "-";
  bool list = false;
  Limits limits;
};

std::string schedule_list() {
  std::string text =
      fmt::format("{:<18}{:<15}{:<8}{:<15}{}\n", "name", "placement", "chunks", "looks at", "");
  for (const schedules::Entry& entry : schedules::entries()) {
    text += fmt::format("{:<18}{:<15}{:<8}{:<15}{}\n", entry.name, name_of(entry.topology),
                        entry.chunks, entry.uses, entry.summary);
  }
  return text +
         "torch:CLASS       GPipe, 1F1B, LoopedBFS, Interleaved1F1B, InterleavedZeroBubble, "
         "ZBVZeroBubble, DualPipeV: PyTorch's own tables\n"
         "megatron          Megatron-LM's orders, `capo generate megatron --help`; layer by layer "
         "with --overlap\n";
}

Result<std::string, Inexpressible> print(const Schedule& schedule, Format format) {
  switch (format) {
    case Format::Order:
      return print_order_file(schedule);
    case Format::Csv:
      return print_torch_csv(schedule);
    case Format::Json:
      return print_json(schedule);
    case Format::Tokens:
      return print_tokens(schedule);
  }
  CAPO_UNREACHABLE();
}

int refuse_schedule(const NotMade& why) {
  if (const auto* limit = std::get_if<Error>(&why)) return fail(*limit);
  throw CLI::ValidationError("generate", std::get<std::string>(why));
}

int generate_named(GenerateRequest request) {
  if (request.list) {
    return exit_code_after(write_stdout(schedule_list()));
  }
  if (request.schedule.name.empty())
    throw CLI::RequiredError("the name of a schedule, or `megatron`");
  if (request.output.empty()) {
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  }
  const std::vector<CostSetting> costs = cost_settings(request.costs);
  refuse_scopes(costs, request.schedule.ranks);
  if (const auto memory = memory_change(request.memory)) {
    request.schedule.memory = generator_memory(*memory);
  }
  const auto schedule = [&] {
    const Progress progress("searching for " + request.schedule.name);
    return make_named(request.schedule, costs, request.cost_per, request.limits);
  }();
  if (!schedule) return refuse_schedule(schedule.error());
  const auto text = print(*schedule, request.format);
  if (!text) {
    throw CLI::ValidationError(
        "--format", fmt::format("{} cannot say it: {}", word_for(request.format, formats()),
                                text.error().reason));
  }
  if (request.microbatches->count() == 0) {
    print_stderr("note: the step has one microbatch, since --microbatches does not say how many\n");
  }
  return exit_code_after(write_output(request.output, *text));
}

void add_named(CLI::App& app, GenerateRequest& request) {
  schedules::Request& schedule = request.schedule;
  const CLI::Range count(1, std::numeric_limits<std::int32_t>::max());
  app.add_option("NAME", schedule.name, "A published schedule, or torch:CLASS; --list lists them");
  app.add_flag("--list", request.list, "List the schedules that there are");
  app.add_option("--ranks,--pp,--pipeline-model-parallel-size", schedule.ranks, "Pipeline ranks")
      ->check(count);
  request.microbatches =
      app.add_option("--microbatches,--num-microbatches", schedule.microbatches,
                     "Microbatches of the step; of both directions together; default: one")
          ->check(count);
  app.add_option("--chunks,--stages-per-rank,--vp,--num-virtual-stages-per-pipeline-rank",
                 schedule.chunks, "Chunks of each rank; default: what the schedule has")
      ->check(count);
  app.add_option("--group", schedule.group,
                 "Microbatches that 1f1b-interleaved and gis take together, default as many as "
                 "ranks; segments of a microbatch of seq1f1b, default 2")
      ->check(count);
  app.add_option("--cost", request.costs,
                 "Times that a search assumes, of one microbatch on one rank: "
                 "f=12,b=13,w=9,comm=1; default: f=1,b=1,w=1,comm=0")
      ->allow_extra_args(false);
  add_cost_per(app, request.cost_per);
  app.add_option("--mem", request.memory,
                 "What a microbatch of one rank takes and gives up, f=1,b=-0.5,w=-0.5; a chunk has "
                 "its share. Default: as published, half at the backward for zb and zbv, all at "
                 "the weight gradient for v-adaptive");
  add_above_zero(app, "--memory", schedule.memory_limit,
                 "What a rank may hold, in the unit of --mem: microbatches");
  app.add_flag("--merge-halves", schedule.merge_halves,
               "Of torch:CLASS: an input half with its weight half right behind is a whole "
               "backward, as PyTorch lowers it");
  add_choice(app, "--format", request.format, formats(),
             "order, csv (PyTorch's table), json, or tokens (a rank a line, F0.1 B0.1 W0.1, as "
             "zero-bubble authors print)");
  app.add_option("-o,--output", request.output, "Where to write; - is standard output")
      ->capture_default_str();
  add_size_limits(app, request.limits);
}

}  // namespace

Run add_generate(CLI::App& command) {
  command.footer(
      "Example: capo generate torch:Interleaved1F1B --ranks 4 --stages-per-rank 2 --microbatches 8 "
      "--format csv\n"
      "Example: capo generate zb-2p --ranks 4 --microbatches 16 --cost f=12,b=13,w=9,comm=1");
  auto request = std::make_shared<GenerateRequest>();
  add_named(command, *request);
  Run run_megatron;
  auto* megatron = add_generate_megatron(command, run_megatron);
  return [request, megatron, run_megatron] {
    return megatron->parsed() ? run_megatron() : generate_named(*request);
  };
}

}  // namespace capo::cli
