#include "core/convert/left_out.h"

#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace capo {

namespace {

using Reason = std::optional<Inexpressible>;

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
  // " of rank 1", where there are several.
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

  // A chunk that is not declared is one that runs, by whatever name.
  [[nodiscard]] Reason chunks_of(std::size_t r) const {
    const RankOrder& rank = schedule_.ranks[r];
    const std::int32_t shown = again_.schedule.ranks[r].chunks;
    if (!rank.chunks_declared) return std::nullopt;
    if (rank.chunks != shown) return number("chunks there are" + of_rank(r), rank.chunks, shown);
    if (shown > 0) return std::nullopt;
    return droppable(
        fmt::format("{} does not say that there are to be no chunks{}", form(), of_rank(r)));
  }

  // The chunk of the text that is a chunk of the schedule; nothing where it does not run.
  [[nodiscard]] std::optional<std::size_t> chunk_again(std::size_t r, std::size_t chunk) const {
    const RankOrder& again = again_.schedule.ranks[r];
    if (list_) {
      return chunk < static_cast<std::size_t>(again.chunks) ? std::optional(chunk) : std::nullopt;
    }
    const std::int32_t stage = schedule_.topology == Topology::Independent
                                   ? static_cast<std::int32_t>(chunk)
                                   : schedule_.ranks[r].stages[chunk];
    const auto at = std::find(again.stages.begin(), again.stages.end(), stage);
    if (at == again.stages.end()) return std::nullopt;
    return static_cast<std::size_t>(at - again.stages.begin());
  }

  [[nodiscard]] Reason delay_of(std::size_t r) const {
    const RankOrder& rank = schedule_.ranks[r];
    if (!rank.delay) return std::nullopt;
    if (rank.delay->size() != static_cast<std::size_t>(rank.chunks)) {
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

  // What is declared; but of a mixed chunk that takes all of its backwards apart, or none, that. An
  // I of a chunk whose B is the half already is what no table means by its halves.
  [[nodiscard]] static std::vector<Delay> as_halves_say(const RankOrder& rank) {
    std::vector<Delay> delay = *rank.delay;
    std::vector<bool> whole(delay.size());
    std::vector<bool> split(delay.size());
    std::vector<bool> named(delay.size());  // its input halves are I
    for (const Entry& entry : rank.order) {
      const auto chunk = static_cast<std::size_t>(entry.chunk) - 1;
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

  // Of chunks that are not wired their number is not looked at, and a list wires none.
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

}  // namespace capo
