#include "core/convert/written.h"

#include "core/base/assert.h"
#include "core/convert/left_out.h"
#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/text/json_printer.h"
#include "core/text/order_printer.h"

#include <algorithm>
#include <utility>

namespace capo {

namespace {

Result<std::string, Inexpressible> print_te(const Schedule& schedule, Beside beside) {
  if (schedule.ranks.size() > 1) {
    return Inexpressible{.reason = "a TE list is the order of one rank; choose one with --rank"};
  }
  const RankOrder& rank = schedule.ranks.front();
  if (rank.replay) {
    return Inexpressible{.reason = "a TE list holds one order, not a capture and a replay order"};
  }
  auto list = to_te_list(rank, rank.order, beside);
  if (!list) return list.error();
  return print_te_list(*list);
}

Result<std::string, Inexpressible> print(const Schedule& schedule, TextForm form, Beside beside) {
  switch (form) {
    case TextForm::TeList:
      return print_te(schedule, beside);
    case TextForm::TorchCsv:
      return print_torch_csv(schedule, beside);
    case TextForm::OrderFile:
      return print_order_file(schedule);
    case TextForm::Json:
      return print_json(schedule);
  }
  CAPO_ASSERT(false, "every form has a printer");
  return std::string();
}

// A rank without stages, of which no file says that it is to hold none; both own forms would.
std::optional<Inexpressible> added(const Schedule& schedule) {
  if (schedule.topology != Topology::Custom) return std::nullopt;
  const auto bare =
      std::find_if(schedule.ranks.begin(), schedule.ranks.end(),
                   [](const RankOrder& rank) { return rank.chunks == 0 && !rank.chunks_declared; });
  if (bare == schedule.ranks.end()) return std::nullopt;
  return Inexpressible{.reason = "it would declare that rank " +
                                 std::to_string(bare - schedule.ranks.begin()) +
                                 " is to hold no chunk, of which nothing is said"};
}

// In a table with transfers an empty cell is a fault, and elsewhere none.
std::optional<Inexpressible> faulty_cell(const Schedule& schedule, const Input& again) {
  if (again.cell_faults.empty()) return std::nullopt;
  const auto& order =
      schedule.ranks[static_cast<std::size_t>(again.cell_faults.front().rank)].order;
  const auto idle = std::find_if(order.begin(), order.end(),
                                 [](const Entry& entry) { return entry.kind == Kind::Idle; });
  return Inexpressible{.reason = "a table with transfers has no idle slots", .span = idle->span()};
}

}  // namespace

Result<std::string, Inexpressible> written(const Schedule& schedule, TextForm form, Beside beside,
                                           const Limits& limits) {
  auto text = print(schedule, form, beside);
  if (!text) return text;
  // A schedule can be wrong in ways that the reader refuses outright, such as an order that names
  // only some of its microbatches. That one form takes more bytes than another is nothing wrong.
  Limits roomy = limits;
  roomy.bytes = std::max<std::uint64_t>(roomy.bytes, text->size());
  auto again =
      load(Source{.name = "<written>", .text = std::move(*text)}, {.form = form, .limits = roomy});
  if (!again) {
    return Inexpressible{.reason =
                             "it would be refused there, " + again.error().refusal.finding.message};
  }
  const bool own = form == TextForm::OrderFile || form == TextForm::Json;
  auto why = own ? added(schedule) : faulty_cell(schedule, *again);
  if (!why && !own && beside == Beside::Refuse) why = left_out(schedule, *again);
  if (why) return std::move(*why);
  return std::move(again->source.text);
}

}  // namespace capo
