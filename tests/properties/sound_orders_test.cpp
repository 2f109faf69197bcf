// A sound order is accepted, in every form and with or without declarations.

#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "testing/faults/table.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_schedule.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capo::testing {
namespace {

using testing_support::check_te;
using testing_support::check_text;
using testing_support::Checked;

void require_accepted(const Checked& checked) {
  if (!checked.accepted())
    RC_FAIL(checked.findings().empty() ? "no finding" : checked.findings().front());
}

RC_GTEST_PROP(SoundOrders, AreAcceptedAsDeclaredLists, ()) {
  const TeOrder order = *sound_order();
  require_accepted(check_te(order.text(), order.declarations()));
}

RC_GTEST_PROP(SoundOrders, AreAcceptedAsBareLists, ()) {
  require_accepted(check_te((*sound_order()).text()));
}

RC_GTEST_PROP(SoundOrders, AreAcceptedWhetherOrNotTeCanCaptureThem, ()) {
  require_accepted(check_te((*te_capturable_order()).text()));
  require_accepted(check_te((*te_uncapturable_order()).text()));
}

RC_GTEST_PROP(SoundOrders, AreAcceptedAsSchedules, ()) {
  const Schedule schedule = *sound_schedule();
  require_accepted(check_text(print_order_file(schedule), {.form = TextForm::OrderFile}));
  require_accepted(check_text(print_json(schedule), {.form = TextForm::Json}));
}

RC_GTEST_PROP(SoundOrders, AreAcceptedWithoutDeclarations, ()) {
  Schedule schedule = *sound_schedule();
  schedule.microbatches.reset();
  for (RankOrder& rank : schedule.ranks) {
    rank.delay.reset();
    rank.layers = {};
    rank.replay.reset();  // which need not split the same microbatches
    rank.chunks_declared = schedule.topology == Topology::Custom;
  }
  require_accepted(check_text(print_order_file(schedule), {.form = TextForm::OrderFile}));
}

RC_GTEST_PROP(SoundOrders, AreAcceptedAsTables, ()) {
  const Table table = table_of(*sound_named_schedule());
  require_accepted(
      check_text(table.text(), {.form = TextForm::TorchCsv, .torch = table.declarations}));
}

}  // namespace
}  // namespace capo::testing
