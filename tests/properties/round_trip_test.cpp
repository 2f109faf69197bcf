// Printing a value and reading it back is the identity, in each of the four forms.

#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/input/load.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "testing/generators/arbitrary_numbers.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/arbitrary_table.h"
#include "testing/generators/sound_order.h"
#include "testing/laws/texts.h"
#include "testing/minimise_shrink.h"
#include "testing/representable.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>

namespace capo::testing {
namespace {

Schedule loaded(std::string text, LoadOptions options) {
  const auto input = load(Source{.name = "<printed>", .text = std::move(text)}, options);
  if (!input) RC_FAIL(input.error().refusal.finding.message);
  return input->schedule;
}

// Bit for bit, but that one NaN is as good as another.
bool same_number(const TeEntry& a, const TeEntry& b) {
  const bool same = std::isnan(a.value) ? std::isnan(b.value)
                                        : std::bit_cast<std::uint64_t>(a.value) ==
                                              std::bit_cast<std::uint64_t>(b.value);
  return same && a.type == b.type;
}

bool same_numbers(const TeList& a, const TeList& b) {
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    same_number);
}

RC_GTEST_PROP(RoundTrip, OrderFileSaysWhatTheScheduleSays, ()) {
  require(laws::order_text_reads_back(*arbitrary_schedule()));
}

RC_GTEST_PROP(RoundTrip, JsonSaysWhatTheScheduleSays, ()) {
  require(laws::json_reads_back(*arbitrary_schedule()));
}

// A schedule that rapidcheck shows has gone through many of these steps.
RC_GTEST_PROP(RoundTrip, WhatIsSmallerByAStepIsSaidToo, ()) {
  for (const Schedule& smaller : smaller_schedules(*arbitrary_schedule())) {
    if (unrepresentable(smaller)) continue;
    require(laws::order_text_reads_back(smaller));
    require(laws::json_reads_back(smaller));
  }
}

RC_GTEST_PROP(RoundTrip, TorchTableSaysWhatTheScheduleSays, ()) {
  const TableCase table = *arbitrary_table();
  const auto text = print_torch_csv(table.schedule);
  RC_ASSERT(text.has_value());
  const Schedule again = loaded(*text, {.form = TextForm::TorchCsv, .torch = table.declarations});
  RC_ASSERT(same_meaning(table.schedule, again));
  RC_ASSERT(print_torch_csv(again).value() == *text);
}

RC_GTEST_PROP(RoundTrip, TeListSaysWhatTheScheduleSays, ()) {
  const TeOrder order = *sound_order();
  const Schedule schedule = from_te_list(order.list, order.declarations()).schedule;
  const auto list = to_te_list(schedule.ranks.front(), schedule.ranks.front().order);
  RC_ASSERT(list.has_value());
  RC_ASSERT(same_numbers(*list, order.list));
  const Schedule again =
      loaded(print_te_list(*list), {.form = TextForm::TeList, .te = order.declarations()});
  RC_ASSERT(same_meaning(schedule, again));
}

RC_GTEST_PROP(RoundTrip, TeListTextKeepsEveryNumberBitForBit, ()) {
  const TeList list = (*arbitrary_numbers()).list;
  const auto again = read_te_list(print_te_list(list), Limits{});
  RC_ASSERT(again.has_value());
  RC_ASSERT(same_numbers(list, *again));
}

// Any double at all, not only those near an order.
RC_GTEST_PROP(RoundTrip, TeListTextKeepsAnyDouble, (std::uint64_t bits)) {
  const TeList list{.entries = {{.value = std::bit_cast<double>(bits), .type = NumberType::Float}}};
  const auto again = read_te_list(print_te_list(list), Limits{});
  RC_ASSERT(again.has_value());
  RC_ASSERT(same_numbers(list, *again));
}

RC_GTEST_PROP(RoundTrip, AFormThatIsNotNamedIsRecognised, ()) {
  const Schedule schedule = *arbitrary_schedule();
  RC_ASSERT(detect_form("", print_order_file(schedule)) == TextForm::OrderFile);
  RC_ASSERT(detect_form("", print_json(schedule)) == TextForm::Json);
  RC_ASSERT(detect_form("", (*arbitrary_numbers()).text()) == TextForm::TeList);
}

RC_GTEST_PROP(RoundTrip, WhatAGeneratorCallsRepresentableIs, ()) {
  const auto reason = unrepresentable(*arbitrary_schedule());
  if (reason) RC_FAIL(std::string(*reason));
}

}  // namespace
}  // namespace capo::testing
