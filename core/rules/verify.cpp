#include "core/rules/verify.h"

#include "core/base/assert.h"
#include "core/rules/context.h"
#include "core/rules/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capo {

struct PlannedStep::State {
  State(Input of, CheckOptions declared)
      : input(std::move(of)),
        options(std::move(declared)),
        context(input, options),
        result(check(context)) {}

  // Only of a step whose memory was judged.
  void take_courses() {
    captured = context.plan_view().course();
    replayed = context.plan_view().course_of(*context.wirings().back());
  }

  Input input;
  CheckOptions options;
  Context context;
  CheckResult result;
  Course captured;
  Course replayed;
};

namespace {

// Findings that leave the step a course of its own.
bool can_be_run(Family family) {
  switch (family) {
    case Family::Buffers:
    case Family::Streams:
    case Family::Replay:
    case Family::Gradients:
    case Family::Capture:
      return true;
    default:
      return false;
  }
}

std::string unplanned(const CheckResult& result) {
  if (!result.plan_declared) return "no plan was asked for";
  if (!result.plan) return "its memory was not judged";
  if (!result.plan->sized) return "the sizes of its buffers are not known";
  return "";
}

const Diagnostic* first_that_cannot_be_run(const Diagnostics& diagnostics) {
  const auto& kept = diagnostics.kept();
  const auto found = std::find_if(kept.begin(), kept.end(), [](const Diagnostic& finding) {
    return finding.severity == Severity::Error && !can_be_run(finding.family);
  });
  return found == kept.end() ? nullptr : &*found;
}

}  // namespace

PlannedStep::PlannedStep(std::unique_ptr<State> state) : state_(std::move(state)) {
}
PlannedStep::PlannedStep(PlannedStep&&) noexcept = default;
PlannedStep& PlannedStep::operator=(PlannedStep&&) noexcept = default;
PlannedStep::~PlannedStep() = default;

VerifiedPlan::VerifiedPlan(std::unique_ptr<PlannedStep::State> state) : step_(std::move(state)) {
}
UncheckedPlan::UncheckedPlan(std::unique_ptr<PlannedStep::State> state) : step_(std::move(state)) {
}

const Input& PlannedStep::input() const {
  return state_->input;
}
const CheckOptions& PlannedStep::options() const {
  return state_->options;
}
const CheckResult& PlannedStep::result() const {
  return state_->result;
}
const PlanView& PlannedStep::view() const {
  return state_->context.plan_view();
}
const Course& PlannedStep::captured() const {
  return state_->captured;
}
const Course& PlannedStep::replayed() const {
  return state_->replayed;
}
bool PlannedStep::replays_as_captured() const {
  return !replays_otherwise(state_->input.schedule);
}

bool can_be_admitted(const CheckResult& result) {
  // Faults that cannot be run are found before there is a plan.
  return result.verdict != Verdict::NoVerdict && unplanned(result).empty();
}

std::variant<VerifiedPlan, NotVerified> verify(Input input, CheckOptions options) {
  auto state = std::make_unique<PlannedStep::State>(std::move(input), std::move(options));
  if (state->result.verdict != Verdict::Accepted) {
    return NotVerified{.result = std::move(state->result), .reason = "it is not accepted"};
  }
  if (std::string reason = unplanned(state->result); !reason.empty()) {
    return NotVerified{.result = std::move(state->result), .reason = std::move(reason)};
  }
  state->take_courses();
  return VerifiedPlan(std::move(state));
}

std::variant<UncheckedPlan, NotVerified> admit_unchecked(Input input, CheckOptions options) {
  auto state = std::make_unique<PlannedStep::State>(std::move(input), std::move(options));
  if (const Diagnostic* finding = first_that_cannot_be_run(state->result.diagnostics)) {
    std::string reason = fmt::format(
        "{} ({}) leaves nothing to run: only faults of buffers, streams, replays, gradients and "
        "captures can be run unchecked",
        finding->rule, name_of(finding->family));
    return NotVerified{.result = std::move(state->result), .reason = std::move(reason)};
  }
  if (std::string reason = unplanned(state->result); !reason.empty()) {
    return NotVerified{.result = std::move(state->result), .reason = std::move(reason)};
  }
  state->take_courses();
  return UncheckedPlan(std::move(state));
}

}  // namespace capo
