// All sound orders of a size in which graphs are reset at one place or two, under every name: all
// of the rank, a chunk, one microbatch of a chunk, and one chunk and one microbatch that there are
// not.
//
//   F1.0 F1.1 reset1.0 B1.0 B1.1        Y04 at B1.0: its graph went with F1.0's
//
// Under plan te sends stand among the entries, so that what lies in the pool of the graphs is sent
// behind the last of them (Y02). The oracle says of each entry and each reset what is wrong with
// it; the first that is an error is the answer. Of an order that is accepted the resets that do
// nothing have to be as many as warnings. Under plan safe the pool is nobody's that sends. Some
// sizes are replayed in every order and captured in one: resets stand in the replay. Quick: orders
// without weight gradients of one chunk and of two.

#include "testing/oracle/resets.h"
#include "core/rules/check.h"
#include "core/text/order_text.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/one_rank.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::exhaustive {

namespace {

using oracle::ResetFault;

// The kinds of tokens of a size: token kind * chunks + chunk - 1. Sends are judged under a plan.
struct Tokens {
  std::vector<Kind> kinds;
  Needs needs;
};

Tokens computations(const Size& size) {
  return {.kinds = computations_of(size), .needs = needs_of_each_chunk(size)};
}

Tokens with_sends(const Size& size) {
  Tokens tokens = computations(size);
  const auto chunks = static_cast<std::size_t>(size.chunks);
  for (const Kind kind : {Kind::SendForward, Kind::SendBackward}) {
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      tokens.needs.push_back({kind == Kind::SendForward ? chunk : chunks + chunk});
    tokens.kinds.push_back(kind);
  }
  return tokens;
}

oracle::OfResets::Kind kind_of(Kind kind) {
  switch (kind) {
    case Kind::Backward:
      return oracle::OfResets::Backward;
    case Kind::SendForward:
      return oracle::OfResets::SendOutput;
    case Kind::SendBackward:
      return oracle::OfResets::SendGradient;
    default:
      return oracle::OfResets::Replay;
  }
}

// A reset can name these in an order of this size.
std::vector<Reset> names_of_resets(const Size& size) {
  std::vector<Reset> names{Reset{}};
  for (std::int32_t chunk = 1; chunk <= size.chunks + 1; ++chunk) {
    names.push_back({.chunk = chunk});
    for (std::int32_t m = 0; m < size.microbatches && chunk <= size.chunks; ++m)
      names.push_back({.chunk = chunk, .microbatch = m});
  }
  names.push_back({.chunk = 1, .microbatch = size.microbatches});
  return names;
}

// A replay runs the order that is captured, or another than the first that there is.
enum class Replayed : std::uint8_t { AsCaptured, InAnotherOrder };

// One rank's replayed entries, with resets among them.
class WithResets {
 public:
  WithResets(const Size& size, std::vector<Kind> kinds) : rank(size, std::move(kinds)) {}

  // Entries and resets stand in the text in the order in which they come.
  void put(const std::vector<Reset>& resets) {
    RankOrder& of = rank.rank();
    std::vector<Entry>& entries = rank.replayed();
    of.resets = resets;
    steps.clear();
    auto reset = of.resets.begin();
    const auto put_resets = [&](std::size_t up_to) {
      for (; reset != of.resets.end() && reset->behind <= up_to; ++reset) {
        reset->span = {.offset = place(), .length = 1};
        const bool all = reset->chunk == Reset::kAllChunks;
        steps.push_back({.kind = oracle::OfResets::Reset,
                         .chunk = all ? oracle::OfResets::kAll : std::int32_t{reset->chunk},
                         .microbatch = reset->microbatch});
      }
    };
    for (std::size_t at = 0; at < entries.size(); ++at) {
      put_resets(at);
      entries[at].offset = place();
      steps.push_back({.kind = kind_of(entries[at].kind),
                       .chunk = entries[at].chunk,
                       .microbatch = entries[at].microbatch});
    }
    put_resets(entries.size());
  }

  OneRank rank;
  std::vector<oracle::OfResets> steps;

 private:
  [[nodiscard]] std::uint32_t place() const { return static_cast<std::uint32_t>(steps.size()); }
};

std::string_view rule_of(ResetFault fault) {
  if (fault == ResetFault::After) return "Y03";
  if (fault == ResetFault::CutShort) return "Y04";
  if (fault == ResetFault::Sent) return "Y02";
  return fault == ResetFault::NoGraph ? "Y05" : "";
}

// A reset is no entry, and stands nowhere among them.
Answer first_of(const std::vector<oracle::OfResets>& steps, const std::vector<ResetFault>& faults) {
  int entries = 0;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const std::string_view rule = rule_of(faults[at]);
    const bool reset = steps[at].kind == oracle::OfResets::Reset;
    if (!rule.empty()) return {.rule = rule, .position = reset ? Answer::kNowhere : entries};
    entries += reset ? 0 : 1;
  }
  return {};
}

// How many resets are put into an order.
enum class Most : std::uint8_t { One, Two };

// A scope says what is compared of a size.
struct Scope {
  Size size;
  Most most = Most::One;
  Replayed replayed = Replayed::AsCaptured;
  std::optional<PlanKind> plan = std::nullopt;  ///< with one there are sends
};

