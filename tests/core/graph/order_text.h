// Schedules written in the order language, and lowered orders printed in it, for tests of the
// graph.

#pragma once

#include "core/graph/lowered.h"
#include "core/input/load.h"
#include "core/text/action_token.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace capo::testing_support {

/// An .order file without its first line.
inline Input read_order(const std::string& statements) {
  auto input = load(Source{.name = "test.order", .text = "capo 1\n" + statements},
                    {.form = TextForm::OrderFile});
  if (!input) throw std::invalid_argument(input.error().refusal.finding.message);
  return std::move(*input);
}

inline Schedule read_schedule(const std::string& statements) {
  return read_order(statements).schedule;
}

/// The orders with steps of their own, which live on without the schedule.
inline Lowered own(const Lowered& lowered) {
  Lowered copy;
  for (const StepList& steps : lowered.ranks)
    copy.ranks.emplace_back(std::vector<Step>(steps.begin(), steps.end()));
  return copy;
}

/// The step as the order language has it, with what the language has no word for behind it:
///
///   recv-F1.0'    on the second communicator
///   recv-F1.0!    all computation behind it waits for it
///   send-B1.0+    all computation behind the next send of its kind waits for it
inline std::string to_text(const Step& step) {
  std::string text = to_token(
      {.kind = step.kind, .chunk = step.chunk, .microbatch = step.microbatch}, Naming::Named);
  if (step.communicator == 1) text += "'";
  if (step.wait == Wait::AtOnce) text += "!";
  if (step.wait == Wait::AtNext) text += "+";
  return text;
}

/// The steps of one rank; what runs together or is transferred as one group stands in parentheses.
inline std::string to_text(const StepList& steps) {
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i > 0) text += " ";
    if (steps[i].group == Group::Opens) text += "(";
    text += to_text(steps[i]);
    const bool grouped = steps[i].group != Group::Alone;
    if (grouped && (i + 1 == steps.size() || steps[i + 1].group != Group::Continues)) text += ")";
  }
  return text;
}

/// All ranks, a line each.
inline std::vector<std::string> lines_of(const Lowered& lowered) {
  std::vector<std::string> lines;
  for (const auto& steps : lowered.ranks) lines.push_back(to_text(steps));
  return lines;
}

}  // namespace capo::testing_support
