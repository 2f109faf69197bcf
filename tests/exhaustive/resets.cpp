// All sound orders of a size in which graphs are reset at one place or two, under every name: all
// of the rank, a chunk, one microbatch of a chunk, and one chunk and one microbatch that there are
// not.
//
//   F1.0 F1.1 reset1.0 B1.0 B1.1        Y04 at B1.0: its graph went with F1.0's
//
// Under plan te sends stand among the entries, so that what lies in the pool of the graphs is sent
// behind the last of them (Y02). The oracle says of each entry and each reset what is wrong with
// it; the first that is an error is the answer. Of an order that is accepted the resets that do
// nothing have to be as many as warnings. Quick: orders without weight gradients of one chunk and
// of two.

#include "testing/oracle/resets.h"
#include "core/rules/check.h"
#include "core/text/order_text.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::exhaustive {

namespace {

using oracle::ResetFault;

// The kinds of tokens of a size: token kind * chunks + chunk - 1. Sends are judged under plan te.
struct Tokens {
  std::vector<Kind> kinds;
  Needs needs;
};

Tokens computations(const Size& size) {
  std::vector<Kind> kinds{Kind::Forward, Kind::Backward};
  if (size.weights) kinds.push_back(Kind::BackwardWeight);
  return {.kinds = std::move(kinds), .needs = needs_of_each_chunk(size)};
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

class OneRank {
 public:
  OneRank(const Size& size, std::vector<Kind> kinds) : size_(size), kinds_(std::move(kinds)) {
    input.form = Form::OrderFile;
    input.schedule = {.naming = Naming::Named,
                      .microbatches = size.microbatches,
                      .ranks = std::vector<RankOrder>(1)};
    RankOrder& rank = input.schedule.ranks.front();
    rank.chunks = size.chunks;
    rank.chunks_declared = true;
    rank.delay.emplace(static_cast<std::size_t>(size.chunks),
                       size.weights ? Delay::Always : Delay::Never);
  }

  void take(const std::vector<std::size_t>& tokens) {
    std::vector<Entry>& order = input.schedule.ranks.front().order;
    std::vector<int> next(kinds_.size() * static_cast<std::size_t>(size_.chunks));
    order.clear();
    for (const std::size_t token : tokens) {
      const auto chunks = static_cast<std::size_t>(size_.chunks);
      order.push_back({.chunk = static_cast<std::int32_t>(token % chunks) + 1,
                       .microbatch = next[token]++,
                       .length = 1,
                       .kind = kinds_[token / chunks]});
    }
  }

  // Entries and resets stand in the text in the order in which they come.
  void put(const std::vector<Reset>& resets) {
    RankOrder& rank = input.schedule.ranks.front();
    rank.resets = resets;
    steps.clear();
    auto reset = rank.resets.begin();
    const auto put_resets = [&](std::size_t up_to) {
      for (; reset != rank.resets.end() && reset->behind <= up_to; ++reset) {
        reset->span = {.offset = place(), .length = 1};
        const bool all = reset->chunk == Reset::kAllChunks;
        steps.push_back({.kind = oracle::OfResets::Reset,
                         .chunk = all ? oracle::OfResets::kAll : std::int32_t{reset->chunk},
                         .microbatch = reset->microbatch});
      }
    };
    for (std::size_t at = 0; at < rank.order.size(); ++at) {
      put_resets(at);
      rank.order[at].offset = place();
      steps.push_back({.kind = kind_of(rank.order[at].kind),
                       .chunk = rank.order[at].chunk,
                       .microbatch = rank.order[at].microbatch});
    }
    put_resets(rank.order.size());
  }

  Input input;
  std::vector<oracle::OfResets> steps;

 private:
  [[nodiscard]] std::uint32_t place() const { return static_cast<std::uint32_t>(steps.size()); }

  Size size_;
  std::vector<Kind> kinds_;
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

class Resets {
 public:
  Resets(const Size& size, Tokens tokens, CheckOptions declared, const Options& options)
      : comparison_(fmt::format("resets in orders of {}{}", name_of(size),
                                declared.plan.kind ? " that send" : ""),
                    options),
        declared_(std::move(declared)),
        judge_({.options = declared_}, options),
        needs_(std::move(tokens.needs)),
        rank_(size, std::move(tokens.kinds)),
        names_(names_of_resets(size)) {}

  bool run(const Size& size, Most most) {
    Interleavings(needs_, size.microbatches).for_each([&](const std::vector<std::size_t>& tokens) {
      rank_.take(tokens);
      compare({});
      for_each_reset(0, [&](const Reset& one) {
        compare({one});
        if (most == Most::One) return;
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
    const auto entries =
        static_cast<std::uint32_t>(rank_.input.schedule.ranks.front().order.size());
    for (; behind <= entries && !comparison_.stopped(); ++behind) {
      for (Reset name : names_) {
        name.behind = behind;
        visit(name);
      }
    }
  }

  void compare(const std::vector<Reset>& resets) {
    if (!comparison_.mine()) return;
    rank_.put(resets);
    const std::vector<ResetFault> faults = oracle::faults_of_resets(rank_.steps);
    const Answer expected = first_of(rank_.steps, faults);
    const auto again =
        static_cast<std::size_t>(std::count(faults.begin(), faults.end(), ResetFault::Again));
    again_ += again;
    Answer answer = judge_.of(rank_.input);
    if (answer.accepted() && check(rank_.input, declared_).diagnostics.kept().size() != again)
      answer = {.rule = "other warnings"};
    comparison_.compare(answer, expected, [&] { return print_order_file(rank_.input.schedule); });
  }

  Comparison comparison_;
  CheckOptions declared_;
  Judge judge_;
  Needs needs_;
  OneRank rank_;
  std::vector<Reset> names_;
  std::uint64_t again_ = 0;
};

bool compare(const Size& size, Most most, const Options& options) {
  return Resets(size, computations(size), {}, options).run(size, most);
}

bool compare_with_sends(const Size& size, Most most, const Options& options) {
  CheckOptions te;
  te.plan = {.kind = PlanKind::Te, .aliases = Aliases{}};
  return Resets(size, with_sends(size), std::move(te), options).run(size, most);
}

struct Scope {
  bool (*compare)(const Size&, Most, const Options&);
  Size size;
  Most most;
};

const std::vector<Scope>& scopes(Effort effort) {
  static const std::vector<Scope> quick{{compare, {1, 2, false}, Most::Two},
                                        {compare, {2, 1, false}, Most::Two},
                                        {compare_with_sends, {1, 1, false}, Most::Two}};
  static const std::vector<Scope> whole{{compare, {1, 2, false}, Most::Two},
                                        {compare, {2, 1, false}, Most::Two},
                                        {compare, {1, 2, true}, Most::Two},
                                        {compare, {2, 1, true}, Most::Two},
                                        {compare, {1, 3, false}, Most::Two},
                                        {compare, {2, 2, false}, Most::One},
                                        {compare_with_sends, {1, 1, false}, Most::Two},
                                        {compare_with_sends, {1, 2, false}, Most::One},
                                        {compare_with_sends, {2, 1, false}, Most::One}};
  return effort == Effort::Quick ? quick : whole;
}

}  // namespace

bool resets(const Options& options) {
  bool agree = true;
  for (const Scope& scope : scopes(options.effort)) {
    agree = scope.compare(scope.size, scope.most, options) && agree;
    if (!agree && options.stop_at_first) return false;
  }
  return agree;
}

}  // namespace capo::exhaustive
