#include <capo/cli/commands/check_options.h>
#include <capo/cli/commands/commands.h>
#include <capo/cli/files.h>
#include <capo/core/base/nearest.h>
#include <capo/core/report/json_report.h>
#include <capo/core/report/sarif_report.h>
#include <capo/core/report/text_report.h>

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <sstream>

namespace capo::cli {

namespace {

// The flags of Megatron's configuration; it is judged only if --pp says that there is one.
struct MegatronFlags {
  std::int64_t pipeline = 0;
  std::int64_t virtual_stages = 0;
  std::int64_t group_size = 0;
  bool ep_overlap = false;
};

Colour colour_of(const std::string& choice) {
  if (choice == "always") return Colour::On;
  if (choice == "never") return Colour::Off;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  const bool forbidden = (no_color != nullptr && *no_color != '\0') || dumb;
  return ::isatty(STDOUT_FILENO) == 1 && !forbidden ? Colour::On : Colour::Off;
}

std::string render(const Report& report, const CheckRequest& request) {
  if (request.format == "json") return to_json(report, JsonLayout::Indented) + "\n";
  if (request.format == "sarif") return to_sarif(report, CAPO_VERSION);
  return to_text(report, colour_of(request.colour));
}

int check_one(const CheckRequest& request) {
  const Loaded loaded = load_input(request.input);
  if (const auto* error = std::get_if<Error>(&loaded)) {
    print_error(*error);
    return exit_code_of(error->kind);
  }
  std::string text;
  int code = kInternal;
  if (const auto* refused = std::get_if<RefusedInput>(&loaded)) {
    text = render(report_of(refused->source, refused->refusal), request);
    code = exit_code_of(refused->refusal.kind);
  } else {
    const Input& input = std::get<Input>(loaded);
    CheckResult result = check(input, request.check);
    code = exit_code_of(result.verdict);
    text = render(report_of(input, std::move(result), request.opinions(input)), request);
  }
  if (const auto error = write_stdout(text)) {
    print_error(*error);
    return exit_code_of(error->kind);
  }
  return code;
}

std::vector<std::string> profile_names(const std::string& text) {
  std::vector<std::string> names;
  std::stringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    constexpr std::array<std::string_view, 4> kProfiles{"sound", "te", "mcore", "torch"};
    if (std::find(kProfiles.begin(), kProfiles.end(), name) == kProfiles.end()) {
      const std::string_view close = nearest(name, kProfiles);
      throw CLI::ValidationError(
          "--profile", "no profile `" + name + "`; " +
                           (close.empty() ? "there are sound, te, mcore and torch"
                                          : "did you mean `" + std::string(close) + "`?"));
    }
    names.push_back(name);
  }
  return names;
}

void add_options(CLI::App& app, CheckRequest& request) {
  request.input.add_to(app);
  app.add_option("--batch", request.batch,
                 "Check every line of a JSON-lines file; one JSON result a line")
      ->excludes("FILE")
      ->excludes("--order")
      ->excludes("--form");
  app.add_option_function<std::string>(
         "--profile",
         [&request](const std::string& names) { request.profiles = profile_names(names); },
         "What to report, with commas: sound (capo's verdict, always given), te, mcore, torch")
      ->default_str("sound");
  app.add_option("--format", request.format, "text, json or sarif")
      ->check(CLI::IsMember({"text", "json", "sarif"}))
      ->excludes("--batch")
      ->capture_default_str();
  app.add_option("--color", request.colour, "auto, always or never; NO_COLOR is respected")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  app.add_option("--max-findings", request.check.findings_per_rule,
                 "Findings of each rule to show in full")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40))
      ->capture_default_str();
}

void add_profile_options(CLI::App& app, CheckRequest& request, MegatronFlags& megatron) {
  const std::string group = "Profiles";
  app.add_flag("--te-reuse", request.consult.te.reuse,
               "te: _reuse_graph_input_output_buffers is on, as Megatron sets it")
      ->group(group);
  app.add_flag_callback(
         "--te-silent-store",
         [&request] { request.consult.te.empty_store = te::EmptyStore::Silent; },
         "te: the modules are GroupedLinear, whose empty weight-gradient queue says nothing")
      ->group(group);
  app.add_option("--max-graphs", request.consult.te.max_graphs, "te: CUDA graphs to simulate")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->capture_default_str()
      ->group(group);
  app.add_option("--pp", megatron.pipeline, "mcore: pipeline ranks")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->group(group);
  app.add_option("--vp", megatron.virtual_stages, "mcore: virtual stages per rank")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->needs("--pp")
      ->group(group);
  app.add_option("--group-size", megatron.group_size,
                 "mcore: microbatch_group_size_per_vp_stage; default: PP")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->needs("--pp")
      ->group(group);
  app.add_flag("--ep-overlap", megatron.ep_overlap, "mcore: overlap_moe_expert_parallel_comm")
      ->needs("--pp")
      ->group(group);
}

// A flag of a profile that was not asked for would be ignored in silence.
void refuse_unused(const CheckRequest& request, const MegatronFlags& flags) {
  const auto asked = [&](std::string_view profile) {
    return std::find(request.profiles.begin(), request.profiles.end(), profile) !=
           request.profiles.end();
  };
  const bool te = asked("te") || asked("mcore");
  if (request.consult.te.reuse && !te)
    throw CLI::ValidationError("--te-reuse", "needs --profile te or mcore");
  if (request.consult.te.empty_store == te::EmptyStore::Silent && !te) {
    throw CLI::ValidationError("--te-silent-store", "needs --profile te or mcore");
  }
  if (flags.pipeline != 0 && !asked("mcore"))
    throw CLI::ValidationError("--pp", "needs --profile mcore");
}

void settle_megatron(CheckRequest& request, const MegatronFlags& flags) {
  if (flags.pipeline == 0) return;
  if (request.input.microbatches == 0) {
    throw CLI::ValidationError("--pp", "needs --microbatches: Megatron's rules compare the two");
  }
  const auto stated = [](std::int64_t number) {
    return number == 0 ? std::nullopt : std::optional<std::int64_t>(number);
  };
  request.consult.megatron = mcore::Configuration{.pipeline = flags.pipeline,
                                                  .virtual_stages = stated(flags.virtual_stages),
                                                  .microbatches = request.input.microbatches,
                                                  .group_size = stated(flags.group_size),
                                                  .ep_overlap = flags.ep_overlap};
}

}  // namespace

std::vector<Opinion> CheckRequest::opinions(const Input& of) const {
  std::vector<Opinion> said;
  for (const std::string_view profile : {"te", "mcore", "torch"}) {
    if (std::find(profiles.begin(), profiles.end(), profile) == profiles.end()) continue;
    said.push_back(profile == "te"      ? consult_te(of, consult)
                   : profile == "mcore" ? consult_mcore(of, consult)
                                        : consult_torch(of));
  }
  return said;
}

Run add_check(CLI::App& app) {
  auto* command =
      app.add_subcommand("check", "Judge an order: is it right, and if not, where and why");
  command->footer("Example: capo check --order \"[1, 2, -1, -1]\" --profile sound,te");
  auto request = std::make_shared<CheckRequest>();
  auto megatron = std::make_shared<MegatronFlags>();
  add_options(*command, *request);
  add_profile_options(*command, *request, *megatron);
  return [request, megatron] {
    refuse_unused(*request, *megatron);
    settle_megatron(*request, *megatron);
    return request->batch.empty() ? check_one(*request) : check_batch(*request);
  };
}

}  // namespace capo::cli
