#include "core/rules/verdicts.h"

#include "core/base/index.h"
#include "core/diag/diagnostics.h"
#include "core/plan/buffer_kind.h"
#include "core/rules/check.h"
#include "core/rules/context.h"
#include "core/rules/families.h"
#include "core/rules/passes.h"
#include "core/rules/undeclared.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace capo {

namespace {

// The finding of the rules of shape about a list of which only the microbatches are declared, if
// the tallies alone say it.
//
// Counts only from where the list differs from the one before: an enumeration or a search changes
// the end of a list more often than its beginning.
class Shape {
 public:
  enum class Says : std::uint8_t { Nothing, Ahead, AskTheRules };

  [[nodiscard]] Says judge(std::span<const TeEntry> list,
                           std::optional<std::int32_t> microbatches) {
    const std::size_t alike = alike_from_the_beginning(list);
    while (counted_.size() > alike) forget_last();
    for (const TeEntry& entry : list.subspan(alike)) {
      if (!count(entry)) return Says::AskTheRules;
    }
    if (!fits(microbatches)) return Says::AskTheRules;
    return ahead_ == kNone ? Says::Nothing : Says::Ahead;
  }

  /// The position of the first entry that is ahead; kNone if there is none.
  [[nodiscard]] std::size_t ahead() const { return ahead_; }
  [[nodiscard]] Kind kind_ahead() const { return counted_[ahead_].kind; }

 private:
  struct Counted {
    double value;
    NumberType type;
    Kind kind;
    std::int16_t chunk;
    std::int16_t chunks;  // the largest up to here
  };

  [[nodiscard]] std::size_t alike_from_the_beginning(std::span<const TeEntry> list) const {
    const std::size_t most = std::min(list.size(), counted_.size());
    std::size_t at = 0;
    while (at < most && counted_[at].value == list[at].value && counted_[at].type == list[at].type)
      ++at;
    return at;
  }

  [[nodiscard]] ChunkTally& tally(std::int32_t chunk) { return tally_[ChunkId(chunk).index()]; }

  // Counts an entry, and returns whether it could.
  [[nodiscard]] bool count(const TeEntry& entry) {
    const Action action = read_te_entry(entry);
    if (action.kind == Kind::Idle || action.chunk > kMostChunks) return false;
    ChunkTally& of_chunk = tally(action.chunk);
    if (ahead_ == kNone && of_chunk.lacks_need_of_next(action.kind)) ahead_ = counted_.size();
    of_chunk.add(action.kind);
    const auto chunk = static_cast<std::int16_t>(action.chunk);
    counted_.push_back({.value = entry.value,
                        .type = entry.type,
                        .kind = action.kind,
                        .chunk = chunk,
                        .chunks = std::max(chunk, chunks())});
    return true;
  }

  void forget_last() {
    tally(counted_.back().chunk).take_back(counted_.back().kind);
    counted_.pop_back();
    if (ahead_ == counted_.size()) ahead_ = kNone;
  }

  [[nodiscard]] std::int16_t chunks() const {
    return counted_.empty() ? std::int16_t{0} : counted_.back().chunks;
  }

  // Every chunk has every microbatch forward and backward once, and all weight gradients or none.
  [[nodiscard]] bool fits(std::optional<std::int32_t> microbatches) const {
    const std::int32_t expected = microbatches.value_or(tally_[0].forwards);
    bool fits = expected > 0;
    for (std::int16_t chunk = 0; chunk < chunks(); ++chunk) {
      const ChunkTally& tally = tally_[as_index(chunk)];
      fits = fits && tally.forwards == expected && tally.backwards == expected &&
             (tally.weights == expected || tally.weights == 0);
    }
    return fits && chunks() > 0;
  }

  static constexpr std::int32_t kMostChunks = 32;  // beyond, nobody enumerates
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::vector<Counted> counted_;
  std::array<ChunkTally, kMostChunks> tally_{};
  std::size_t ahead_ = kNone;
};

// Whether nothing is declared of the chunks of a list.
bool bare(const TeDeclarations& declared) {
  const bool layers =
      declared.layers.form == Layers::Form::List || declared.layers.form == Layers::Form::Count;
  return !layers && !declared.delayed && !declared.need_wgrad;
}

// Whether a list can have errors of nothing but its shape.
bool shape_alone(const Verdicts::Declared& declared) {
  const CheckOptions& options = declared.options;
  return declared.topology == Topology::Independent && options.groups.empty() &&
         !options.environment.has_weight_stream() && options.modules.layers.empty() &&
         !options.plan.kind;
}

Verdicts::Declared with_findings_alone(Verdicts::Declared declared) {
  declared.options.findings_alone = true;
  return declared;
}

// The entry of an input that has this place in its text.
std::optional<Place> entry_at(const Input& input, Span place) {
  // Every odd entry is an error, before all others.
  if (!input.odd_entries.empty()) return Place{.rank = 0, .index = input.odd_entries.front()};
  for (std::size_t r = 0; r < input.schedule.ranks.size(); ++r) {
    const std::vector<Entry>& order = input.schedule.ranks[r].order;
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (order[at].span() == place)
        return Place{.rank = static_cast<std::int32_t>(r), .index = at};
    }
  }
  return std::nullopt;
}

}  // namespace

