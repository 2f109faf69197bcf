#include "cli/commands/check_options.h"
#include "cli/commands/commands.h"
#include "cli/options/choice.h"
#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/base/plural.h"
#include "core/frameworks/megatron/version.h"
#include "core/frameworks/te/version.h"
#include "core/frameworks/torch/version.h"
#include "core/profiles/consult.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <sstream>

namespace capo::cli {

namespace {

// Findings of a rule that text puts together by their patterns.
constexpr std::size_t kFindingsInText = 10'000;

// The flags of Megatron's configuration, which is judged only if --pp is given.
struct MegatronFlags {
  std::int64_t pipeline = 0;
  std::int64_t virtual_stages = 0;
  std::int64_t group_size = 0;
};

std::vector<AskedProfile> profiles_of(const std::string& text) {
  const std::vector<AskedProfile> all = known_profiles();
  std::vector<std::string_view> names(all.size());
  std::transform(all.begin(), all.end(), names.begin(),
                 [](const AskedProfile& profile) { return std::string_view(profile.name); });
  std::vector<AskedProfile> profiles;
  std::stringstream in(text);
  for (std::string name; std::getline(in, name, ',');) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) {
      throw CLI::ValidationError(
          "--profile",
          "no profile `" + name + "`; " +
              did_you_mean(name, names, "there are " + listed(std::span(names).first(4))));
    }
    const bool again = std::any_of(profiles.begin(), profiles.end(),
                                   [&](const AskedProfile& asked) { return asked.name == name; });
    if (!again) profiles.push_back(all[as_index(known - names.begin())]);
  }
  return profiles;
}

void add_options(CLI::App& app, CheckRequest& request) {
  request.input.add_to(app, request.more);
  request.input.add_rank_to(app);
  request.environment.add_to(app);
  request.plan.emplace().add_to(app);
  app.add_option("--batch", request.batch,
                 "Check every line of a JSON-lines file; one JSON result a line")
      ->excludes("FILE")
      ->excludes("--order")
      ->excludes("--form");
  request.fuse.add_to(app)->excludes("--batch");
  add_choice(app, "--fail-on", request.fail_on,
             {{"no-verdict", FailOn::NoVerdict}, {"rejected", FailOn::Rejected}},
             "With --batch, which lines make the exit code other than 0: those without a verdict, "
             "or rejected ones as well")
      ->needs("--batch");
  app.add_flag("--verdicts", request.verdicts,
               "With --batch, of each line the verdict, and the rule and place of its first error, "
               "without words, warnings and cures: for many orders")
      ->needs("--batch");
  app.add_option("-o,--output", request.output, "Where to write; - is standard output")
      ->capture_default_str();
  app.add_option("--capture", request.input.file, "The same as FILE, for use with --replay")
      ->excludes("FILE")
      ->excludes("--order");
  app.add_option("--replay", request.replay,
                 "The order that is replayed, where it is not the order of capture: says where the "
                 "two part, and whether that does harm")
      ->excludes("--batch");
  app.add_option_function<std::string>(
         "--profile",
         [&request](const std::string& names) { request.profiles = profiles_of(names); },
         "What to report, with commas: sound (capo's verdict, always given), te, mcore, torch, or "
         "a "
         "version of one, such as torch@2.11; `capo profiles` lists them")
      ->default_str("sound");
  add_choice(app, "--format", request.format,
             words_of({ReportFormat::Text, ReportFormat::Json, ReportFormat::Sarif}),
             "text, json or sarif")
      ->excludes("--batch");
  add_colour(app, request.colour);
  app.add_flag("--explain-model", request.explain_model,
               "Say behind the report what the verdict is relative to, and what each default means")
      ->excludes("--batch");
  app.add_option("--fix", request.fix,
                 "Write the order of FILE or --order here, with one edit, if that edit makes it "
                 "acceptable; nothing is written otherwise")
      ->excludes("--batch")
      ->excludes("--replay");
  app.add_option("--plan-out", request.plan_out,
                 "Write the plan (--plan) of an accepted order here, with what shows that it is "
                 "right, or the circle of waits of one that deadlocks: "
                 "tools/check_certificate.py checks it")
      ->excludes("--batch")
      ->excludes("--replay");
  app.add_option_function<std::string>(
         "--plan-in",
         [&request](const std::string& file) {
           request.plan_in = file;
           request.plan->kind = PlanKind::Given;
         },
         "Judge the plan in this file, not one that capo makes: what --plan-out wrote, slots of "
         "activations as torch 2.15 has them, or of graphs as proposed for TransformerEngine; see "
         "docs/cli.md")
      ->excludes("--plan")
      ->excludes("--plan-out")
      ->excludes("--batch");
  app.add_flag("--all", request.all,
               "Text: every finding with its places, not one for each pattern")
      ->excludes("--batch");
  app.add_option("--threads", request.threads, "Threads of a batch; the output is the same")
      ->check(CLI::Range(1, 256))
      ->needs("--batch")
      ->capture_default_str();
  app.add_option("--max-findings", request.findings_per_rule,
                 "Findings of each rule to keep: in text, where those of one pattern are put "
                 "together, 10000 if not given, else 100")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40));
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
  app.add_option("--pp,--pipeline-model-parallel-size", megatron.pipeline, "mcore: pipeline ranks")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->group(group);
  app.add_option("--vp,--num-virtual-stages-per-pipeline-rank", megatron.virtual_stages,
                 "mcore: virtual stages per rank")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->needs("--pp")
      ->group(group);
  app.add_option("--group-size,--microbatch-group-size-per-virtual-pipeline-stage",
                 megatron.group_size, "mcore: microbatch_group_size_per_vp_stage; default: PP")
      ->check(CLI::Range(1, std::numeric_limits<std::int32_t>::max()))
      ->needs("--pp")
      ->group(group);
}

