#include "core/minimise/minimise.h"

#include "core/base/index.h"
#include "core/input/load.h"
#include "core/minimise/edits.h"
#include "core/minimise/settle.h"
#include "core/minimise/size.h"
#include "core/rules/check.h"
#include "core/text/order_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace capo {

namespace {

// More parts than this make more than a few thousand pairs.
constexpr std::size_t kMostToPair = 64;

struct RankPart {
  std::size_t rank = 0;
};
struct MicrobatchPart {
  std::int32_t microbatch = 0;
};
using StructuralPart = std::variant<HeldChunk, MicrobatchPart, RankPart>;

std::optional<Schedule> without(const Schedule& schedule, const StructuralPart& part) {
  if (const auto* held = std::get_if<HeldChunk>(&part)) {
    return without_chunks(schedule, std::span(held, 1));
  }
  if (const auto* rank = std::get_if<RankPart>(&part)) {
    return without_ranks(schedule, rank->rank, rank->rank + 1);
  }
  return without_microbatches(schedule, std::array{std::get<MicrobatchPart>(part).microbatch});
}

// The later of two parts of one sort goes first, and a chunk goes before a rank, so that the number
// of the other part still means the same.
std::optional<Schedule> without(const Schedule& schedule, const StructuralPart& a,
                                const StructuralPart& b) {
  const bool same = a.index() == b.index();
  const auto once = without(schedule, same ? b : a);
  return once ? without(*once, same ? a : b) : std::nullopt;
}

std::vector<StructuralPart> parts_of(const Schedule& schedule, const MinimiseOptions& options) {
  std::vector<StructuralPart> parts;
  if (!options.fixed_chunks) {
    for (const HeldChunk& held : chunks_in(schedule)) parts.emplace_back(held);
  }
  for (const std::int32_t microbatch : microbatches_in(schedule)) {
    parts.emplace_back(MicrobatchPart{microbatch});
  }
  for (std::size_t r = options.fixed_ranks; r < schedule.ranks.size(); ++r) {
    parts.emplace_back(RankPart{r});
  }
  return parts;
}

// Returns the chunks and microbatches that run, each as its forward.
std::vector<Action> cells_of(const RankOrder& rank) {
  std::vector<Action> cells;
  for (const Entry& entry : rank.order) {
    if (!is_compute(entry.kind) || entry.microbatch == kNoMicrobatch) continue;
    cells.push_back({.kind = Kind::Forward, .chunk = entry.chunk, .microbatch = entry.microbatch});
  }
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

// The search of minimise(): which parts it tries to take away, and in which order.
//
// Structure goes first (ranks, microbatches, chunks, weight gradients), since that makes everything
// else cheap. Entries go when that is done, pairs only if nothing goes alone, and the order and the
// declarations are changed at last. As long as a round has helped there is another, since a swap
// may free what nothing could delete. Each step says whether it made the schedule smaller.
class Search {
 public:
  // Preconditions: `start` is settled and broken; `broken` and `options` outlive the search.
  Search(Schedule start, const StillBroken& broken, const MinimiseOptions& options)
      : schedule_(std::move(start)),
        size_(size_of(schedule_)),
        broken_(broken),
        options_(options) {}

  void run() {
    while (!at_limit_ && round()) {
    }
  }

  [[nodiscard]] Minimised result() && {
    return {.schedule = std::move(schedule_), .checks = checks_, .at_limit = at_limit_};
  }

 private:
  using Count = std::function<std::size_t(const Schedule&)>;
  using Without =
      std::function<std::optional<Schedule>(const Schedule&, std::size_t begin, std::size_t end)>;

  // Makes a smaller candidate the schedule if it is still broken.
  bool accept(std::optional<Schedule> candidate) {
    if (!candidate || at_limit_ || loses_a_fixed_chunk(*candidate)) return false;
    if (options_.fixed_topology && candidate->topology != schedule_.topology) return false;
    const Size size = size_of(*candidate);
    if (!(size < size_)) return false;
    if (checks_ == options_.max_checks) {
      at_limit_ = true;
      return false;
    }
    ++checks_;
    if (!broken_(*candidate)) return false;
    schedule_ = std::move(*candidate);
    size_ = size;
    return true;
  }

  // A chunk is gone with its last entry if nothing declares how many chunks there are.
  bool loses_a_fixed_chunk(const Schedule& candidate) const {
    return options_.fixed_chunks && candidate.ranks.size() == schedule_.ranks.size() &&
           !std::equal(candidate.ranks.begin(), candidate.ranks.end(), schedule_.ranks.begin(),
                       [](const RankOrder& a, const RankOrder& b) { return a.chunks == b.chunks; });
  }

  bool round() {
    bool helped = false;
    for (const auto step :
         {&Search::take_replay_away, &Search::take_resets_away, &Search::take_kinds_away,
          &Search::take_ranks_away, &Search::take_microbatches_away, &Search::take_chunks_away,
          &Search::take_weights_away}) {
      if ((this->*step)()) helped = true;
    }
    if (helped) return true;
    for (const auto step :
         {&Search::take_entries_away, &Search::take_pairs_away, &Search::keep_two_cells}) {
      if ((this->*step)()) return true;
    }
    for (const auto step :
         {&Search::drop_declarations, &Search::rename, &Search::swap_neighbours}) {
      if ((this->*step)()) helped = true;
    }
    return helped;
  }

  // Tries all parts, then halves, quarters and single ones, each time from behind, so that the
  // parts that stay keep low numbers.
  bool sweep(const Count& parts, const Without& without) {
    bool helped = false;
    for (std::size_t size = parts(schedule_); size >= 1 && !at_limit_; size /= 2) {
      std::size_t end = parts(schedule_);
      while (end > 0 && !at_limit_) {
        const std::size_t begin = end > size ? end - size : 0;
        if (accept(without(schedule_, begin, end))) helped = true;
        end = std::min(begin, parts(schedule_));
      }
    }
    return helped;
  }

  bool take_replay_away() {
    bool helped = false;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      if (!schedule_.ranks[r].replay) continue;
      Schedule captured = schedule_;
      captured.ranks[r].replay.reset();
      captured.ranks[r].resets.clear();
      settle(captured);
      Schedule replayed = schedule_;
      replayed.ranks[r].order = *std::exchange(replayed.ranks[r].replay, std::nullopt);
      settle(replayed);
      if (accept(std::move(captured)) || accept(std::move(replayed))) helped = true;
    }
    return helped;
  }

  // Tries to take away everything that is no computation, sort by sort.
  bool take_kinds_away() {
    using Goes = bool (*)(Kind);
    constexpr std::array<Goes, 4> kSorts{
        [](Kind kind) { return kind == Kind::Idle; },
        [](Kind kind) { return kind > Kind::CombineBackward && kind != Kind::Idle; },
        [](Kind kind) { return is_exchange(kind); },
        [](Kind kind) { return kind >= Kind::SendForward && kind <= Kind::ReceiveBackward; }};
    bool helped = false;
    for (const Goes goes : kSorts) {
      if (accept(without_entries(schedule_, [&](const Entry& entry) { return goes(entry.kind); })))
        helped = true;
    }
    return helped;
  }

  bool take_resets_away() { return sweep(resets_in, without_resets); }

  bool take_ranks_away() {
    const std::size_t fixed = std::min(options_.fixed_ranks, schedule_.ranks.size());
    return sweep([&](const Schedule& schedule) { return schedule.ranks.size() - fixed; },
                 [&](const Schedule& schedule, std::size_t begin, std::size_t end) {
                   return without_ranks(schedule, fixed + begin, fixed + end);
                 });
  }

  bool take_microbatches_away() {
    return sweep([](const Schedule& schedule) { return microbatches_in(schedule).size(); },
                 [](const Schedule& schedule, std::size_t begin, std::size_t end) {
                   const std::vector<std::int32_t> all = microbatches_in(schedule);
                   return without_microbatches(schedule,
                                               std::span(all).subspan(begin, end - begin));
                 });
  }

  bool take_chunks_away() {
    if (options_.fixed_chunks) return false;
    const bool layers =
        sweep([](const Schedule& schedule) { return layers_in(schedule).size(); },
              [](const Schedule& schedule, std::size_t begin, std::size_t end) {
                const std::vector<std::int32_t> all = layers_in(schedule);
                return without_layers(schedule, std::span(all).subspan(begin, end - begin));
              });
    const bool chunks =
        sweep([](const Schedule& schedule) { return chunks_in(schedule).size(); },
              [](const Schedule& schedule, std::size_t begin, std::size_t end) {
                const std::vector<HeldChunk> all = chunks_in(schedule);
                return without_chunks(schedule, std::span(all).subspan(begin, end - begin));
              });
    return layers || chunks;
  }

  bool take_weights_away() {
    return sweep([](const Schedule& schedule) { return schedule.ranks.size(); }, without_weights);
  }

  bool take_entries_away() {
    bool helped = false;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      for (const From from : {From::Both, From::Capture, From::Replay}) {
        if (from != From::Both && !schedule_.ranks[r].replay) continue;
        const auto entries = [&](const Schedule& schedule) {
          const RankOrder& rank = schedule.ranks[r];
          return from == From::Replay ? rank.replay->size() : rank.order.size();
        };
        const auto cut = [&](const Schedule& schedule, std::size_t begin,
                             std::size_t end) -> std::optional<Schedule> {
          Schedule shorter = without_entries(schedule, r, from, begin, end);
          if (!keeps_delays(schedule, shorter)) return std::nullopt;
          return shorter;
        };
        if (sweep(entries, cut)) helped = true;
      }
    }
    return helped;
  }

