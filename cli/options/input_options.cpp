#include "cli/options/input_options.h"

#include "cli/options/files.h"
#include "cli/options/memory_limit.h"
#include "cli/options/numbers.h"
#include "core/text/number.h"
#include "core/text/scan.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <sstream>

namespace capo::cli {

namespace {

constexpr const char* kLimits = "Limits (exceeding one is exit code 4)";

Layers layers_of(const std::string& text) {
  if (text.empty()) return {};
  if (text == "none") return {.form = Layers::Form::Null};
  std::string inside = text;
  const bool bracketed = inside.size() >= 2 && inside.front() == '[' && inside.back() == ']';
  if (bracketed) inside = inside.substr(1, inside.size() - 2);
  const bool list = bracketed || inside.find(',') != std::string::npos;
  Layers layers{.form = list ? Layers::Form::List : Layers::Form::Count};
  if (bracketed && inside.empty()) return layers;
  for (const std::int32_t count : number_list(inside, "--layers-per-chunk", -0x7fffffff)) {
    layers.values.push_back(count);
  }
  return layers;
}

std::optional<DelayedChunks> delayed_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "none") return DelayedChunks{};
  if (text == "all") return DelayedChunks{.all = true};
  return DelayedChunks{.chunks = number_list(text, "--delayed", 1)};
}

std::optional<std::int32_t> declared(std::int32_t number) {
  return number == 0 ? std::nullopt : std::optional(number);
}

// Refuses a declaration that this input has no use for, or states otherwise itself: it would be
// ignored in silence.
void refuse_unused(const InputOptions& options, const Input& input) {
  const auto refuse = [](bool given, const char* flag, const char* why) {
    if (given) throw CLI::ValidationError(flag, why);
  };
  const bool table = input.form == Form::TorchCompute || input.form == Form::TorchComms;
  const bool list = input.form == Form::TeList;
  const char* te_only = "is for TE lists; other forms state it themselves";
  const char* csv_only = "is for PyTorch tables";
  refuse(!list && !options.layers.empty(), "--layers-per-chunk", te_only);
  refuse(!list && !options.delayed.empty(), "--delayed", te_only);
  refuse(!table && !options.stage_to_rank.empty(), "--stage-to-rank", csv_only);
  refuse(!table && options.csv.has_value(), "--csv", csv_only);
  refuse(!table && options.stages != 0, "--stages", csv_only);
  refuse(!table && !list && options.microbatches != 0, "--microbatches",
         "is stated in the input itself");
  refuse(options.microbatches != 0 && input.schedule.microbatches != options.microbatches,
         "--microbatches", "contradicts what the input itself states");
  refuse(options.stages != 0 && input.schedule.stages != options.stages, "--stages",
         "contradicts what the input itself states");
}

// Whoever names an order where a file is expected means the order.
Error with_advice(Error error, const std::string& file) {
  const bool order = file.find_first_not_of("0123456789.,+-[]() ") == std::string::npos;
  if (order && error.help.empty()) {
    error.help = fmt::format("to give the order itself: --order \"{}\"", file);
  }
  return error;
}

Input chosen_rank(Input input, std::int32_t rank) {
  if (input.form != Form::TeList) {
    throw CLI::ValidationError(
        "--rank", "is for TE lists; `capo convert --rank` writes one rank of another form");
  }
  const std::size_t ranks = input.schedule.ranks.size();
  if (RankId(rank).index() >= ranks) {
    throw CLI::ValidationError(
        "--rank", ranks == 1 ? "the input is the list of one rank, 0"
                             : fmt::format("the input has the lists of ranks 0 to {}", ranks - 1));
  }
  return only_rank(std::move(input), RankId(rank).index());
}

}  // namespace

const Words<TextForm>& form_words() {
  static const Words<TextForm> words{{"te", TextForm::TeList},
                                     {"order", TextForm::OrderFile},
                                     {"csv", TextForm::TorchCsv},
                                     {"json", TextForm::Json}};
  return words;
}

std::vector<std::int32_t> number_list(const std::string& text, const std::string& flag,
                                      std::int32_t least) {
  std::vector<std::int32_t> numbers;
  std::stringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const std::size_t first = std::min(item.find_first_not_of(' '), item.size());
    item = item.substr(first, item.find_last_not_of(' ') - first + 1);
    const auto number = whole_number(item, least);
    if (!number) throw CLI::ValidationError(flag, number.error());
    numbers.push_back(*number);
  }
  if (numbers.empty() || text.ends_with(',')) {
    throw CLI::ValidationError(flag, fmt::format("{} is no list of numbers", shown(text)));
  }
  return numbers;
}

