// `capo check --batch FILE.jsonl`: each line is a schedule in JSON, each result one line of JSON.
//
//   {"order":[1,-1],"num_layers_per_chunk":[1],"need_wgrad":[false],"note":"mine"}
//
// Results come in the order of the lines. A line that is malformed is a result of its own, with
// verdict no-verdict, and stops nothing. A line may name its plan ("plan":"te"), else that of the
// command line holds. Keys that capo does not know are handed through under "input". The exit code
// is 0 if every line got a verdict, whichever it is; with --fail-on rejected it is 1 if one of them
// is rejected. Blank lines at the end of the file are none.
//
// With --verdicts a result is the verdict, and the rule and the place of the first error:
//
//   {"schema":1,"verdict":"rejected","rule":"S23","rank":0,"index":2,"input":{"note":"mine"}}
//
// They are those of core/rules/verdicts.h, which builds no words and looks for no cures; a line
// without a verdict is reported in full all the same, since its words say what to mend.

#include "cli/commands/check_options.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/in_parallel.h"
#include "core/cures/cures.h"
#include "core/input/json_reader.h"
#include "core/report/report.h"
#include "core/rules/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace capo::cli {

namespace {

// The members of the line's object that belong to no schedule, as they stand in the text.
std::string extra_members(const JsonDocument& document, const Source& line) {
  std::string extra;
  if (document.root().type() != JsonValue::Type::Object) return extra;
  const auto known = schedule_keys(document);
  for (auto member = document.root().first(); member; member = member->next()) {
    const std::string& key = member->key();
    const bool own = key == "plan" || (key != "comment" &&
                                       std::find(known.begin(), known.end(), key) != known.end());
    if (own) continue;
    if (!extra.empty()) extra += ",";
    extra += json_quoted(member->key()) + ":" + std::string(line.slice(member->span()));
  }
  return extra;
}

// The options with the plan that the line names, if it names one, or the mistake in that name.
Read<CheckOptions> with_plan_of(const JsonDocument& document, CheckOptions options) {
  const auto plan = document.root().find("plan");
  if (!plan) return options;
  const bool text = plan->type() == JsonValue::Type::String;
  const auto kind = text ? plan_named(plan->string()) : std::nullopt;
  if (!kind) return malformed(plan->span(), "`plan` is \"te\", \"safe\" or \"mcore-local\"");
  options.plan.kind = kind;
  return options;
}

struct LineResult {
  std::string json;
  int code = kAccepted;  ///< what the line makes of the exit code
};

LineResult refused(const Source& line, const Refusal& refusal, const std::string& extra) {
  return {.json = to_json(report_of(line, refusal), JsonLayout::OneLine, extra),
          .code = exit_code_of(refusal.kind)};
}

class Batch {
 public:
  Batch(const CheckRequest& request, const Model& declared)
      : request_(request),
        declared_(declared),
        load_(request.input.load_options()),
        options_(request.check_options(declared)) {}

  // Several threads may call this at once.
  [[nodiscard]] LineResult check_line(Source line) const {
    const auto document = JsonDocument::parse(line.text, load_.limits);
    if (!document) return refused(line, document.error(), "");
    const std::string extra = extra_members(*document, line);
    auto declared = declared_line(*document);
    if (!declared) return refused(line, declared.error(), extra);
    Input& input = declared->input;
    input.source = std::move(line);
    if (request_.verdicts) {
      if (auto alone = verdict_of(*declared, extra)) return *std::move(alone);
    }
    CheckResult result = check_planned(input, declared->options);
    cure(result, input);
    const Report report = report_of(
        input, std::move(result),
        request_.opinions(input, declared->options.modules, declared->options.environment));
    return {.json = to_json(report, JsonLayout::OneLine, extra), .code = code_of(report.verdict)};
  }

 private:
  // A line's schedule, which has no source yet, and all that is declared of it.
  struct DeclaredLine {
    Input input;
    CheckOptions options;
  };

  [[nodiscard]] int code_of(Verdict verdict) const {
    const bool tolerated = verdict == Verdict::Rejected && request_.fail_on == FailOn::NoVerdict;
    return tolerated ? kAccepted : exit_code_of(verdict);
  }

  // nullopt if there is none, so that words have to say why.
  [[nodiscard]] std::optional<LineResult> verdict_of(const DeclaredLine& line,
                                                     const std::string& extra) const {
    const FirstFinding first = Verdicts({.options = line.options}).of(line.input);
    if (first.verdict == Verdict::NoVerdict) return std::nullopt;
    std::string json =
        fmt::format("{{\"schema\":1,\"verdict\":{}", json_quoted(name_of(first.verdict)));
    if (!first.rule.empty()) json += fmt::format(",\"rule\":{}", json_quoted(first.rule));
    if (first.place) {
      json += fmt::format(",\"rank\":{},\"index\":{}", first.place->rank, first.place->index);
    }
    if (!extra.empty()) json += fmt::format(",\"input\":{{{}}}", extra);
    return LineResult{.json = json + "}", .code = code_of(first.verdict)};
  }

