#include "testing/truth/minimal_case.h"

#include "core/base/assert.h"
#include "core/input/load.h"
#include "core/minimise/minimise.h"
#include "core/report/report.h"
#include "core/text/model_parts.h"
#include "core/text/order_text.h"
#include "testing/generators/fewer_microbatches.h"
#include "testing/generators/sound_declared.h"
#include "testing/minimise_shrink.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace capo::testing {

namespace {

constexpr std::uint64_t kMostRuns = 5'000;

// Through its text, as whoever pastes it will.
std::optional<TruthCase> with_schedule(TruthCase of, const Schedule& schedule) {
  of.words = print_order_file(schedule);
  auto input = load(Source{.name = "case.order", .text = of.words}, {.form = TextForm::OrderFile});
  if (!input) return std::nullopt;
  of.input = *std::move(input);
  return of;
}

// One wrong gradient more or less is the same disagreement.
class Shrinker {
 public:
  Shrinker(TruthCase of, TruthLine line, const JudgeCase& judge)
      : of_(std::move(of)), line_(std::move(line)), judge_(judge) {}

  MinimalCase run() {
    try {
      shrink();
    } catch (const InternalError&) {
    }
    return {.of = std::move(of_), .line = std::move(line_)};
  }

 private:
  void shrink() {
    const bool broken = line_.verdict == name_of(Verdict::NoVerdict);
    if (false_alarm_) {
      shrink_sound_order();
    } else if (line_.ran || broken) {
      shrink_order();
    } else {
      return;
    }
    while (simplify()) {
    }
  }

  // An order may lose a rule that it broke besides, but neither the first nor all of them.
  [[nodiscard]] bool is_the_same(const TruthLine& line) const {
    const auto& rules = line_.rules;
    const bool same_rules =
        line.rules.empty()
            ? rules.empty()
            : !rules.empty() && line.rules.front() == rules.front() &&
                  std::includes(rules.begin(), rules.end(), line.rules.begin(), line.rules.end());
    return line.came == Came::Disagrees && line.reason == line_.reason && same_rules;
  }

  bool accept(std::optional<TruthCase> candidate) {
    if (!candidate) return false;
    auto line = judge_(*candidate);
    if (!line || !is_the_same(*line)) return false;
    of_ = *std::move(candidate);
    line_ = *std::move(line);
    return true;
  }

  // A fault may go with what is deleted; whether it is still reported is no longer the question.
  void shrink_order() {
    if (of_.made == Made::Faulty) of_.made = Made::Drawn;
    const auto& rows = of_.declared.modules.layers;
    const StillBroken disagrees = [&](const Schedule& schedule) {
      return accept(with_schedule(of_, schedule));
    };
    const MinimiseOptions options{.max_checks = kMostRuns,
                                  .fixed_ranks = rows.size() > 1 ? rows.size() : 0,
                                  .fixed_chunks = declared_by_chunk()};
    // The last one that was accepted is the smallest: minimise() goes on from it.
    static_cast<void>(minimise(of_.input.schedule, disagrees, options));
  }

  [[nodiscard]] bool declared_by_chunk() const {
    const auto& rows = of_.declared.modules.layers;
    return !of_.declared.plan.model_chunks.empty() ||
           std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.size() > 1; });
  }

  // A case shrinks as the generator of its sort shrinks.
  [[nodiscard]] std::vector<Schedule> sound_schedules() const {
    const bool by_place = declared_by_chunk() || of_.declared.modules.layers.size() > 1;
    if (!by_place && of_.declared.plan.kind != PlanKind::Te) {
      return smaller_sound_schedules(of_.input.schedule);
    }
    std::vector<Schedule> schedules;
    for (Declared& fewer : with_fewer_microbatches(Declared{.schedule = of_.input.schedule})) {
      schedules.push_back(std::move(fewer.schedule));
    }
    return schedules;
  }

  void shrink_sound_order() {
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const Schedule& schedule : sound_schedules()) {
        smaller = accept(with_schedule(of_, schedule));
        if (smaller) break;
      }
    }
  }

  // Something that is not as it would be by default becomes so.
  bool simplify() {
    std::vector<TruthCase> candidates;
    const auto with = [&](auto change) {
      TruthCase candidate = of_;
      change(candidate);
      candidates.push_back(std::move(candidate));
    };
    if (of_.replays > 1) with([](TruthCase& of) { of.replays = 1; });
    if (of_.replicas > 1) with([](TruthCase& of) { --of.replicas; });
    if (of_.graphs != Granularity::PerAction) {
      with([](TruthCase& of) { of.graphs = Granularity::PerAction; });
    }
    if (of_.sizes != run::SizeKind::Random) {
      with([](TruthCase& of) { of.sizes = run::SizeKind::Random; });
    }
    if (of_.seed != 1) with([](TruthCase& of) { of.seed = 1; });
    const std::size_t modules = false_alarm_ ? 0 : of_.declared.modules.list.size();
    for (std::size_t m = 0; m < modules; ++m) {
      for (Module& simpler : simpler_modules(of_.declared.modules.list[m])) {
        with([&](TruthCase& of) { of.declared.modules.list[m] = std::move(simpler); });
      }
    }
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](const TruthCase& candidate) { return accept(candidate); });
  }

  static std::vector<Module> simpler_modules(const Module& module) {
    std::vector<Module> simpler;
    const auto with = [&](auto change) {
      Module candidate = module;
      change(candidate);
      if (candidate != module) simpler.push_back(std::move(candidate));
    };
    for (const ModuleFlag& flag : kModuleFlags) {
      with([&](Module& of) { of.flags.*flag.slot = ModuleFlags{}.*flag.slot; });
    }
    with([](Module& of) { of.dtype = DataType::Bf16; });
    with([](Module& of) {
      if (of.shape.groups) of.shape.groups = 1;
      if (of.shape.top_k) of.shape.top_k = 1;
    });
    with([](Module& of) {
      if (of.shape.heads) of.shape.heads = of.shape.kv_heads = 1;
    });
    return simpler;
  }

  TruthCase of_;
  TruthLine line_;
  const JudgeCase& judge_;
  const bool false_alarm_ = of_.made == Made::Sound && line_.verdict == name_of(Verdict::Rejected);
};

}  // namespace

MinimalCase minimal_case(const TruthCase& of, const TruthLine& line, const JudgeCase& judge) {
  return Shrinker(of, line, judge).run();
}

}  // namespace capo::testing
