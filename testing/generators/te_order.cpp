#include "testing/generators/te_order.h"

#include "core/base/index.h"
#include "core/frameworks/te/list_text.h"
#include "core/text/number.h"
#include "testing/representable.h"
#include "testing/shown_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <ostream>
#include <tuple>
#include <utility>

namespace capo::testing {

namespace {

// The entries as actions that know their microbatch; a sound order has no others.
std::vector<Action> actions_of(const TeOrder& order) {
  std::map<std::pair<Kind, std::int32_t>, std::int32_t> next;
  std::vector<Action> actions;
  for (const TeEntry& entry : order.list.entries) {
    Action action = te_action(entry).value();
    action.microbatch = next[{action.kind, action.chunk}]++;
    actions.push_back(action);
  }
  return actions;
}

TeOrder without_microbatch(TeOrder order, std::int32_t microbatch) {
  const std::vector<Action> actions = actions_of(order);
  order.list.entries.clear();
  for (const Action& action : actions) {
    if (action.microbatch != microbatch)
      order.list.entries.push_back(te_entry(action.kind, action.chunk));
  }
  --order.microbatches;
  return order;
}

TeOrder without_chunk(TeOrder order, std::int32_t chunk) {
  const std::vector<Action> actions = actions_of(order);
  order.list.entries.clear();
  for (const Action& action : actions) {
    if (action.chunk == chunk) continue;
    order.list.entries.push_back(
        te_entry(action.kind, action.chunk - (action.chunk > chunk ? 1 : 0)));
  }
  order.delays.erase(order.delays.begin() + (chunk - 1));
  order.layers.values.erase(order.layers.values.begin() + (chunk - 1));
  return order;
}

TeOrder without_delay(TeOrder order, std::int32_t chunk) {
  std::erase_if(order.list.entries, [chunk](const TeEntry& entry) {
    const Action action = te_action(entry).value();
    return action.kind == Kind::BackwardWeight && action.chunk == chunk;
  });
  order.delays[as_index(chunk) - 1] = false;
  return order;
}

// A number as JSON has it, with words for those that it cannot write.
std::string json_of(const TeEntry& entry) {
  if (std::isnan(entry.value)) return "\"NaN\"";
  if (std::isinf(entry.value)) return entry.value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
  return to_text(Number{.value = entry.value, .type = entry.type});
}

// With all that is declared: flags do not say for how many chunks it is.
std::string json_of(const TeOrder& order) {
  std::vector<std::string> numbers;
  for (const TeEntry& entry : order.list.entries) numbers.push_back(json_of(entry));
  return fmt::format(
      "{{\"order\": [{}], \"num_layers_per_chunk\": [{}], \"need_wgrad\": [{}], "
      "\"microbatches\": {}}}\n",
      fmt::join(numbers, ", "), fmt::join(order.layers.values, ", "), fmt::join(order.delays, ", "),
      order.microbatches);
}

}  // namespace

std::string TeOrder::text() const {
  return print_te_list(list);
}

TeDeclarations TeOrder::declarations() const {
  return {.layers = layers, .need_wgrad = delays, .microbatches = microbatches};
}

TeEntry te_entry(Kind kind, std::int32_t chunk) {
  const double size = chunk;
  if (kind == Kind::BackwardWeight) return {.value = -size - 0.5, .type = NumberType::Float};
  return {.value = kind == Kind::Forward ? size : -size};
}

std::optional<Action> te_action(const TeEntry& entry) {
  const double size = std::floor(std::abs(entry.value));
  if (!(size >= 1 && size <= 1e9)) return std::nullopt;
  const auto chunk = static_cast<std::int32_t>(size);
  for (const Kind kind : {Kind::Forward, Kind::Backward, Kind::BackwardWeight}) {
    const TeEntry meant = te_entry(kind, chunk);
    if (meant.value == entry.value && meant.type == entry.type)
      return Action{.kind = kind, .chunk = chunk};
  }
  return std::nullopt;
}

std::vector<std::size_t> places(const TeList& list, Kind kind, std::int32_t chunk) {
  const TeEntry wanted = te_entry(kind, chunk);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < list.entries.size(); ++i) {
    const TeEntry& entry = list.entries[i];
    if (entry.value == wanted.value && entry.type == wanted.type) found.push_back(i);
  }
  return found;
}

std::vector<TeOrder> simpler(const TeOrder& order) {
  std::vector<TeOrder> out;
  for (std::int32_t m = 0; order.microbatches > 1 && m < order.microbatches; ++m) {
    out.push_back(without_microbatch(order, m));
  }
  for (std::int32_t chunk = 1; order.chunks() > 1 && chunk <= order.chunks(); ++chunk) {
    out.push_back(without_chunk(order, chunk));
  }
  for (std::int32_t chunk = 1; chunk <= order.chunks(); ++chunk) {
    if (order.delays[as_index(chunk) - 1]) out.push_back(without_delay(order, chunk));
  }
  for (std::size_t c = 0; c < order.layers.values.size(); ++c) {
    if (order.layers.values[c] == 1) continue;
    out.push_back(order);
    out.back().layers.values[c] = 1;
  }
  const std::vector<Action> actions = actions_of(order);
  const auto key = [](const Action& a) { return std::tuple(a.microbatch, a.kind, a.chunk); };
  for (std::size_t i = 0; i + 1 < actions.size(); ++i) {
    if (key(actions[i]) <= key(actions[i + 1])) continue;
    out.push_back(order);
    std::swap(out.back().list.entries[i], out.back().list.entries[i + 1]);
  }
  return out;
}

void showValue(const TeOrder& order, std::ostream& out) {
  const TeReading reading = from_te_list(order.list, order.declarations());
  if (reading.odd_entries.empty() && !unrepresentable(reading.schedule)) {
    out << "# as a list: " << order.text() << shown_order(reading.schedule);
    return;
  }
  out << json_of(order);
}

}  // namespace capo::testing