class Verdicts::State {
 public:
  explicit State(Declared declared)
      : declared_(with_findings_alone(std::move(declared))),
        bare_(bare(declared_.list) && declared_.options.modules.layers.empty()),
        shape_alone_(shape_alone(declared_)),
        reader_(declared_.list),
        context_(input_, declared_.options) {
    input_.schedule.topology = declared_.topology;
  }

  FirstFinding of(std::span<const TeEntry> list) {
    // A plan that would be too large is an error of the input as a whole.
    const bool small = list.size() < declared_.options.plan.max_buffers / kBufferKinds;
    if (bare_ && small) {
      const Shape::Says says = shape_.judge(list, declared_.list.microbatches);
      if (says == Shape::Says::Ahead) {
        return {.verdict = Verdict::Rejected,
                .rule = shape_.kind_ahead() == Kind::Backward ? rules::kBackwardAhead
                                                              : rules::kWeightAhead,
                .place = Place{.rank = 0, .index = shape_.ahead()}};
      }
      if (says == Shape::Says::Nothing && shape_alone_) return {.verdict = Verdict::Accepted};
    }
    read(list);
    context_.look_again();
    return judge(context_, [](Span place) { return Place{.rank = 0, .index = place.offset}; });
  }

  FirstFinding of(const Input& input) {
    if (has_undeclared(input.schedule, declared_.options.environment)) {
      return under_every_value(input);
    }
    const Context context(input, declared_.options);
    return judge(context, [&input](Span place) { return entry_at(input, place); });
  }

 private:
  // Each entry stands where it is counted.
  void read(std::span<const TeEntry> list) {
    std::vector<TeEntry>& entries = input_.te_list.entries;
    entries.assign(list.begin(), list.end());
    for (std::size_t at = 0; at < entries.size(); ++at) {
      entries[at].offset = static_cast<std::uint32_t>(at);
      entries[at].length = 1;
    }
    TeReading reading =
        reader_.read(entries, {std::move(input_.schedule), std::move(input_.odd_entries)});
    input_.schedule = std::move(reading.schedule);
    input_.odd_entries = std::move(reading.odd_entries);
    place_stages(input_.schedule);
  }

  FirstFinding under_every_value(const Input& input) const {
    const CheckResult result = check(input, declared_.options);
    FirstFinding finding{.verdict = result.verdict};
    const Diagnostic* first = result.diagnostics.foremost();
    if (first == nullptr || first->severity != Severity::Error) return finding;
    finding.rule = first->rule;
    if (!first->labels.empty()) finding.place = entry_at(input, first->labels.front().span);
    return finding;
  }

  template <typename PlaceOf>
  FirstFinding judge(const Context& context, PlaceOf place_of) {
    out_.clear();
    Passes passes(context, out_);
    passes.run();
    FirstFinding finding{.verdict = passes.verdict()};
    if (!out_.first_error()) return finding;
    finding.rule = out_.first_error()->rule;
    if (out_.first_error()->place) finding.place = place_of(*out_.first_error()->place);
    return finding;
  }

  Declared declared_;
  bool bare_;
  bool shape_alone_;
  TeListReader reader_;
  Input input_;
  Context context_;
  Diagnostics out_ = Diagnostics::first_error_only();
  Shape shape_;
};

Verdicts::Verdicts(Declared declared) : state_(std::make_unique<State>(std::move(declared))) {
}
Verdicts::Verdicts(Verdicts&&) noexcept = default;
Verdicts& Verdicts::operator=(Verdicts&&) noexcept = default;
Verdicts::~Verdicts() = default;

FirstFinding Verdicts::of(std::span<const TeEntry> list) {
  return state_->of(list);
}

FirstFinding Verdicts::of(const Input& input) {
  return state_->of(input);
}

}  // namespace capo
