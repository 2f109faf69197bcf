// Who is hurt by TransformerEngine's reuse of buffers (plan te): of all sound orders with weight
// gradients of up to twelve entries, as bare lists whose weight gradients read both shared buffers,
// the incoming gradient alone, or copies; and of all executable chains of up to twelve entries and
// those of 2x3 and 3x2 with weight gradients and of 3x3 without, eighteen entries each, with both
// operands shared and what chunks hand back in the pool.
//
// The oracle gives out tagged cells and replays. Of bare lists it is the static input (B01) and the
// incoming gradient (B02) that are read too late, in chains what a chunk handed back (B03) as well.
// A finding stands at the reader. Published is how many of the orders that TransformerEngine
// captures are hurt, which tests/core/enumeration/hazards_test.cpp counts. Quick: bare lists of up
// to nine entries and chains of up to twelve.

#include <capo/testing/oracle/memory.h>
#include <capo/tests/exhaustive/comparison.h>
#include <capo/tests/exhaustive/judge.h>
#include <capo/tests/exhaustive/orders.h>
#include <capo/tests/exhaustive/scopes.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace capo::exhaustive {

namespace {

std::string_view rule_of(oracle::Misread::Operand operand) {
  switch (operand) {
    case oracle::Misread::Input:
      return "B01";
    case oracle::Misread::Gradient:
      return "B02";
    case oracle::Misread::HandedBack:
      break;
  }
  return "B03";
}

bool reads(const Aliases& aliases, oracle::Misread::Operand operand) {
  if (operand == oracle::Misread::Input) return aliases.input;
  return operand == oracle::Misread::HandedBack || aliases.grad_output;
}

oracle::Capture capture_of(const List& list, const Size& size, bool chain) {
  oracle::Capture capture{.chunks = {}, .order = {}, .chain = chain};
  capture.chunks.assign(static_cast<std::size_t>(size.chunks), {oracle::LayerKeys{}});
  for (const TeEntry& entry : list) {
    const bool whole = entry.type == NumberType::Integer;
    const auto kind = entry.value > 0 ? oracle::Capture::Forward
                      : whole         ? oracle::Capture::Backward
                                      : oracle::Capture::Weight;
    capture.order.push_back({kind, static_cast<int>(std::floor(std::abs(entry.value))) - 1});
  }
  return capture;
}

// The first reader of what is not its own; of one reader, by the rule.
Answer first_of(const oracle::Replay& replay, const Aliases& aliases) {
  Answer first;
  for (const oracle::Misread& misread : replay.misreads) {
    if (!reads(aliases, misread.operand)) continue;
    const Answer found{.rule = rule_of(misread.operand), .position = misread.position};
    const bool earlier =
        std::pair(found.position, found.rule) < std::pair(first.position, first.rule);
    if (first.accepted() || earlier) first = found;
  }
  return first;
}

struct Scope {
  Size size;
  Aliases aliases;
  bool chain;
  std::uint64_t orders;  // sound, or executable as a chain
};

std::string name_of(const Scope& scope) {
  const std::string_view operands = !scope.aliases.grad_output ? "copies"
                                    : scope.aliases.input      ? "both operands"
                                                               : "the gradient";
  return fmt::format("plan te of {}{}, {}", scope.chain ? "chains of " : "", name_of(scope.size),
                     operands);
}

bool compare_scope(const Scope& scope, const Options& options) {
  Comparison comparison(name_of(scope), options);
  Verdicts::Declared declared;
  declared.topology = scope.chain ? Topology::Chain : Topology::Independent;
  declared.options.plan = {.kind = PlanKind::Te, .aliases = scope.aliases};
  Judge judge(declared, options.through);
  const Needs needs = scope.chain ? needs_of_a_chain(scope.size) : needs_of_each_chunk(scope.size);
  std::uint64_t orders = 0;
  List list;
  Interleavings(needs, scope.size.microbatches).for_each([&](const auto& tokens) {
    ++orders;
    if (!comparison.mine()) return true;
    list.clear();
    for (const std::size_t token : tokens) list.push_back(entry_of_token(scope.size, token));
    const auto replay = oracle::replay(capture_of(list, scope.size, scope.chain));
    comparison.compare(judge.of(list), first_of(replay, scope.aliases),
                       [&] { return (scope.chain ? "a chain: " : "") + shown(list); });
    return !comparison.stopped();
  });
  if (!comparison.stopped()) comparison.expect("orders", orders, scope.orders);
  comparison.note("of these answers also asked of check():", judge.asked_both());
  return comparison.finish();
}

constexpr Aliases kBoth{.input = true, .grad_output = true};
constexpr Aliases kGradient{.input = false, .grad_output = true};
constexpr Aliases kCopies{.input = false, .grad_output = false};

// With how many are sound, and how many a chain can execute: tables A13 and D2, the hook lengths.
struct Row {
  Size size;
  std::uint64_t sound;
  std::uint64_t executable;
};

constexpr Row kWith[] = {{{1, 2, true}, 5, 5},        {{1, 3, true}, 42, 42},
                         {{1, 4, true}, 462, 462},    {{2, 1, true}, 20, 3},
                         {{2, 2, true}, 23'100, 908}, {{3, 1, true}, 1'680, 15}};
constexpr Row kWithout[] = {
    {{2, 2, false}, 280, 14}, {{2, 3, false}, 23'100, 462}, {{3, 2, false}, 277'200, 132}};

// Of up to twelve entries, bare lists of up to as many as said.
std::vector<Scope> scopes_of_twelve(int longest_list) {
  std::vector<Scope> scopes;
  for (const Row& row : kWith) {
    if (row.size.tokens() <= longest_list) {
      for (const Aliases& aliases : {kBoth, kGradient, kCopies})
        scopes.push_back({row.size, aliases, false, row.sound});
    }
    scopes.push_back({row.size, kBoth, true, row.executable});
  }
  for (const Row& row : kWithout) scopes.push_back({row.size, kBoth, true, row.executable});
  return scopes;
}

std::vector<Scope> scopes(Effort effort) {
  if (effort == Effort::Quick) return scopes_of_twelve(9);
  std::vector<Scope> whole = scopes_of_twelve(12);
  whole.push_back({{2, 3, true}, kBoth, true, 1'180'227});
  whole.push_back({{3, 2, true}, kBoth, true, 600'102});
  whole.push_back({{3, 3, false}, kBoth, true, 87'516});
  return whole;
}

}  // namespace

bool plans(const Options& options) {
  bool agree = true;
  for (const Scope& scope : scopes(options.effort)) {
    agree = compare_scope(scope, options) && agree;
    if (!agree && options.stop_at_first) return false;
  }
  return agree;
}

}  // namespace capo::exhaustive
