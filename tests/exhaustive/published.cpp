// How many orders there are: table D2 of capo's survey of the ecosystem, row by row.
//
//   all           each entry as often as it should occur, in any order
//   per chunk     each chunk's entries by microbatch: forward, backward, weight gradient
//   executable    as a chain: F(c) before F(c+1), B(c+1) before B(c)
//   expressible   executable with weight gradients, and TransformerEngine captures it
//
// All columns are counted through the states that an order can be in, up to 3x3 with weight
// gradients. What makes an order expressible there is that a chunk's weight gradient comes before
// its next backward; that this is what TransformerEngine captures is asked of every executable
// chain with weight gradients of at most eighteen entries, twice: of the oracle, and of capo's
// prediction, which has to name the same error at the same entry. That the other columns are what
// capo accepts is for lists.cpp and plans.cpp. Quick: chains of at most twelve entries.

#include "core/frameworks/te/predict.h"
#include "tests/exhaustive/comparison.h"
#include "tests/exhaustive/orders.h"
#include "tests/exhaustive/scopes.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace capo::exhaustive {

namespace {

struct Row {
  int chunks;
  int microbatches;
  double all;
  double per_chunk;
  double executable;
  double all_with_weights;  // three digits from 1e11 on
  double executable_with_weights;
  double expressible;
};

constexpr Row kPublished[] = {
    {1, 1, 2, 1, 1, 6, 1, 1},
    {1, 2, 6, 2, 2, 90, 5, 3},
    {1, 3, 20, 5, 5, 1'680, 42, 12},
    {2, 1, 24, 6, 1, 720, 3, 3},
    {2, 2, 2'520, 280, 14, 7'484'400, 908, 337},
    {2, 3, 369'600, 23'100, 462, 1.37e11, 1'180'227, 106'086},
    {3, 1, 720, 90, 1, 362'880, 15, 15},
    {3, 2, 7'484'400, 277'200, 132, 1.25e13, 600'102, 136'620},
    {3, 3, 137'225'088'000, 2'144'142'000, 87'516, 1.08e21, 294'023'434'449, 8'318'685'695},
};

Size without_weights(const Row& row) {
  return {.chunks = row.chunks, .microbatches = row.microbatches, .weights = false};
}

Size with_weights(const Row& row) {
  return {.chunks = row.chunks, .microbatches = row.microbatches, .weights = true};
}

// 137 of 137,225,088,000, which the table has as 1.37e11.
std::uint64_t first_three_digits(double count) {
  return static_cast<std::uint64_t>(
      std::llround(count / std::pow(10, std::floor(std::log10(count)) - 2)));
}

double all_orders(const Size& size) {
  return count_orders(size, [](const auto& /*done*/, std::size_t /*token*/) { return true; });
}

double orders_with(const Needs& needs, const Size& size) {
  return count_orders(
      size, [&](const auto& done, std::size_t token) { return has_needs(needs, done, token); });
}

// Weight gradients in turn with their chunk's backwards.
double expressible_orders(const Size& size) {
  const Needs needs = needs_of_a_chain(size);
  const auto chunks = static_cast<std::size_t>(size.chunks);
  return count_orders(size, [&](const auto& done, std::size_t token) {
    const bool backward = token / chunks == 1;
    return has_needs(needs, done, token) && (!backward || done[token + chunks] == done[token]);
  });
}

void count(const Row& row, Comparison& comparison) {
  const auto expect = [&](std::string_view what, double counted, double known) {
    comparison.expect(what, static_cast<std::uint64_t>(counted), static_cast<std::uint64_t>(known));
  };
  const Size bare = without_weights(row);
  const Size whole = with_weights(row);
  expect("all", all_orders(bare), row.all);
  expect("per chunk", orders_with(needs_of_each_chunk(bare), bare), row.per_chunk);
  expect("executable", orders_with(needs_of_a_chain(bare), bare), row.executable);
  if (row.all_with_weights < 1e10) {
    expect("all with W", all_orders(whole), row.all_with_weights);
  } else {
    comparison.expect("all with W, first three digits", first_three_digits(all_orders(whole)),
                      first_three_digits(row.all_with_weights));
  }
  expect("executable with W", orders_with(needs_of_a_chain(whole), whole),
         row.executable_with_weights);
  expect("expressible", expressible_orders(whole), row.expressible);
}

// Each chunk is one layer, and delays its weight gradients.
class TransformerEngine {
 public:
  explicit TransformerEngine(const Size& size)
      : delays_(static_cast<std::size_t>(size.chunks), true) {
    layers_ = {.form = Layers::Form::List, .values = std::vector<std::int64_t>(delays_.size(), 1)};
    question_.layers = {.form = oracle::Layers::List,
                        .values = std::vector<long long>(delays_.size(), 1)};
    question_.need_wgrad = delays_;
  }

  [[nodiscard]] Answer predicted(const List& list) const {
    const auto prediction = te::predict({.entries = list}, layers_, delays_);
    if (!prediction) return {.rule = "no prediction"};
    if (prediction->accepts()) return {};
    return {.rule = te::name_of(prediction->kind),
            .position = prediction->entry ? static_cast<int>(*prediction->entry) : -1};
  }

  [[nodiscard]] Answer interpreted(const List& list) {
    to_oracle(list, question_.order);
    const oracle::TeAnswer answer = oracle::transformer_engine(question_);
    return {.rule = *errors_.insert(answer.kind).first, .position = answer.position};
  }

 private:
  std::vector<bool> delays_;
  Layers layers_;
  oracle::Question question_;
  std::set<std::string> errors_;  // answers speak of these as long as this lives
};

void ask_of_each(const Row& row, TransformerEngine& engine, Comparison& comparison) {
  const Size size = with_weights(row);
  std::uint64_t captured = 0;
  List list;
  const Needs needs = needs_of_a_chain(size);
  Interleavings(needs, size.microbatches).for_each([&](const auto& tokens) {
    if (!comparison.mine()) return true;
    list.clear();
    for (const std::size_t token : tokens) list.push_back(entry_of_token(size, token));
    const Answer answer = engine.interpreted(list);
    comparison.compare(engine.predicted(list), answer, [&] { return shown(list); });
    captured += answer.accepted() ? 1 : 0;
    return !comparison.stopped();
  });
  if (comparison.complete()) {
    comparison.expect("that TransformerEngine captures", captured,
                      static_cast<std::uint64_t>(row.expressible));
  }
}

}  // namespace

bool published(const Options& options) {
  const int longest = options.effort == Effort::Quick ? 12 : 18;
  bool agree = true;
  for (const Row& row : kPublished) {
    TransformerEngine engine(with_weights(row));
    Comparison comparison(fmt::format("orders of {}x{}", row.chunks, row.microbatches), options);
    count(row, comparison);
    if (with_weights(row).tokens() <= longest) ask_of_each(row, engine, comparison);
    agree = comparison.finish() && agree;
    if (!agree && options.stop_at_first) return false;
  }
  return agree;
}

}  // namespace capo::exhaustive