  [[nodiscard]] Read<DeclaredLine> declared_line(const JsonDocument& document) const {
    auto input =
        read_json_schedule(document, load_.limits, ExtraKeys::Allowed, load_.te, load_.torch);
    if (!input) return input.error();
    if (const auto misfit = place(request_, input->schedule, declared_)) {
      const Span whole = document.root().span();
      const std::string why = fmt::format("{} {}", misfit->flag, misfit->why);
      return misfit->limit ? over_limit(whole, why, "--max-count") : malformed(whole, why);
    }
    auto options = with_plan_of(document, options_);
    if (!options) return options.error();
    return DeclaredLine{.input = *std::move(input), .options = *std::move(options)};
  }

  [[nodiscard]] std::optional<CheckResult> judge(const std::string& text) const {
    const auto document = JsonDocument::parse(text, load_.limits);
    if (!document) return std::nullopt;
    auto declared = declared_line(*document);
    if (!declared) return std::nullopt;
    declared->input.source.text = text;
    return check_planned(declared->input, declared->options);
  }

  void cure(CheckResult& result, const Input& input) const {
    const JudgeText again = [this](const std::string& text) { return judge(text); };
    keep_cures_that_work(result, input, again, kTrials);
    if (auto slip = find_slip(result, input, again, kTrials)) {
      result.diagnostics.put_first(std::move(slip->finding));
    }
  }

  // A batch may have a hundred thousand lines, of which most may be wrong.
  static constexpr CureOptions kTrials{.budget = 40'000};

  const CheckRequest& request_;
  const Model& declared_;
  LoadOptions load_;
  CheckOptions options_;
};

// Cuts a text into lines, whose names say where they stand.
class BatchLines {
 public:
  explicit BatchLines(const Source& source) : source_(source) {
    const std::size_t last = source.text.find_last_not_of(" \t\r\n");
    if (last != std::string::npos)
      end_ = std::min(source.text.find('\n', last), source.text.size());
  }

  [[nodiscard]] bool left() const { return begin_ < end_; }
  Source next() {
    const std::string_view text = source_.text;
    const std::size_t end = std::min(text.find('\n', begin_), text.size());
    Source line{.name = fmt::format("{}:{}", source_.name, ++number_),
                .text = std::string(text.substr(begin_, end - begin_))};
    begin_ = end + 1;
    if (line.text.ends_with('\r')) line.text.pop_back();
    return line;
  }

 private:
  const Source& source_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;  ///< where the last line ends that is not blank
  std::size_t number_ = 0;
};

// Checks lines on several threads; the results stand in the order of the lines.
std::vector<LineResult> check_lines(const Batch& batch, std::vector<Source> lines,
                                    unsigned threads) {
  std::vector<LineResult> results(lines.size());
  in_parallel(lines.size(), threads,
              [&](std::size_t i) { results[i] = batch.check_line(std::move(lines[i])); });
  return results;
}

// Tells the mistake in one line, since the results of a batch are lines too.
int refuse_declarations(const CommandError& error) {
  if (const auto* failed = std::get_if<Error>(&error)) return fail(*failed);
  const auto& [source, refusal] = std::get<RefusedInput>(error);
  const bool limit = refusal.kind == Refusal::Kind::Limit;
  return fail({.kind = limit ? ErrorKind::Limit : ErrorKind::Unreadable,
               .message = fmt::format("{}: {}", source.name, refusal.finding.message)});
}

}  // namespace

int check_batch(const CheckRequest& request) {
  const auto declared = declared_model(request);
  if (!declared) return refuse_declarations(declared.error());
  const Batch batch(request, *declared);
  const auto source = read_source(request.batch, request.input.limits.bytes);
  if (!source) return fail(source.error());

  constexpr std::size_t kLinesAtOnce = 1024;
  int code = kAccepted;
  std::string whole;  // what goes to a file, which is written at once
  for (BatchLines lines(*source); lines.left();) {
    std::vector<Source> block;
    while (lines.left() && block.size() < kLinesAtOnce) block.push_back(lines.next());
    std::string written;
    for (const LineResult& result : check_lines(batch, std::move(block), request.threads)) {
      code = std::max(code, result.code);
      written += result.json + "\n";
    }
    if (request.output != "-") {
      whole += written;
    } else if (const auto error = write_stdout(written)) {
      return fail(*error);
    }
  }
  if (request.output == "-") return code;
  return exit_code_after(write_file(request.output, whole), code);
}

}  // namespace capo::cli