void add_size_limits(CLI::App& app, Limits& limits) {
  const std::string group = kLimits;
  app.add_option("--max-entries", limits.entries, "Entries of all orders together")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 31))
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-ranks", limits.ranks, "Ranks")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 24))
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-count", limits.counts, "Chunks, stages, layers or microbatches")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0x7fffffff}))
      ->capture_default_str()
      ->group(group);
}

void InputOptions::add_to(CLI::App& app) {
  app.add_option(
      "FILE", file,
      "The order: a TE list, an .order file, a PyTorch CSV or JSON; - is standard input");
  add_rest_to(app);
}

void InputOptions::add_to(CLI::App& app, std::vector<std::string>& more) {
  add_to(app);
  // FILE stays an option of one text: CLI11 takes a text such as `[1, -1]` apart if several may
  // come.
  app.add_option("MORE", more, "Further files, judged one after the other")->needs("FILE");
}

void InputOptions::add_rest_to(CLI::App& app) {
  app.add_option("--order", order, "The order itself, e.g. \"[1, -1, -1.5]\"")->excludes("FILE");
  add_choice(app, "--form", form, form_words(),
             "te, order, csv or json; default: by name, then by content");
  app.add_option(
      "--layers-per-chunk", layers,
      "TE list: layers of each chunk `1,2` or, of the only one, `[1]`; of every chunk `2`; `none` "
      "for Python's None; default: one each");
  app.add_option(
      "--delayed", delayed,
      "TE list: chunks that delay their weight gradient, `all`, `none` or `1,3`; default: those "
      "with one in the order");
  app.add_option("--microbatches,--num-microbatches", microbatches,
                 "Microbatches of the step; default: read off the order")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()));
  app.add_option("--stages", stages, "PyTorch CSV: stages of the model")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()));
  app.add_option("--stage-to-rank", stage_to_rank,
                 "PyTorch CSV: the rank of each stage, `0,1,1,0`");
  add_choice(app, "--csv", csv, {{"compute", TableKind::Compute}, {"comms", TableKind::Comms}},
             "PyTorch CSV: `compute` or `comms`; default: whether a transfer occurs");

  const std::string group = kLimits;
  app.add_option("--max-bytes", limits.bytes, "Bytes of an input")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{0xffffffff}))
      ->capture_default_str()
      ->group(group);
  add_size_limits(app, limits);
  app.add_option("--max-depth", limits.depth, "Nesting of JSON")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000}))
      ->capture_default_str()
      ->group(group);
  app.add_option_function<std::string>(
         "--max-memory",
         [](const std::string& text) {
           const auto size = read_size(text);
           if (!size) throw CLI::ValidationError("--max-memory", size.error());
           limit_memory(*size);
         },
         "Memory that the command may take, such as 4GiB; default: as much as there is")
      ->group(group);
}

void InputOptions::add_rank_to(CLI::App& app) {
  app.add_option("--rank", rank, "TE lists of several ranks: only the list of this rank")
      ->check(CLI::Range(0, 1 << 24));
}

LoadOptions InputOptions::load_options() const {
  LoadOptions load{.form = form, .limits = limits};
  load.te.layers = layers_of(layers);
  load.te.delayed = delayed_of(delayed);
  load.te.microbatches = declared(microbatches);
  load.torch.microbatches = declared(microbatches);
  load.torch.stages = declared(stages);
  if (!stage_to_rank.empty())
    load.torch.stage_to_rank = number_list(stage_to_rank, "--stage-to-rank", 0);
  if (csv) load.torch.communicates = csv == TableKind::Comms;
  return load;
}

Result<Input, CommandError> load_input(const InputOptions& options) {
  if (options.file.empty() && !options.order) {
    throw CLI::ValidationError("FILE",
                               "no input: name a file, - for standard input, or give --order");
  }
  const LoadOptions load = options.load_options();
  Source source{.name = "<order>", .text = options.order.value_or("")};
  if (!options.file.empty()) {
    auto read = read_source(options.file, options.limits.bytes);
    if (!read) return CommandError(with_advice(read.error(), options.file));
    source = std::move(*read);
  }
  auto input = capo::load(std::move(source), load);
  if (!input) return CommandError(input.error());
  refuse_unused(options, *input);
  if (options.rank) return chosen_rank(*std::move(input), *options.rank);
  return std::move(*input);
}

}  // namespace capo::cli
