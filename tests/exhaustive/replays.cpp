// All sound orders of a size as captures, each replayed in every sound order.
//
//   captured F1.0 F1.1 B1.0 B1.1, replayed F1.0 B1.0 F1.1 B1.1     Y06 at F1.0, which B1.0 follows
//
// With a paged stash it is the first graph that another one follows than at capture (Y06); no plan
// is declared there, so that memory that is read too late is no error. Under plan mcore-local it is
// the entry at which the orders part (Y01) where a replay of counted tensors is misread; chunks
// have one layer, and two. Quick: the sizes that have at most a hundred pairs of orders.

#include "core/base/plural.h"
#include "core/text/order_text.h"
#include "testing/oracle/local_graphs.h"
#include "testing/oracle/stash.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/judge.h"
#include "tests/exhaustive/one_rank.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::exhaustive {

namespace {

using Tokens = std::vector<std::size_t>;

std::vector<Tokens> sound_orders(const Size& size) {
  std::vector<Tokens> all;
  const Needs needs = needs_of_each_chunk(size);
  Interleavings(needs, size.microbatches).for_each([&](const Tokens& tokens) {
    all.push_back(tokens);
    return true;
  });
  return all;
}

// A graph is a token and its microbatch.
std::vector<int> graphs_of(const Size& size, const Tokens& tokens) {
  std::vector<int> next(static_cast<std::size_t>(size.kinds() * size.chunks));
  std::vector<int> graphs;
  for (const std::size_t token : tokens)
    graphs.push_back(static_cast<int>(token) * size.microbatches + next[token]++);
  return graphs;
}

Answer answer_of(const std::vector<int>& misled) {
  if (misled.empty()) return {};
  return {.rule = "Y06", .position = misled.front()};
}

struct Scope {
  Size size;
  std::uint64_t sound;  // table A13
};

// Asks of each pair of orders; `expected(captured, replayed)` is the oracle's answer.
template <typename Expected>
bool compare_pairs(const Scope& scope, Comparison& comparison, OneRank& rank, Judge& judge,
                   Expected expected) {
  const std::vector<Tokens> orders = sound_orders(scope.size);
  for (const Tokens& captured : orders) {
    for (const Tokens& replayed : orders) {
      if (comparison.stopped()) break;
      if (!comparison.mine()) continue;
      rank.capture(captured);
      rank.replay(replayed);
      comparison.compare(judge.of(rank.input), expected(captured, replayed),
                         [&] { return print_order_file(rank.input.schedule); });
    }
  }
  if (!comparison.stopped()) comparison.expect("orders", orders.size(), scope.sound);
  return comparison.finish();
}

bool compare_stash(const Scope& scope, const Options& options) {
  Comparison comparison(fmt::format("replays of {} with a paged stash", name_of(scope.size)),
                        options);
  Verdicts::Declared declared;
  declared.options.plan.paged_stash = true;
  Judge judge(declared, options);
  OneRank rank(scope.size, computations_of(scope.size));
  return compare_pairs(scope, comparison, rank, judge,
                       [&](const Tokens& captured, const Tokens& replayed) {
                         return answer_of(oracle::misled_reloads(graphs_of(scope.size, captured),
                                                                 graphs_of(scope.size, replayed)));
                       });
}

std::vector<oracle::LocalWork> works_of(const Size& size, const Tokens& tokens) {
  std::vector<oracle::LocalWork> works;
  for (const int graph : graphs_of(size, tokens)) {
    const int token = graph / size.microbatches;
    works.push_back({.forward = token < size.chunks,
                     .chunk = token % size.chunks,
                     .microbatch = graph % size.microbatches});
  }
  return works;
}

// All tensors of all layers take one byte.
ModuleTable modules_of(const Size& size, int layers) {
  ModuleTable table{
      .list = {{.name = "m", .bytes = {.input = 1, .output = 1, .activations = 1, .operands = 0}}},
      .layers = {{}}};
  for (int chunk = 0; chunk < size.chunks; ++chunk)
    table.layers[0].emplace_back(static_cast<std::size_t>(layers), 0);
  return table;
}

bool compare_local_graphs(const Scope& scope, int layers, const Options& options) {
  Comparison comparison(fmt::format("replays of {} under plan mcore-local, {} to a chunk",
                                    name_of(scope.size), counted(layers, "layer")),
                        options);
  Verdicts::Declared declared;
  declared.options.plan = {.kind = PlanKind::McoreLocal,
                           .aliases = Aliases{.input = true, .grad_output = true}};
  declared.options.modules = modules_of(scope.size, layers);
  Judge judge(declared, options);
  OneRank rank(scope.size, computations_of(scope.size));
  rank.rank().layers = {.form = Layers::Form::Count, .values = {layers}};
  const oracle::LocalChunks chunks(
      static_cast<std::size_t>(scope.size.chunks),
      std::vector<oracle::LocalLayer>(static_cast<std::size_t>(layers)));
  return compare_pairs(
      scope, comparison, rank, judge,
      [&](const Tokens& captured, const Tokens& replayed) -> Answer {
        const auto memory = oracle::capture_locally(chunks, works_of(scope.size, captured));
        if (oracle::replay_locally(chunks, memory, works_of(scope.size, replayed)).empty())
          return {};
        const auto parting = std::mismatch(captured.begin(), captured.end(), replayed.begin());
        return {.rule = "Y01", .position = static_cast<int>(parting.first - captured.begin())};
      });
}

bool compare(const Scope& scope, const Options& options) {
  bool agree = compare_stash(scope, options);
  if (scope.size.weights) return agree;  // Megatron's graphs have none apart
  for (const int layers : {1, 2}) {
    if (!agree && options.stop_at_first) return false;
    agree = compare_local_graphs(scope, layers, options) && agree;
  }
  return agree;
}

std::vector<Scope> scopes(Effort effort) {
  const std::vector<Scope> quick{
      {{1, 2, false}, 2}, {{1, 3, false}, 5}, {{1, 2, true}, 5}, {{2, 1, false}, 6}};
  if (effort == Effort::Quick) return quick;
  std::vector<Scope> whole = quick;
  whole.push_back({{1, 4, false}, 14});
  whole.push_back({{1, 3, true}, 42});
  whole.push_back({{2, 1, true}, 20});
  whole.push_back({{2, 2, false}, 280});
  whole.push_back({{3, 1, false}, 90});
  return whole;
}

}  // namespace

bool replays(const Options& options) {
  bool agree = true;
  for (const Scope& scope : scopes(options.effort)) {
    agree = compare(scope, options) && agree;
    if (!agree && options.stop_at_first) return false;
  }
  return agree;
}

}  // namespace capo::exhaustive
