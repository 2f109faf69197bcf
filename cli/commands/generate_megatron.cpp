#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "cli/options/input_options.h"
#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/frameworks/megatron/chunk_order.h"
#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/te/list_text.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <variant>

namespace capo::cli {

namespace {

struct MegatronRequest {
  std::int64_t pipeline = 0;
  std::optional<std::int64_t> virtual_stages;
  std::int64_t microbatches = 0;
  std::optional<std::int64_t> group_size;
  std::string rank;
  std::string layers;
  bool overlap = false;
  bool delayed_wgrad = false;
  megatron::Which which = megatron::Which::Capture;
  bool force = false;
  std::optional<std::int64_t> slots;
  std::vector<std::int64_t> slot_map;  // empty: slot by slot in turn
  TextForm format = TextForm::TeList;
  std::string output = "-";
  Limits limits;
};

std::optional<std::int64_t> rank_of(const MegatronRequest& flags) {
  if (flags.rank == "all") return std::nullopt;
  std::int64_t rank = 0;
  const char* end = flags.rank.data() + flags.rank.size();
  const auto result = std::from_chars(flags.rank.data(), end, rank);
  const bool number = result.ec == std::errc{} && result.ptr == end;
  if (!number || rank < 0 || rank >= flags.pipeline) {
    throw CLI::ValidationError(
        "--rank", fmt::format("{} is neither `all` nor one of the ranks 0 to {}", shown(flags.rank),
                              flags.pipeline - 1));
  }
  return rank;
}

// A single count is that of every chunk.
std::vector<std::int64_t> layers_of(const MegatronRequest& flags, std::int64_t chunks) {
  if (flags.layers.empty()) return {};
  const auto counts = number_list(flags.layers, "--layers", 0);
  const auto stated = static_cast<std::int64_t>(counts.size());
  if (stated == 1 && chunks > 1 && chunks <= static_cast<std::int64_t>(flags.limits.counts)) {
    return std::vector<std::int64_t>(as_index(chunks), counts.front());
  }
  // Megatron is given too few counts as they are, and says itself what it makes of them.
  if (stated > chunks || (stated < chunks && !flags.overlap)) {
    throw CLI::ValidationError("--layers", fmt::format("there are {} counts for {} chunks", stated,
                                                       std::max<std::int64_t>(chunks, 0)));
  }
  return {counts.begin(), counts.end()};
}

// A flag that would be ignored in silence is a mistake to report.
void refuse_unused(const MegatronRequest& flags) {
  const bool runtime = flags.which == megatron::Which::Runtime;
  if (flags.group_size && !flags.virtual_stages) {
    throw CLI::ValidationError("--group-size", "needs --vp: without virtual stages it has no use");
  }
  if (flags.delayed_wgrad && !flags.overlap) {
    throw CLI::ValidationError(
        "--delayed-wgrad", "needs --overlap: Megatron captures weight gradients layer by layer");
  }
  if (flags.delayed_wgrad && runtime) {
    throw CLI::ValidationError("--delayed-wgrad",
                               "the runtime's order is one of chunks, which has no entry for it");
  }
  const bool declared_only = !flags.layers.empty() && (runtime || !flags.overlap);
  if (declared_only && (flags.format == TextForm::TeList || flags.format == TextForm::TorchCsv)) {
    throw CLI::ValidationError(
        "--layers", fmt::format("an order of chunks only declares its layers, and {} has no "
                                "notation for that; take --format order or json",
                                word_for(flags.format, form_words())));
  }
  if (flags.format != TextForm::TeList && flags.rank != "all") {
    throw CLI::ValidationError(
        "--rank", fmt::format("{} holds the whole schedule: take --rank all, and `capo convert "
                              "--rank` for one rank of it",
                              word_for(flags.format, form_words())));
  }
}

megatron::Request request_of(const MegatronRequest& flags) {
  refuse_unused(flags);
  if (flags.pipeline == 1 && flags.microbatches < 1) {
    throw CLI::ValidationError("--microbatches", "a step has at least one");
  }
  using megatron::WeightGradients;
  return {.configuration = {.pipeline = flags.pipeline,
                            .virtual_stages = flags.virtual_stages,
                            .microbatches = flags.microbatches,
                            .group_size = flags.group_size,
                            .ep_overlap = flags.overlap},
          .which = flags.which,
          .rank = rank_of(flags),
          .layers_per_chunk = layers_of(flags, flags.virtual_stages.value_or(1)),
          .weight_gradients =
              flags.delayed_wgrad ? WeightGradients::Delayed : WeightGradients::InBackward};
}

// The flag with the value that Megatron's function could not take.
std::string culprit(const megatron::Raised& raised, const MegatronRequest& flags) {
  if (raised.function == "get_schedule_table") return "--group-size";
  if (raised.function == "get_overlap_moe_expert_parallel_comm_order") return "--layers";
  if (raised.function == "_get_cuda_graph_input_data") return "--vp";
  if (flags.microbatches < 1) return "--microbatches";
  return flags.virtual_stages.value_or(1) < 1 ? "--vp" : "--group-size";
}

int refuse_orders(const megatron::NoOrder& why, const MegatronRequest& flags) {
  if (const auto* limit = std::get_if<Error>(&why)) {
    return fail(*limit);
  }
  const auto& raised = std::get<megatron::Raised>(why);
  throw CLI::ValidationError(
      culprit(raised, flags),
      fmt::format("Megatron's {} raises {} ({})", raised.function, raised.exception, raised.place));
}

std::string te_lists(const megatron::Generated& generated) {
  std::string text;
  for (const TeList& list : generated.orders) text += print_te_list(list);
  return text;
}

// The whole schedule in a form that names it, or the limit that a reader of it would meet.
Result<std::string> print_schedule(const megatron::Generated& generated,
                                   const MegatronRequest& flags) {
  const Schedule schedule = megatron::schedule_of(generated);
  if (flags.format == TextForm::TorchCsv && schedule.ranks.front().order.empty()) {
    throw CLI::ValidationError("--format", "a table without a cell is none; take order or json");
  }
  if (const auto large = refuse_size(schedule, flags.limits)) {
    return Error{.kind = ErrorKind::Limit,
                 .message = large->finding.message,
                 .help = large->finding.help.text};
  }
  if (flags.format == TextForm::OrderFile) return print_order_file(schedule);
  if (flags.format == TextForm::Json) return print_json(schedule);
  auto table = print_torch_csv(schedule);
  CAPO_ASSERT(table.has_value(), "Megatron's orders are placed and have no replay of their own");
  return std::move(*table);
}

void warn(const megatron::Generated& generated, const MegatronRequest& flags) {
  if (const auto reason = mcore::refusal(generated.request.configuration)) {
    print_stderr(
        fmt::format("warning: Megatron's runtime refuses this configuration: {}\n", *reason));
  }
  if (generated.microbatches != flags.microbatches) {
    print_stderr(
        fmt::format("note: without a pipeline Megatron captures one microbatch, and replays it for "
                    "all {}\n",
                    flags.microbatches));
  }
}

// "with 5 microbatches `1` at index 8 of rank 0 takes slot 0 for microbatch 4 of chunk 1, ...".
std::string taken_words(const megatron::SlotVerdict::Counterexample& shown,
                        const megatron::SlotChoice& choice) {
  const megatron::Generated& generated = shown.orders;
  const megatron::SlotTaken& taken = shown.taken;
  const auto entry = [&](std::size_t at) {
    return fmt::format("`{}` at index {}", generated.orders[shown.rank].entries[at].value, at);
  };
  return fmt::format(
      "with {} microbatches {} of rank {} takes slot {} for microbatch {} of chunk {}, which "
      "microbatch {} needs until {}",
      generated.request.configuration.microbatches, entry(taken.forward),
      static_cast<std::int64_t>(shown.rank) + generated.request.rank.value_or(0),
      choice.slot_of(taken.taker), taken.taker, taken.chunk, taken.microbatch,
      taken.reader ? entry(*taken.reader) : "its end");
}

// Says whether so many slots, or those of a map, are enough, of each chunk or layer, for any number
// of microbatches.
int judge_slots(const MegatronRequest& flags) {
  const megatron::Request family = request_of(flags);
  const megatron::SlotChoice choice{.slots = flags.slots.value_or(1), .map = flags.slot_map};
  const auto slots = megatron::slots_for_any_microbatches(family, flags.limits);
  if (!slots) return refuse_orders(slots.error(), flags);
  if (slots->needed.empty()) {
    throw CLI::ValidationError(
        flags.slots ? "--slots" : "--slot-map",
        fmt::format("Megatron's runtime refuses any number of microbatches: {}",
                    mcore::refusal(family.configuration).value_or("")));
  }
  const auto verdict = megatron::judge_choice(family, choice, *slots, flags.limits);
  if (!verdict) return refuse_orders(verdict.error(), flags);
  const auto& shown = verdict->counterexample;
  const std::string chosen = choice.map.empty()
                                 ? counted(choice.slots, "slot")
                                 : fmt::format("slots {} in turn", fmt::join(choice.map, ","));
  std::string text =
      fmt::format("{}: {}enough for any number of microbatches\n", chosen, shown ? "not " : "");
  if (shown) text += "  " + taken_words(*shown, choice) + "\n";
  text += fmt::format("  slots needed by rank: {}\n", fmt::join(slots->needed, ", "));
  text += fmt::format(
      "  all numbers up to {} were looked at; beyond, each order is that of {} fewer with a "
      "stretch once more that leaves as many under way as it found\n",
      shown ? slots->looked_at : verdict->looked_at, slots->period);
  const int written = exit_code_after(write_output(flags.output, text));
  return written == 0 && shown ? kFindings : written;
}

int generate_megatron(const MegatronRequest& flags) {
  if (flags.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  if (flags.slots || !flags.slot_map.empty()) return judge_slots(flags);
  const auto generated = megatron::orders_of(request_of(flags), flags.limits);
  if (!generated) return refuse_orders(generated.error(), flags);
  if (const auto nonsense = megatron::nonsense_in(*generated); nonsense && !flags.force) {
    throw CLI::ValidationError(
        "--force", fmt::format("Megatron's functions give an order that nothing can run: {}; only "
                               "with --force is it written",
                               *nonsense));
  }
  const auto text = flags.format == TextForm::TeList ? Result<std::string>(te_lists(*generated))
                                                     : print_schedule(*generated, flags);
  if (!text) return fail(text.error());
  warn(*generated, flags);
  return exit_code_after(write_output(flags.output, *text));
}

void add_configuration(CLI::App& app, MegatronRequest& flags) {
  app.add_option("--pp,--pipeline-model-parallel-size,--ranks", flags.pipeline, "Pipeline ranks")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->required();
  app.add_option("--vp,--num-virtual-stages-per-pipeline-rank,--chunks", flags.virtual_stages,
                 "Virtual stages per rank; default: the non-interleaved schedule");
  app.add_option("--microbatches,--num-microbatches", flags.microbatches,
                 "Microbatches of the step")
      ->required();
  app.add_option("--group-size,--microbatch-group-size-per-virtual-pipeline-stage",
                 flags.group_size, "microbatch_group_size_per_vp_stage; default: PP");
  app.add_option("--rank", flags.rank, "The rank whose order it is, or `all`")->required();
  app.add_option("--layers", flags.layers,
                 "Layers that can be captured, of each chunk `1,2` or of every chunk `2`; default: "
                 "one each");
  app.add_flag("--overlap,--overlap-moe-expert-parallel-comm", flags.overlap,
               "overlap_moe_expert_parallel_comm: capture layer by layer");
  app.add_flag("--delayed-wgrad,--delay-wgrad-compute", flags.delayed_wgrad,
               "Weight gradients are graphs of their own (delay_wgrad_compute)");
}

}  // namespace

CLI::App* add_generate_megatron(CLI::App& generate, Run& run) {
  auto* megatron = generate.add_subcommand(
      "megatron", "Megatron-LM's order for a configuration, of one rank or of all");
  megatron->footer(
      "Example: capo generate megatron --pp 4 --vp 2 --microbatches 8 --rank all --overlap "
      "--layers 1,2 --delayed-wgrad");
  auto flags = std::make_shared<MegatronRequest>();
  add_configuration(*megatron, *flags);
  add_choice(*megatron, "--which", flags->which,
             {{"capture", megatron::Which::Capture}, {"runtime", megatron::Which::Runtime}},
             "capture: what CUDA graphs are captured in; runtime: what is executed");
  megatron
      ->add_option("--slots", flags->slots,
                   "Say whether graphs for so many microbatches of each chunk can be replayed "
                   "for any number, slot by slot in turn, and write no order")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  megatron
      ->add_option("--slot-map", flags->slot_map,
                   "As --slots, where microbatch m replays the graphs of this slot, and the list "
                   "begins anew at its end: `0,1,0,2`")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
      ->excludes("--slots");
  megatron->add_flag("--force", flags->force, "Write an order, too, that nothing can run");
  add_choice(*megatron, "--format", flags->format, form_words(),
             "te: a list per rank and line; order, csv or json: the whole schedule");
  megatron->add_option("-o,--output", flags->output, "Where to write; - is standard output")
      ->capture_default_str();
  add_size_limits(*megatron, flags->limits);
  run = [flags] { return generate_megatron(*flags); };
  return megatron;
}

}  // namespace capo::cli