  bool take_pairs_away() {
    const std::vector<StructuralPart> parts = parts_of(schedule_, options_);
    if (parts.size() > kMostToPair) return false;
    for (std::size_t a = 0; a < parts.size(); ++a) {
      for (std::size_t b = a + 1; b < parts.size() && !at_limit_; ++b) {
        if (accept(without(schedule_, parts[a], parts[b]))) return true;
      }
    }
    return false;
  }

  // Two entries that hurt each other may be different microbatches of different chunks: then
  // neither a chunk nor a microbatch can go, and yet two cells are all that it takes. Pairs of one
  // chunk are tried first.
  bool keep_two_cells() {
    if (options_.fixed_chunks || schedule_.ranks.size() != 1) return false;
    const std::vector<Action> cells = cells_of(schedule_.ranks.front());
    if (cells.size() < 3 || cells.size() > kMostToPair) return false;
    for (const bool one_chunk : {true, false}) {
      for (std::size_t a = 0; a < cells.size(); ++a) {
        for (std::size_t b = a + 1; b < cells.size() && !at_limit_; ++b) {
          if ((cells[a].chunk == cells[b].chunk) != one_chunk) continue;
          if (accept(with_only(schedule_, cells[a], cells[b]))) return true;
        }
      }
    }
    return false;
  }

