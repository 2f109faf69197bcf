#include <capo/testing/truth/verdict.h>

#include <nlohmann/json.hpp>

#include <utility>
#include <variant>

namespace capo::testing {

namespace {

using Json = nlohmann::ordered_json;

Json cells(const std::set<run::Victim>& victims) {
  Json list = Json::array();
  for (const run::Victim& victim : victims) {
    list.push_back({victim.rank, victim.chunk, victim.microbatch});
  }
  return list;
}

Json victims_of(const run::Victims& victims) {
  return {{"static_input", cells(victims.static_input)},
          {"grad_output", cells(victims.grad_output)},
          {"grad_input", cells(victims.grad_input)},
          {"other", cells(victims.other)}};
}

Result<run::RunReport, run::RunFailure> run_case(const TruthCase& of, std::uint64_t number,
                                                 run::Engine& engine, Verdict& verdict) {
  const run::RunOptions options{
      .graphs = of.graphs,
      .replays = 3,
      .seed = number + 1,
      .sizes = number % 3 == 0 ? run::SizeKind::Zipf : run::SizeKind::Random};
  const auto refused = [&](NotVerified why) {
    verdict = why.result.verdict;
    return run::RunFailure{.kind = run::RunFailure::Kind::Refused, .message = why.reason};
  };
  if (!of.unchecked) {
    auto plan = verify(of.input, of.options);
    if (auto* why = std::get_if<NotVerified>(&plan)) return refused(std::move(*why));
    verdict = Verdict::Accepted;
    return run::run(engine, std::get<VerifiedPlan>(plan), options);
  }
  auto plan = admit_unchecked(of.input, of.options);
  if (auto* why = std::get_if<NotVerified>(&plan)) return refused(std::move(*why));
  verdict = std::get<UncheckedPlan>(plan).step().result().verdict;
  return run::run_unchecked(engine, std::get<UncheckedPlan>(plan), options);
}

}  // namespace

TruthVerdict judge_truth(const TruthCase& of, std::uint64_t number, run::Engine& engine) {
  Verdict verdict = Verdict::NoVerdict;
  const auto report = run_case(of, number, engine, verdict);
  TruthVerdict said{.accepted = verdict == Verdict::Accepted};
  Json line{{"n", number},
            {"order", of.words},
            {"module", of.module},
            {"plan", name_of(*of.options.plan.kind)},
            {"graphs", of.graphs == Granularity::PerStep ? "per-step" : "per-action"},
            {"engine", engine.name()},
            {"verdict", said.accepted ? "accepted" : "rejected"}};
  if (!report) {
    line["failure"] = report.error().message;
  } else {
    said.right = report->bit_equal && report->within_bounds;
    const bool seen = report->victims == report->predicted;
    said.agrees = said.accepted ? said.right && seen : seen && !report->bit_equal;
    line["bit_equal"] = report->bit_equal;
    line["float64"] = report->worst_relative_error;
    line["within_bounds"] = report->within_bounds;
    line["gradients"] = report->parameters.size() + report->input_gradients.size();
    line["replays"] = report->replays;
    line["bytes_as_planned"] = report->bytes.planned == report->bytes.allocated;
    if (of.unchecked) {
      line["victims"] = victims_of(report->victims);
      line["predicted"] = victims_of(report->predicted);
    }
  }
  line["agrees"] = said.agrees;
  said.line = line.dump();
  return said;
}

}  // namespace capo::testing
