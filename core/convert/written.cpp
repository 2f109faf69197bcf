#include "core/convert/written.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/frameworks/te/list_text.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/rule.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

namespace capo {

namespace {

using Reason = std::optional<Inexpressible>;

// Compares a schedule with the text of it that was read back, and finds the first thing left out.

class Comparison {
 public:
  Comparison(const Schedule& schedule, const Input& again)
      : schedule_(schedule), again_(again), list_(again.form == Form::TeList) {}

  [[nodiscard]] Reason left_out() const {
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      if (auto why = layers_of(r)) return why;
      if (auto why = chunks_of(r)) return why;
      if (auto why = delay_of(r)) return why;
    }
    if (auto why = microbatches()) return why;
    if (auto why = stages()) return why;
    return wiring();
  }

 private:
  [[nodiscard]] std::string_view form() const { return list_ ? "a TE list" : "a table"; }
  // Returns " of rank 1", or nothing if there is only one rank.
  [[nodiscard]] std::string of_rank(std::size_t r) const {
    return schedule_.ranks.size() == 1 ? "" : fmt::format(" of rank {}", r);
  }
  [[nodiscard]] static Inexpressible droppable(std::string reason, std::optional<Span> span = {}) {
    return {.reason = std::move(reason), .span = span, .droppable = true};
  }
  [[nodiscard]] Inexpressible number(const std::string& of, std::int64_t declared,
                                     std::int64_t shown) const {
    return droppable(fmt::format("{} does not say how many {} (declared {}, shown {})", form(), of,
                                 declared, shown));
  }

  [[nodiscard]] Reason layers_of(std::size_t r) const {
    const RankOrder& rank = schedule_.ranks[r];
    if (says_nothing_new(rank.layers, rank.chunks)) return std::nullopt;
    return droppable(fmt::format("{} does not say how many layers a chunk has", form()));
  }

  // An undeclared chunk is one that runs, so the text shows it.
  [[nodiscard]] Reason chunks_of(std::size_t r) const {
    const RankOrder& rank = schedule_.ranks[r];
    const std::int32_t shown = again_.schedule.ranks[r].chunks;
    if (!rank.chunks_declared) return std::nullopt;
    if (rank.chunks != shown) return number("chunks there are" + of_rank(r), rank.chunks, shown);
    if (shown > 0) return std::nullopt;
    return droppable(
        fmt::format("{} does not say that there are to be no chunks{}", form(), of_rank(r)));
  }

  // Returns the position of the chunk of the text that is this chunk of the schedule; nullopt if it
  // does not run.
  [[nodiscard]] std::optional<std::size_t> chunk_again(std::size_t r, std::size_t chunk) const {
    const RankOrder& again = again_.schedule.ranks[r];
    if (list_) {
      return chunk < as_index(again.chunks) ? std::optional(chunk) : std::nullopt;
    }
    const std::int32_t stage = schedule_.topology == Topology::Independent
                                   ? static_cast<std::int32_t>(chunk)
                                   : schedule_.ranks[r].stages[chunk];
    const auto at = std::find(again.stages.begin(), again.stages.end(), stage);
    if (at == again.stages.end()) return std::nullopt;
    return as_index(at - again.stages.begin());
  }

  [[nodiscard]] Reason delay_of(std::size_t r) const {
    const RankOrder& rank = schedule_.ranks[r];
    if (!rank.delay) return std::nullopt;
    if (rank.delay->size() != as_index(rank.chunks)) {
      return number("chunks may delay their weight gradients" + of_rank(r),
                    static_cast<std::int64_t>(rank.delay->size()), rank.chunks);
    }
    const std::vector<Delay> declared = as_halves_say(rank);
    const std::vector<Delay> shown = resolved_delay(again_.schedule.ranks[r]);
    for (std::size_t chunk = 0; chunk < declared.size(); ++chunk) {
      const auto at = chunk_again(r, chunk);
      if (!at || declared[chunk] == shown[*at]) continue;
      return droppable(
          fmt::format("{} says by its entries alone whether chunk {}{} delays its weight "
                      "gradients, and it is declared otherwise",
                      form(), chunk + 1, of_rank(r)),
          first_backward(rank, static_cast<std::int32_t>(chunk) + 1));
    }
    return std::nullopt;
  }

  // Returns the declared delay, except that a mixed chunk counts as Always if every backward is
  // split and as Never if none is. A chunk that always delays and yet has an I counts as Mixed,
  // since no table means both its B and its I as input halves.
  [[nodiscard]] static std::vector<Delay> as_halves_say(const RankOrder& rank) {
    std::vector<Delay> delay = *rank.delay;
    std::vector<bool> whole(delay.size());
    std::vector<bool> split(delay.size());
    std::vector<bool> named(delay.size());  // whether its input halves are I
    for (const Entry& entry : rank.order) {
      const std::size_t chunk = entry.chunk.index();
      if (!is_compute(entry.kind) || chunk >= delay.size()) continue;
      if (entry.kind == Kind::Backward) whole[chunk] = true;
      if (entry.kind == Kind::BackwardInput) named[chunk] = true;
      if (entry.kind == Kind::BackwardInput || entry.kind == Kind::BackwardWeight)
        split[chunk] = true;
    }
    for (std::size_t chunk = 0; chunk < delay.size(); ++chunk) {
      if (delay[chunk] == Delay::Mixed && !(whole[chunk] && split[chunk])) {
        delay[chunk] = split[chunk] ? Delay::Always : Delay::Never;
      } else if (delay[chunk] == Delay::Always && named[chunk]) {
        delay[chunk] = Delay::Mixed;
      }
    }
    return delay;
  }

