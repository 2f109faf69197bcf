// Readers never crash, always say why they refuse and where, and never accept what cannot be
// printed and read back.

#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/input/load.h"
#include "core/rules/check.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "testing/generators/mutated_text.h"
#include "testing/representable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace capo::testing {
namespace {

// Small, so that both sides of each limit are met.
constexpr Limits kSmall{.bytes = 2000, .entries = 100, .ranks = 8, .counts = 1000, .depth = 8};

Result<Input, RefusedInput> loaded(const std::string& text, TextForm form) {
  return load(Source{.name = "<mutated>", .text = text}, {.form = form, .limits = kSmall});
}

RC_GTEST_PROP(HostileText, IsReadOrRefusedWithAReasonAndAPlace, ()) {
  const MutatedText mutated = *mutated_text();
  const auto input = loaded(mutated.text, mutated.form);
  if (input) return;
  const Diagnostic& finding = input.error().refusal.finding;
  RC_ASSERT(!finding.message.empty());
  RC_ASSERT(!finding.labels.empty());
  for (const Label& label : finding.labels) {
    RC_ASSERT(label.span.offset + label.span.length <= mutated.text.size());
  }
}

RC_GTEST_PROP(HostileText, IsReadInAnyFormWithoutACrash, ()) {
  const MutatedText mutated = *mutated_text();
  for (const TextForm form :
       {TextForm::TeList, TextForm::OrderFile, TextForm::TorchCsv, TextForm::Json}) {
    const auto input = loaded(mutated.text, form);
    if (input) RC_ASSERT(check(*input).verdict != Verdict::NoVerdict);
  }
}

RC_GTEST_PROP(HostileText, IsNeverAcceptedUnlessItCanBePrintedAndReadBack, ()) {
  const MutatedText mutated = *mutated_text();
  const auto input = loaded(mutated.text, mutated.form);
  if (!input || check(*input).verdict != Verdict::Accepted) return;
  // Known: an empty list of layers for a rank without chunks is accepted, and has no notation.
  const bool no_chunks = std::any_of(input->schedule.ranks.begin(), input->schedule.ranks.end(),
                                     [](const RankOrder& rank) { return rank.chunks == 0; });
  if (no_chunks) return;
  const auto reason = unrepresentable(input->schedule, kSmall);
  if (reason) RC_FAIL(std::string(*reason));
  const Limits roomy{.bytes = 1 << 20, .entries = 1000};
  const auto again = load(Source{.text = print_order_file(input->schedule)},
                          {.form = TextForm::OrderFile, .limits = roomy});
  RC_ASSERT(again.has_value());
  RC_ASSERT(same_meaning(input->schedule, again->schedule));
  RC_ASSERT(check(*again).verdict == Verdict::Accepted);
}

RC_GTEST_PROP(HostileText, ThatIsUnderstoodIsSaidByOrderFilesAndJson, ()) {
  const MutatedText mutated = *mutated_text();
  const auto input = loaded(mutated.text, mutated.form);
  if (!input || unrepresentable(input->schedule, kSmall)) return;
  const Limits roomy{.bytes = 1 << 20, .entries = 1000};
  const auto order = load(Source{.text = print_order_file(input->schedule)},
                          {.form = TextForm::OrderFile, .limits = roomy});
  RC_ASSERT(order.has_value());
  RC_ASSERT(same_meaning(input->schedule, order->schedule));
  const auto json =
      load(Source{.text = print_json(input->schedule)}, {.form = TextForm::Json, .limits = roomy});
  RC_ASSERT(json.has_value());
  RC_ASSERT(same_meaning(input->schedule, json->schedule));
}

}  // namespace
}  // namespace capo::testing
