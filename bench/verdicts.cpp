// Measures how many verdicts a second one core gives, on orders that are enumerated in place.
//
//   bench_verdicts        prints what is measured and the figure, one line each
//
// Orders are TE lists of two chunks and two microbatches with weight gradients of their own: all
// lists that have each entry as often as it should occur, and among them those in which no entry
// runs ahead of its input. Each figure is the whole loop, making the next order included, and
// answers verdict, rule and place of the first error. Seconds are of processor time, of which the
// loop's one thread takes all, and the best of five runs counts, since other work on the machine
// can only make it slower. Allocations are those of the last run. All lists of six entries stand
// for orders that are wrong in every way.

#include "core/rules/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

namespace {

std::uint64_t allocations = 0;

}  // namespace

// Counted, and otherwise as they always are. Inlined, gcc would take them for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

using namespace capo;

using Order = std::vector<TeEntry>;

TeEntry entry_of(double value) {
  const bool half = value != static_cast<double>(static_cast<int>(value));
  return {.value = value, .type = half ? NumberType::Float : NumberType::Integer};
}

// Two of each, in ascending order.
Order first_order() {
  Order order;
  for (const double value : {-2.5, -2.0, -1.5, -1.0, 1.0, 2.0}) {
    order.push_back(entry_of(value));
    order.push_back(entry_of(value));
  }
  return order;
}

bool next(Order& order) {
  return std::next_permutation(order.begin(), order.end(), [](const TeEntry& a, const TeEntry& b) {
    return a.value < b.value;
  });
}

struct Seen {
  std::uint64_t orders = 0;
  std::uint64_t accepted = 0;
  std::uint64_t places = 0;  // their sum, so that none is made for nothing
};

void count(const FirstFinding& finding, Seen& seen) {
  ++seen.orders;
  seen.accepted += finding.verdict == Verdict::Accepted ? 1 : 0;
  seen.places += finding.place ? finding.place->index : 0;
}

template <typename Run>
void measure(std::string_view what, Run run) {
  double best = std::numeric_limits<double>::infinity();
  Seen seen;
  for (int round = 0; round < 5; ++round) {
    allocations = 0;
    const std::clock_t begin = std::clock();
    seen = run();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  const std::uint64_t allocated = allocations;
  fmt::print(
      "{}: {} verdicts, {} accepted, {:.3f} s, {:.2f} million/s, {:.1f} allocations each (sum of "
      "places {})\n",
      what, seen.orders, seen.accepted, best, static_cast<double>(seen.orders) / best / 1e6,
      static_cast<double>(allocated) / static_cast<double>(seen.orders), seen.places);
}

Seen all_permutations(Verdicts& verdicts) {
  Seen seen;
  Order order = first_order();
  do {
    count(verdicts.of(order), seen);
  } while (next(order));
  return seen;
}

Seen all_lists_of_six(Verdicts& verdicts) {
  Order alphabet;
  for (const double value : {1.0, 2.0, 3.0, -1.0, -2.0, -3.0, -1.5, -2.5, -3.5, 0.0, 4.0})
    alphabet.push_back(entry_of(value));
  Seen seen;
  Order order(6, alphabet.front());
  std::array<std::size_t, 6> digits{};
  while (true) {
    count(verdicts.of(order), seen);
    std::size_t at = order.size();
    while (at > 0 && digits[at - 1] + 1 == alphabet.size()) {
      digits[--at] = 0;
      order[at] = alphabet.front();
    }
    if (at == 0) return seen;
    order[at - 1] = alphabet[++digits[at - 1]];
  }
}

std::vector<Order> sound_orders() {
  Verdicts verdicts({});
  std::vector<Order> sound;
  Order order = first_order();
  do {
    if (verdicts.of(order).verdict == Verdict::Accepted) sound.push_back(order);
  } while (next(order));
  return sound;
}

void measure_sound(std::string_view what, const std::vector<Order>& orders,
                   const Verdicts::Declared& declared) {
  Verdicts verdicts(declared);
  measure(what, [&] {
    Seen seen;
    for (const Order& order : orders) count(verdicts.of(order), seen);
    return seen;
  });
}

CheckOptions planned(std::vector<Module> modules, std::optional<Aliases> aliases) {
  CheckOptions options;
  options.plan.kind = PlanKind::Te;
  options.plan.aliases = aliases;
  if (modules.empty()) return options;
  options.modules = {.list = std::move(modules), .layers = {{{0}}}};
  return options;
}

}  // namespace

int main() {
  Verdicts bare({});
  measure("all well-counted orders, nothing declared", [&] { return all_permutations(bare); });
  Verdicts chain({.topology = Topology::Chain});
  measure("all well-counted orders, a chain", [&] { return all_permutations(chain); });

  measure("all lists of six entries, nothing declared", [&] { return all_lists_of_six(bare); });

  const std::vector<Order> sound = sound_orders();
  const Module linear{.name = "linear", .kind = ModuleKind::Linear};
  measure_sound("those with no entry ahead, nothing declared", sound, {});
  measure_sound("those with no entry ahead, a chain", sound, {.topology = Topology::Chain});
  measure_sound("those with no entry ahead, plan te, both operands aliased", sound,
                {.options = planned({}, Aliases{.input = true, .grad_output = true})});
  measure_sound("those with no entry ahead, plan te, modules declared as linear", sound,
                {.options = planned({linear}, {})});
  measure_sound("those with no entry ahead, a chain, plan te, modules declared as linear", sound,
                {.topology = Topology::Chain, .options = planned({linear}, {})});
  return 0;
}