// Takes from the project what no flag says.
std::optional<CommandError> take_defaults(const CLI::App& command, CheckRequest& request) {
  const auto project = request.projects->project_of(request.input.file, request.input.limits);
  if (!project) return project.error();
  if (command.count("--profile") == 0 && !project->profiles.empty())
    request.profiles = profiles_of(fmt::format("{}", fmt::join(project->profiles, ",")));
  const bool text = request.explain_model || !request.batch.empty();
  if (command.count("--format") == 0 && !text)
    request.format = project->format.value_or(request.format);
  return std::nullopt;
}

// Refuses a flag that would be ignored in silence, such as that of a profile that nobody asked for.
void refuse_unused(const CheckRequest& request, const MegatronFlags& flags) {
  if (request.output.empty())
    throw CLI::ValidationError("--output", "needs a file name, or - for standard output");
  if (!request.fix.empty() && request.input.file.empty() && !request.input.order) {
    throw CLI::ValidationError("--fix",
                               "names the file that is written, and no order is named "
                               "beside it: `capo check ORDER --fix FILE`");
  }
  if (!request.more.empty() && !request.replay.empty()) {
    throw CLI::ValidationError("--replay", "is the replay of one order, and several are given");
  }
  if (!request.plan_out.empty() && !request.more.empty())
    throw CLI::ValidationError("--plan-out", "is for the plan of one order, and several are given");
  if (!request.plan_in.empty() && !request.more.empty())
    throw CLI::ValidationError("--plan-in", "is the plan of one order, and several are given");
  const bool te = request.asks(Profile::Te) || request.asks(Profile::Mcore);
  if (request.verdicts && (te || request.asks(Profile::Torch)))
    throw CLI::ValidationError("--verdicts", "is for --profile sound: profiles answer in words");
  if (request.fuse.most > 1 && (te || request.asks(Profile::Torch))) {
    throw CLI::ValidationError("--fuse-w", "is for --profile sound: no framework fuses calls");
  }
  if (request.consult.te.reuse && !te)
    throw CLI::ValidationError("--te-reuse", "needs --profile te or mcore");
  if (request.consult.te.empty_store == te::EmptyStore::Silent && !te) {
    throw CLI::ValidationError("--te-silent-store", "needs --profile te or mcore");
  }
  if (request.explain_model && request.format != ReportFormat::Text)
    throw CLI::ValidationError("--explain-model", "is for the text report; the others hold it");
  if (flags.pipeline != 0 && !request.asks(Profile::Mcore))
    throw CLI::ValidationError("--pp", "needs --profile mcore");
}

void settle_megatron(CheckRequest& request, const MegatronFlags& flags) {
  if (flags.pipeline == 0) return;
  request.environment.overlaps_anyway = true;
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
                                                  .ep_overlap = request.environment.ep_overlap};
}

}  // namespace

CheckOptions CheckRequest::check_options(const Model& declared) const {
  CheckOptions options = check_options_of(declared);
  const bool grouped = format == ReportFormat::Text && batch.empty();
  options.findings_per_rule =
      findings_per_rule.value_or(grouped ? kFindingsInText : Diagnostics::kDefaultLimit);
  if (given) options.given = {given, &given->plan};
  return options;
}

std::vector<Opinion> CheckRequest::opinions(const Input& of, const ModuleTable& modules,
                                            const Environment& of_modules) const {
  ConsultOptions options = consult;
  options.modules = &modules;
  options.environment = of_modules;
  std::vector<Opinion> said;
  for (const Profile profile : {Profile::Te, Profile::Mcore, Profile::Torch}) {
    for (const AskedProfile& asked : profiles) {
      if (asked.profile != profile) continue;
      said.push_back(opinion_of(asked, of, options));
    }
  }
  return said;
}

bool CheckRequest::asks(Profile profile) const {
  return std::any_of(profiles.begin(), profiles.end(),
                     [profile](const AskedProfile& asked) { return asked.profile == profile; });
}

Run add_check(CLI::App& command) {
  command.footer("Example: capo check --order \"[1, 2, -1, -1]\" --profile sound,te");
  auto request = std::make_shared<CheckRequest>();
  auto megatron = std::make_shared<MegatronFlags>();
  add_options(command, *request);
  add_profile_options(command, *request, *megatron);
  return [request, megatron, &command] {
    if (const auto refused = take_defaults(command, *request)) return refuse(*refused);
    refuse_unused(*request, *megatron);
    settle_megatron(*request, *megatron);
    return request->batch.empty() ? check_files(*request) : check_batch(*request);
  };
}

}  // namespace capo::cli
