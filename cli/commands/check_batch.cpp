// `capo check --batch FILE.jsonl`: each line is a schedule in JSON, each result one line of JSON.
//
//   {"order":[1,-1],"num_layers_per_chunk":[1],"need_wgrad":[false],"note":"mine"}
//
// Results come in the order of the lines. A line that is malformed is a result of its own, with
// verdict no-verdict, and stops nothing. Keys that capo does not know are handed through under
// "input". The exit code is 0 if every line got a verdict, whichever it is.

#include <capo/cli/commands/check_options.h>
#include <capo/cli/files.h>
#include <capo/core/report/json_report.h>
#include <capo/core/text/json_reader.h>

#include <fmt/format.h>

#include <algorithm>

namespace capo::cli {

namespace {

// The members of the line's object that are no part of a schedule, as they stand in the text.
std::string extra_members(const JsonDocument& document, const Source& line) {
  std::string extra;
  if (document.root().type() != JsonValue::Type::Object) return extra;
  const auto known = schedule_keys(document);
  for (auto member = document.root().first(); member; member = member->next()) {
    const std::string& key = member->key();
    const bool own = key != "comment" && std::find(known.begin(), known.end(), key) != known.end();
    if (own) continue;
    if (!extra.empty()) extra += ",";
    extra += json_quoted(member->key()) + ":" + std::string(line.slice(member->span()));
  }
  return extra;
}

struct LineResult {
  std::string json;
  int code = kAccepted;  ///< of a line without a verdict; kAccepted for both verdicts
};

LineResult refused(const Source& line, const Refusal& refusal, const std::string& extra) {
  return {.json = to_json(report_of(line, refusal), JsonLayout::OneLine, extra),
          .code = exit_code_of(refusal.kind)};
}

LineResult check_line(Source line, const CheckRequest& request, const LoadOptions& load) {
  const auto document = JsonDocument::parse(line.text, load.limits);
  if (!document) return refused(line, document.error(), "");
  const std::string extra = extra_members(*document, line);
  auto input = read_json_schedule(*document, load.limits, ExtraKeys::Allowed, load.te, load.torch);
  if (!input) return refused(line, input.error(), extra);
  input->source = std::move(line);
  CheckResult result = check(*input, request.check);
  const Report report = report_of(*input, std::move(result), request.opinions(*input));
  return {.json = to_json(report, JsonLayout::OneLine, extra)};
}

}  // namespace

int check_batch(const CheckRequest& request) {
  const LoadOptions load = request.input.load_options();
  const auto source = read_source(request.batch, load.limits.bytes);
  if (!source) {
    print_error(source.error());
    return exit_code_of(source.error().kind);
  }
  int code = kAccepted;
  std::string pending;  // results not yet written
  const std::string_view text = source->text;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    Source line{.name = fmt::format("{}:{}", source->name, ++number),
                .text = std::string(text.substr(begin, end - begin))};
    begin = end + 1;
    if (line.text.ends_with('\r')) line.text.pop_back();
    LineResult result = check_line(std::move(line), request, load);
    code = std::max(code, result.code);
    pending += result.json + "\n";
    if (pending.size() < (1 << 20) && begin < text.size()) continue;
    if (const auto error = write_stdout(pending)) {
      print_error(*error);
      return exit_code_of(error->kind);
    }
    pending.clear();
  }
  return code;
}

}  // namespace capo::cli
