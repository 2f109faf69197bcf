#include "testing/generators/arbitrary_numbers.h"

#include "core/frameworks/te/list_text.h"
#include "testing/generators/sound_order.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <utility>

namespace capo::testing {

namespace {

using enum NumberType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<TeEntry, 25> kNearMisses{{
    {.value = 0.0},
    {.value = -0.0, .type = Float},
    {.value = 1.0, .type = Float},
    {.value = -1.0, .type = Float},
    {.value = 2.0, .type = Float},
    {.value = -1.25, .type = Float},
    {.value = -1.75, .type = Float},
    {.value = -1e-3, .type = Float},
    {.value = -0.5, .type = Float},
    {.value = 0.5, .type = Float},
    {.value = 1.5, .type = Float},
    {.value = 2.5, .type = Float},
    {.value = kNan, .type = Float},
    {.value = -kInfinity, .type = Float},
    {.value = kInfinity, .type = Float},
    {.value = 5},
    {.value = -5},
    {.value = -5.5, .type = Float},
    {.value = 1000},
    {.value = -1000},
    {.value = 1e9},
    {.value = 9007199254740992.0},
    {.value = 9007199254740992.0, .type = Float},
    {.value = -1e300},
    {.value = -1e300, .type = Float},
}};

TeEntry draw_number(Dice& dice) {
  if (dice.one_in(8)) return dice.pick(std::span<const TeEntry>(kNearMisses));
  constexpr std::array kKinds{Kind::Forward, Kind::Backward, Kind::BackwardWeight};
  return te_entry(dice.pick(std::span<const Kind>(kKinds)), dice.between(1, 3));
}

void change(Dice& dice, std::vector<TeEntry>& entries) {
  const auto place = [&](std::size_t at) {
    return entries.begin() + static_cast<std::ptrdiff_t>(at);
  };
  if (entries.empty()) {
    entries.push_back(draw_number(dice));
    return;
  }
  const std::size_t at = dice.below(entries.size());
  switch (dice.below(4)) {
    case 0:
      entries[at] = draw_number(dice);
      break;
    case 1:
      entries.erase(place(at));
      break;
    case 2:
      entries.insert(place(at), TeEntry(entries[at]));
      break;
    default:
      std::swap(entries[at], entries[(at + 1) % entries.size()]);
      break;
  }
}

Layers draw_layers(Dice& dice, std::size_t chunks) {
  const auto count = [&]() -> std::int64_t { return dice.one_in(16) ? 0 : dice.between(1, 3); };
  switch (dice.below(4)) {
    case 0:
      return {.form = Layers::Form::Null};
    case 1:
      return {.form = Layers::Form::Count, .values = {count()}};
    default:
      break;
  }
  Layers layers{.form = Layers::Form::List};
  const bool ones = dice.one_in(2);
  layers.values.resize(chunks + 1 - dice.below(3));
  for (std::int64_t& value : layers.values) value = ones ? 1 : count();
  return layers;
}

std::optional<std::vector<bool>> draw_need_wgrad(Dice& dice, std::vector<bool> delays) {
  if (dice.one_in(3)) return std::nullopt;
  if (dice.one_in(2)) {
    delays.resize(delays.size() + 2 - std::min(dice.below(5), delays.size() + 2), dice.one_in(2));
  }
  for (std::size_t c = 0; c < delays.size(); ++c) {
    if (dice.one_in(8)) delays[c] = !delays[c];
  }
  return delays;
}

std::vector<NumberCase> simpler_numbers(const NumberCase& numbers) {
  std::vector<NumberCase> out;
  const auto with = [&](auto change_it) {
    out.push_back(numbers);
    change_it(out.back());
  };
  for (std::size_t i = 0; i < numbers.list.entries.size(); ++i) {
    with([i](NumberCase& n) {
      n.list.entries.erase(n.list.entries.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
  for (std::size_t i = 0; i < numbers.list.entries.size(); ++i) {
    const TeEntry& entry = numbers.list.entries[i];
    if (te_action(entry)) continue;
    with([&](NumberCase& n) {
      n.list.entries[i] = te_entry(entry.value > 0 ? Kind::Forward : Kind::Backward, 1);
    });
  }
  const Layers ones{.form = Layers::Form::List,
                    .values = std::vector<std::int64_t>(numbers.layers.values.size(), 1)};
  if (numbers.layers != ones && !ones.values.empty()) with([&](NumberCase& n) { n.layers = ones; });
  if (numbers.need_wgrad) with([](NumberCase& n) { n.need_wgrad.reset(); });
  if (numbers.reuse) with([](NumberCase& n) { n.reuse = false; });
  if (numbers.silent_store) with([](NumberCase& n) { n.silent_store = false; });
  return out;
}

}  // namespace

std::string NumberCase::text() const {
  return print_te_list(list);
}

TeDeclarations NumberCase::declarations() const {
  return {.layers = layers, .need_wgrad = need_wgrad};
}

NumberCase draw_arbitrary_numbers(Dice& dice) {
  const TeOrder order = dice.one_in(4) ? draw_te_capturable_order(dice) : draw_sound_order(dice);
  NumberCase numbers{.list = order.list,
                     .layers = order.layers,
                     .need_wgrad = order.delays,
                     .reuse = dice.one_in(2),
                     .silent_store = dice.one_in(4)};
  if (dice.one_in(4)) {
    numbers.list.entries.clear();
    for (std::size_t i = dice.below(11); i > 0; --i)
      numbers.list.entries.push_back(draw_number(dice));
  } else {
    for (std::size_t i = dice.below(4); i > 0; --i) change(dice, numbers.list.entries);
  }
  if (dice.one_in(2)) {
    numbers.layers = draw_layers(dice, order.delays.size());
    numbers.need_wgrad = draw_need_wgrad(dice, order.delays);
  }
  return numbers;
}

rc::Gen<NumberCase> arbitrary_numbers() {
  return generator(draw_arbitrary_numbers, simpler_numbers);
}

void showValue(const NumberCase& numbers, std::ostream& out) {
  out << numbers.text() << "layers";
  switch (numbers.layers.form) {
    case Layers::Form::Unstated:
      out << " unstated";
      break;
    case Layers::Form::Null:
      out << " None";
      break;
    case Layers::Form::Count:
      out << " per chunk";
      break;
    case Layers::Form::List:
      out << " list";
      break;
  }
  for (const std::int64_t layers : numbers.layers.values) out << ' ' << layers;
  out << ", need_wgrad";
  if (!numbers.need_wgrad) out << " unstated";
  if (numbers.need_wgrad) {
    for (const bool needs : *numbers.need_wgrad) out << (needs ? " true" : " false");
  }
  out << (numbers.reuse ? ", reuse" : "") << (numbers.silent_store ? ", silent store" : "");
}

}  // namespace capo::testing