  [[nodiscard]] static std::optional<Span> first_backward(const RankOrder& rank,
                                                          std::int32_t chunk) {
    const auto at = std::find_if(rank.order.begin(), rank.order.end(), [&](const Entry& entry) {
      return entry.chunk == chunk && is_compute(entry.kind) && entry.kind != Kind::Forward;
    });
    return at == rank.order.end() ? std::nullopt : std::optional(at->span());
  }

  [[nodiscard]] Reason microbatches() const {
    if (!schedule_.microbatches) return std::nullopt;
    const CheckOptions options;
    const std::int32_t shown = Context(again_, options).microbatches();
    if (shown == *schedule_.microbatches) return std::nullopt;
    return number("microbatches the step has", *schedule_.microbatches, shown);
  }

  // A list wires no chunks, and the number of stages matters only to chunks that are wired.
  [[nodiscard]] Reason stages() const {
    if (!schedule_.stages || list_) return std::nullopt;
    std::int32_t shown = 0;
    for (const RankOrder& rank : again_.schedule.ranks) {
      for (const std::int32_t stage : rank.stages) shown = std::max(shown, stage + 1);
    }
    if (shown == *schedule_.stages) return std::nullopt;
    return number("stages the model has", *schedule_.stages, shown);
  }

  [[nodiscard]] Reason wiring() const {
    const bool wired = schedule_.topology != Topology::Independent;
    if (!list_ && schedule_.p2p) {
      return droppable("a table does not say that Megatron calls its transfers");
    }
    if (list_ && wired) {
      const auto broken =
          broken_in({.form = Form::OrderFile, .schedule = schedule_},
                    {Pass::Placement, Pass::Stages, Pass::Routing, Pass::Transfers});
      if (!broken) return std::nullopt;
      return droppable(fmt::format("a TE list does not say which stages its chunks are, and as "
                                   "those that are declared they break {}",
                                   broken->rule),
                       place_of(*broken));
    }
    if (list_ || wired) return std::nullopt;
    const auto broken = broken_in(again_, {Pass::Stages, Pass::Routing, Pass::Transfers});
    if (!broken) return std::nullopt;
    return droppable(
        fmt::format("the chunks of a table are stages, one behind the other, and as "
                    "those they break {}, which chunks that are not wired do not",
                    broken->rule));
  }

  [[nodiscard]] static std::optional<Span> place_of(const Diagnostic& finding) {
    return finding.labels.empty() ? std::nullopt : std::optional(finding.labels.front().span);
  }

  [[nodiscard]] static std::optional<Diagnostic> broken_in(const Input& input,
                                                           std::initializer_list<Pass> passes) {
    const CheckResult result = check(input);
    for (const Diagnostic& finding : result.diagnostics.kept()) {
      if (finding.severity != Severity::Error) continue;
      if (std::find(passes.begin(), passes.end(), find_rule(finding.rule)->pass) != passes.end())
        return finding;
    }
    return std::nullopt;
  }

  const Schedule& schedule_;
  const Input& again_;
  bool list_;
};

}  // namespace

std::optional<Inexpressible> left_out(const Schedule& schedule, const Input& again) {
  return Comparison(schedule, again).left_out();
}

namespace {

Result<std::string, Inexpressible> print_te(const RankOrder& rank, Beside beside) {
  if (rank.replay) {
    return Inexpressible{.reason = "a TE list holds one order, not a capture and a replay order"};
  }
  if (beside == Beside::Refuse && !rank.resets.empty()) {
    return Inexpressible{.reason = "a TE list has no notation for a reset",
                         .span = rank.resets.front().span,
                         .droppable = true};
  }
  auto list = to_te_list(rank, rank.order, beside);
  if (!list) return list.error();
  return print_te_list(*list);
}

// The lists of several ranks stand a line each, which is how their reader takes them.
Result<std::string, Inexpressible> print_te(const Schedule& schedule, Beside beside) {
  std::string text;
  for (const RankOrder& rank : schedule.ranks) {
    auto list = print_te(rank, beside);
    if (!list) return list;
    text += *list;
  }
  return text;
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

// Refuses a rank without stages that is not declared to hold none: capo's own forms would declare
// it.
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

// Refuses idle slots in a table with transfers, where an empty cell is a fault.
std::optional<Inexpressible> faulty_cell(const Schedule& schedule, const Input& again) {
  if (again.cell_faults.empty()) return std::nullopt;
  const auto& order = schedule.ranks[as_index(again.cell_faults.front().rank)].order;
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
  // only some of its microbatches. One form may take more bytes than another, so the limit on bytes
  // grows with the text.
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
