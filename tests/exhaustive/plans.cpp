// The readers that TransformerEngine's reuse of buffers (plan te) hurts, in all sound orders with
// weight gradients of up to twelve entries, as bare lists whose weight gradients read both shared
// buffers, the incoming gradient alone, or copies; and in all executable chains of up to twelve
// entries and those of 2x3 and 3x2 with weight gradients and of 3x3 without, eighteen entries each,
// with both operands shared and the gradients between chunks in the pool.
//
// The oracle gives out tagged cells and replays. Of bare lists it is the static input (B01) and the
// incoming gradient (B02) that are read too late, in chains what a chunk handed back (B03) as well.
// A finding stands at the reader. Published is how many of the orders that TransformerEngine
// captures are hurt, which tests/core/enumeration/hazards_test.cpp counts. Quick: bare lists of up
// to nine entries and chains of up to twelve.

#include "testing/oracle/memory.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/misreads.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

namespace capo::exhaustive {

namespace {

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
  Judge judge(declared, options);
  const Needs needs = scope.chain ? needs_of_a_chain(scope.size) : needs_of_each_chunk(scope.size);
  std::uint64_t orders = 0;
  List list;
  Interleavings(needs, scope.size.microbatches).for_each([&](const auto& tokens) {
    ++orders;
    if (!comparison.mine()) return true;
    list.clear();
    for (const std::size_t token : tokens) list.push_back(entry_of_token(scope.size, token));
    const std::vector<oracle::LayerKeys> alike(static_cast<std::size_t>(scope.size.chunks));
    const auto replay = oracle::replay(capture_of(list, alike, scope.chain));
    comparison.compare(judge.of(list), first_misread(replay, scope.aliases),
                       [&] { return (scope.chain ? "a chain: " : "") + shown(list); });
    return !comparison.stopped();
  });
  if (!comparison.stopped()) comparison.expect("orders", orders, scope.orders);
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

// Chains have up to twelve entries, bare lists up to as many as said.
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