  // The candidates follow from the schedule, so each one that helps calls for new ones.
  bool try_each_of(std::vector<Schedule> (*candidates)(const Schedule&)) {
    bool helped = false;
    for (bool again = true; again && !at_limit_;) {
      again = false;
      for (Schedule& candidate : candidates(schedule_)) {
        again = accept(std::move(candidate));
        if (again) break;
      }
      helped = helped || again;
    }
    return helped;
  }

  bool drop_declarations() { return try_each_of(with_less_declared); }

  bool rename() { return try_each_of(renamings); }

  bool swap_neighbours() {
    bool helped = false;
    for (std::size_t r = 0; r < schedule_.ranks.size(); ++r) {
      if (swap_in(r, false)) helped = true;
      if (schedule_.ranks[r].replay && swap_in(r, true)) helped = true;
    }
    return helped;
  }

  // A swap may make room for the one before it, so it goes back a step.
  bool swap_in(std::size_t rank, bool replay) {
    bool helped = false;
    const std::size_t length =
        replay ? schedule_.ranks[rank].replay->size() : schedule_.ranks[rank].order.size();
    for (std::size_t at = 0; at + 1 < length && !at_limit_;) {
      const bool swapped = accept(with_neighbours_swapped(schedule_, rank, replay, at));
      if (swapped) helped = true;
      at = swapped && at > 0 ? at - 1 : at + 1;
    }
    return helped;
  }

  Schedule schedule_;
  Size size_;
  const StillBroken& broken_;
  const MinimiseOptions& options_;
  std::uint64_t checks_ = 0;
  bool at_limit_ = false;
};

bool breaks(const CheckResult& result, std::string_view rule, Severity at_least) {
  const auto& kept = result.diagnostics.kept();
  return std::any_of(kept.begin(), kept.end(), [&](const Diagnostic& finding) {
    return finding.rule == rule &&
           (finding.severity == Severity::Error || at_least == Severity::Warning);
  });
}

// Judges candidates. Each goes through its text, so that the check sees what the user will paste.
class Judge {
 public:
  Judge(const CheckOptions& declared, const Limits& limits, std::string_view rule,
        Severity at_least)
      : declared_(declared), limits_(limits), rule_(rule), at_least_(at_least) {}

  [[nodiscard]] bool broken(const Schedule& schedule) const {
    const auto input = read(print_order_file(schedule));
    return input && breaks(check(*input, declared_), rule_, at_least_);
  }

  [[nodiscard]] bool accepted(const Schedule& schedule) const {
    const auto input = read(print_order_file(schedule));
    return input && check(*input, declared_).verdict == Verdict::Accepted;
  }

