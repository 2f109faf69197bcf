// An order keeps its verdict in another form: a declaration that decides it is not left out without
// a word. Each form must be able to say something.

#include "core/convert/written.h"
#include "core/rules/check.h"
#include "testing/generators/arbitrary_schedule.h"
#include "testing/generators/arbitrary_table.h"
#include "testing/generators/sound_order.h"
#include "testing/generators/sound_schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace capo::testing {
namespace {

Verdict verdict_of(Schedule schedule) {
  return check({.form = Form::OrderFile, .schedule = std::move(schedule)}).verdict;
}

// Declares something of it, which may be so or not.
Schedule with_a_declaration(Schedule schedule) {
  const auto any = [](std::int32_t least, std::int32_t most) {
    return *rc::gen::inRange(least, most + 1);
  };
  RankOrder& rank = schedule.ranks[static_cast<std::size_t>(
      any(0, static_cast<std::int32_t>(schedule.ranks.size()) - 1))];
  switch (any(0, 5)) {
    case 0:
      schedule.microbatches = any(1, 4);
      break;
    case 1:
      schedule.stages = any(1, 6);
      break;
    case 2:
      if (schedule.topology == Topology::Custom) break;
      rank.chunks_declared = true;
      rank.chunks += any(0, 1);
      if (rank.delay) rank.delay->resize(static_cast<std::size_t>(rank.chunks));
      place_stages(schedule);
      break;
    case 3: {
      const std::int32_t most = schedule.naming == Naming::Named ? 2 : 1;
      rank.delay =
          std::vector(static_cast<std::size_t>(rank.chunks), static_cast<Delay>(any(0, most)));
      break;
    }
    case 4:
      rank.layers = {.form = Layers::Form::Count, .values = {any(-1, 2)}};
      break;
    default:
      if (schedule.ranks.size() == 1) {
        schedule.topology = static_cast<Topology>(any(0, 3));
        rank.stages.clear();
        place_stages(schedule);
      }
  }
  return schedule;
}

Schedule of_one_rank(Schedule schedule) {
  schedule.ranks.resize(1);
  schedule.topology = Topology::Independent;
  schedule.ranks.front().stages.clear();
  schedule.stages.reset();
  return schedule;
}

void require_same_verdict(const Schedule& schedule) {
  const Verdict verdict = verdict_of(schedule);
  RC_CLASSIFY(verdict == Verdict::Accepted, "accepted");
  for (const TextForm form :
       {TextForm::TeList, TextForm::TorchCsv, TextForm::OrderFile, TextForm::Json}) {
    const auto text = written(schedule, form);
    if (!text) continue;
    RC_CLASSIFY(true, form == TextForm::TeList     ? "list"
                      : form == TextForm::TorchCsv ? "table"
                                                   : "own");
    const auto again = load(Source{.name = "<written>", .text = *text}, {.form = form});
    RC_ASSERT(again.has_value());
    if (check(*again).verdict != verdict) RC_FAIL(*text);
  }
}

RC_GTEST_PROP(Convert, KeepsTheVerdictOfAnySchedule, ()) {
  require_same_verdict(*arbitrary_schedule());
}

RC_GTEST_PROP(Convert, KeepsTheVerdictOfAnyTable, ()) {
  require_same_verdict((*arbitrary_table()).schedule);
}

RC_GTEST_PROP(Convert, KeepsTheVerdictOfASoundScheduleWithADeclaration, ()) {
  require_same_verdict(with_a_declaration(*sound_named_schedule()));
}

RC_GTEST_PROP(Convert, KeepsTheVerdictOfARankWithADeclaration, ()) {
  require_same_verdict(with_a_declaration(of_one_rank(*sound_schedule())));
}

RC_GTEST_PROP(Convert, KeepsTheVerdictOfAListWithADeclaration, ()) {
  const TeOrder order = *sound_order();
  TeDeclarations declared = order.declarations();
  declared.layers = {};  // few are of one layer each, as a list and a table have them
  require_same_verdict(with_a_declaration(from_te_list(order.list, declared).schedule));
}

RC_GTEST_PROP(Convert, WritesWhatDeclaresNothing, ()) {
  const TeOrder order = *sound_order();
  const Schedule schedule = from_te_list(order.list, {}).schedule;
  const auto list = written(schedule, TextForm::TeList);
  RC_ASSERT(list.has_value());
  RC_ASSERT(*list == order.text());
  // A declaration that states a fact of the order is as good as none.
  TeDeclarations declared = order.declarations();
  declared.layers = {};
  RC_ASSERT(written(from_te_list(order.list, declared).schedule, TextForm::TeList).has_value());
}

}  // namespace
}  // namespace capo::testing