std::string name_of(const Scope& scope) {
  const bool safe = scope.plan == PlanKind::Safe;
  return fmt::format(
      "resets in {} of {}{}{}", scope.replayed == Replayed::InAnotherOrder ? "replays" : "orders",
      name_of(scope.size), scope.plan ? " that send" : "", safe ? " under plan safe" : "");
}

CheckOptions declared_in(const Scope& scope) {
  CheckOptions declared;
  if (scope.plan) declared.plan = {.kind = *scope.plan, .aliases = Aliases{}};
  return declared;
}

class Resets {
 public:
  Resets(const Scope& scope, Tokens tokens, const Options& options)
      : scope_(scope),
        comparison_(name_of(scope), options),
        declared_(declared_in(scope)),
        judge_({.options = declared_}, options),
        needs_(std::move(tokens.needs)),
        rank_(scope.size, std::move(tokens.kinds)),
        names_(names_of_resets(scope.size)) {}

  bool run() {
    bool first = true;
    Interleavings(needs_, scope_.size.microbatches)
        .for_each([&](const std::vector<std::size_t>& tokens) {
          if (scope_.replayed == Replayed::AsCaptured || first) rank_.rank.capture(tokens);
          if (scope_.replayed == Replayed::InAnotherOrder) rank_.rank.replay(tokens);
          first = false;
          compare({});
          for_each_reset(0, [&](const Reset& one) {
            compare({one});
            if (scope_.most == Most::One) return;
            for_each_reset(one.behind, [&](const Reset& other) { compare({one, other}); });
          });
          return !comparison_.stopped();
        });
    comparison_.note("resets that do nothing:", again_);
    return comparison_.finish();
  }

 private:
  template <typename Visit>
  void for_each_reset(std::uint32_t behind, Visit visit) {
    const auto entries = static_cast<std::uint32_t>(rank_.rank.replayed().size());
    for (; behind <= entries && !comparison_.stopped(); ++behind) {
      for (Reset name : names_) {
        name.behind = behind;
        visit(name);
      }
    }
  }

  // Only TransformerEngine's graphs own the memory that is sent.
  [[nodiscard]] std::vector<ResetFault> expected_faults() const {
    std::vector<ResetFault> faults = oracle::faults_of_resets(rank_.steps);
    if (scope_.plan != PlanKind::Te)
      std::replace(faults.begin(), faults.end(), ResetFault::Sent, ResetFault::None);
    return faults;
  }

  // A replay in another order is warned of, and of memory that it reads too late.
  [[nodiscard]] std::size_t warnings() const {
    const CheckResult result = check(rank_.rank.input, declared_);
    const auto& kept = result.diagnostics.kept();
    return static_cast<std::size_t>(
        std::count_if(kept.begin(), kept.end(), [&](const Diagnostic& finding) {
          return scope_.replayed == Replayed::AsCaptured || finding.rule == "Y05";
        }));
  }

  void compare(const std::vector<Reset>& resets) {
    if (!comparison_.mine()) return;
    rank_.put(resets);
    const std::vector<ResetFault> faults = expected_faults();
    const Answer expected = first_of(rank_.steps, faults);
    const auto again =
        static_cast<std::size_t>(std::count(faults.begin(), faults.end(), ResetFault::Again));
    again_ += again;
    Answer answer = judge_.of(rank_.rank.input);
    if (answer.accepted() && warnings() != again) answer = {.rule = "other warnings"};
    comparison_.compare(answer, expected,
                        [&] { return print_order_file(rank_.rank.input.schedule); });
  }

  Scope scope_;
  Comparison comparison_;
  CheckOptions declared_;
  Judge judge_;
  Needs needs_;
  WithResets rank_;
  std::vector<Reset> names_;
  std::uint64_t again_ = 0;
};

bool compare(const Scope& scope, const Options& options) {
  return Resets(scope, scope.plan ? with_sends(scope.size) : computations(scope.size), options)
      .run();
}

std::vector<Scope> scopes(Effort effort) {
  constexpr auto kCaptured = Replayed::AsCaptured;
  std::vector<Scope> scopes{{{1, 2, false}, Most::Two},
                            {{2, 1, false}, Most::Two},
                            {{1, 2, false}, Most::Two, Replayed::InAnotherOrder},
                            {{1, 1, false}, Most::Two, kCaptured, PlanKind::Te},
                            {{1, 1, false}, Most::Two, kCaptured, PlanKind::Safe},
                            {{1, 2, false}, Most::One, kCaptured, PlanKind::Te}};
  if (effort == Effort::Quick) return scopes;
  scopes.push_back({{1, 2, true}, Most::Two});
  scopes.push_back({{2, 1, true}, Most::Two});
  scopes.push_back({{1, 3, false}, Most::Two});
  scopes.push_back({{2, 2, false}});
  scopes.push_back({{1, 3, false}, Most::One, Replayed::InAnotherOrder});
  scopes.push_back({{2, 1, true}, Most::One, Replayed::InAnotherOrder});
  scopes.push_back({{2, 1, false}, Most::One, kCaptured, PlanKind::Te});
  scopes.push_back({{2, 1, false}, Most::One, kCaptured, PlanKind::Safe});
  return scopes;
}

}  // namespace

bool resets(const Options& options) {
  bool agree = true;
  for (const Scope& scope : scopes(options.effort)) {
    agree = compare(scope, options) && agree;
    if (!agree && options.stop_at_first) return false;
  }
  return agree;
}

}  // namespace capo::exhaustive