  // The shapes of the edits that cure the rule; empty if it is not broken.
  [[nodiscard]] std::vector<std::string> cures(const Schedule& schedule) const {
    const auto input = read(print_order_file(schedule));
    if (!input) return {};
    const CheckResult found = check(*input, declared_);
    if (!breaks(found, rule_, at_least_)) return {};
    return cures_of(*input, found, rule_, [this](const std::string& text) {
      const auto edited = read(text);
      return edited ? std::optional(check(*edited, declared_)) : std::nullopt;
    });
  }

 private:
  [[nodiscard]] std::optional<Input> read(std::string text) const {
    auto input = load({.name = "minimal.order", .text = std::move(text)},
                      {.form = TextForm::OrderFile, .limits = limits_});
    return input ? std::optional(*std::move(input)) : std::nullopt;
  }

  const CheckOptions& declared_;
  const Limits& limits_;
  std::string_view rule_;
  Severity at_least_;
};

// The schedule that was meant is cut; it is returned as it was written.
std::optional<Minimised> minimise_around(const Schedule& schedule, const Judge& judge,
                                         MinimiseOptions options) {
  const Miswritten miswritten = miswritten_of(schedule, *options.mistake);
  // The chunk that was written by mistake has a number, which a deletion would change.
  options.fixed_chunks = options.fixed_chunks || miswritten.chunk.has_value();
  const auto broken = [&](const Schedule& meant) {
    const auto mistake = mistake_in(meant);
    return mistake && judge.broken(as_miswritten(meant, *mistake, miswritten)) &&
           judge.accepted(meant);
  };
  auto least = minimise(with_meant(schedule, *options.mistake), broken, options);
  if (!least) return std::nullopt;
  least->mistake = mistake_in(least->schedule);
  least->schedule = as_miswritten(std::move(least->schedule), *least->mistake, miswritten);
  return least;
}

std::optional<Minimised> minimise_with_its_cure(const Schedule& schedule, const Judge& judge,
                                                const MinimiseOptions& options) {
  Schedule start = schedule;
  settle(start);
  const std::vector<std::string> cures = judge.cures(start);
  if (cures.empty()) return std::nullopt;
  const auto broken = [&](const Schedule& candidate) {
    const std::vector<std::string> still = judge.cures(candidate);
    return std::find(still.begin(), still.end(), cures.front()) != still.end();
  };
  return minimise(start, broken, options);
}

std::size_t numbered_ranks(const CheckOptions& declared) {
  std::size_t ranks = declared.modules.layers.size();
  if (ranks == 1) ranks = 0;  // one row speaks for every rank
  for (const CollectiveGroup& group : declared.groups) {
    for (const std::int32_t member : group.members) ranks = std::max(ranks, as_index(member) + 1);
  }
  return ranks;
}

bool numbers_chunks(const Schedule& schedule, const CheckOptions& declared) {
  const auto& rows = declared.modules.layers;
  return !declared.plan.model_chunks.empty() ||
         std::any_of(schedule.ranks.begin(), schedule.ranks.end(),
                     [](const auto& rank) { return !rank.model_chunks.empty(); }) ||
         std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.size() > 1; });
}

}  // namespace

std::optional<Minimised> minimise(const Schedule& schedule, const StillBroken& broken,
                                  const MinimiseOptions& options) {
  Schedule start = schedule;
  settle(start);
  if (start.ranks.empty() || !broken(start)) return std::nullopt;
  Search search(std::move(start), broken, options);
  search.run();
  return std::move(search).result();
}

std::optional<Minimised> minimise(const Input& input, std::string_view rule,
                                  const CheckOptions& declared, MinimiseOptions options) {
  const CheckResult found = check(input, declared);
  if (!breaks(found, rule, Severity::Warning)) return std::nullopt;
  const Severity at_least =
      breaks(found, rule, Severity::Error) ? Severity::Error : Severity::Warning;
  options.fixed_ranks = std::max(options.fixed_ranks, numbered_ranks(declared));
  options.fixed_chunks = options.fixed_chunks || numbers_chunks(input.schedule, declared);
  const Judge judge(declared, options.limits, rule, at_least);
  if (options.mistake) return minimise_around(input.schedule, judge, options);
  if (options.same_cure) return minimise_with_its_cure(input.schedule, judge, options);
  const auto broken = [&](const Schedule& candidate) { return judge.broken(candidate); };
  return minimise(input.schedule, broken, options);
}

}  // namespace capo
