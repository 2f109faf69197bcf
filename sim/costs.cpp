#include "sim/costs.h"

#include "core/base/index.h"
#include "core/text/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

namespace capo {

namespace {

using Key = CostSetting::Key;

struct KeyWord {
  std::string_view word;
  Key key;
};
constexpr std::array<KeyWord, 21> kKeys{{
    {"f", Key::Forward},         {"b", Key::Backward},        {"w", Key::Weight},
    {"dispatch", Key::Dispatch}, {"combine", Key::Combine},   {"fuse", Key::Fuse},
    {"beside", Key::Beside},     {"rest", Key::Rest},         {"experts", Key::Experts},
    {"unshard", Key::Unshard},   {"reshard", Key::Reshard},   {"reduce", Key::Reduce},
    {"comm", Key::Latency},      {"bw", Key::Bandwidth},      {"bytes", Key::Bytes},
    {"overlap", Key::Overlap},   {"slowdown", Key::Slowdown}, {"crowded", Key::Crowded},
    {"ahead", Key::Ahead},       {"pace", Key::Pace},         {"re", Key::Again},
}};

constexpr bool is_of_link(Key key) {
  return key == Key::Latency || key == Key::Bandwidth || key == Key::Bytes;
}
constexpr bool is_of_step(Key key) {
  return key == Key::Overlap || key == Key::Slowdown || key == Key::Crowded || key == Key::Ahead;
}

double& slot(TaskCosts& costs, Key key) {
  switch (key) {
    case Key::Backward:
      return costs.backward;
    case Key::Weight:
      return costs.weight;
    case Key::Dispatch:
      return costs.dispatch;
    case Key::Combine:
      return costs.combine;
    case Key::Fuse:
      return costs.fuse;
    case Key::Beside:
      return costs.beside;
    case Key::Rest:
      return costs.rest;
    case Key::Pace:
      return costs.pace;
    case Key::Experts:
      return costs.experts;
    case Key::Unshard:
      return costs.unshard;
    case Key::Reshard:
      return costs.reshard;
    case Key::Reduce:
      return costs.reduce;
    case Key::Again:
      return costs.again;
    default:
      return costs.forward;
  }
}

double halves_of(const TaskCosts& costs) {
  return costs.forward + costs.backward + costs.weight;
}

// Times that add up over layers; the others belong to the chunk as a whole.
constexpr std::array kOfLayers{Key::Forward, Key::Backward, Key::Weight, Key::Dispatch,
                               Key::Combine, Key::Reduce,   Key::Again};

// Whether a time of a rank is divided over its chunks; a reduction is always of one chunk.
bool is_shared(Key key) {
  return key != Key::Reduce;
}

bool covers(std::int32_t scope, std::int32_t value) {
  return scope < 0 || scope == value;
}

std::optional<std::int32_t> number_in(std::string_view text) {
  std::int32_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = result.ec == std::errc{} && result.ptr == text.data() + text.size();
  return whole && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::int32_t> rank_in(std::string_view text) {
  return text.starts_with('r') ? number_in(text.substr(1)) : std::nullopt;
}

// Reads a scope: "r0.c2.l1", "r0-r1", or "r0>r1", which may be "r0->r1".
Result<CostScope, std::string> read_scope(std::string_view text) {
  CostScope scope;
  const auto refused = [&](std::string_view item) {
    return fmt::format(
        "`{}` in `{}:` is no part of a scope; it is made of r0 (a rank), c1 (a chunk, "
        "from 1) and l0 (a layer), as in r0.c2.l1, or is a link, as in r0-r1 of both directions "
        "and r0>r1 of one",
        item, text);
  };
  if (const std::size_t mark = text.find_first_of("->"); mark != std::string_view::npos) {
    const bool arrow = text.substr(mark).starts_with("->");
    const std::string_view from = text.substr(0, mark);
    const std::string_view to = text.substr(mark + (arrow ? 2 : 1));
    const auto rank = rank_in(from);
    const auto peer = rank_in(to);
    if (!rank || !peer) return refused(!rank ? from : to);
    return CostScope{.rank = *rank, .peer = *peer, .both_ways = text[mark] == '-' && !arrow};
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const auto value = item.empty() ? std::nullopt : number_in(item.substr(1));
    std::int32_t* part = item.starts_with('r')   ? &scope.rank
                         : item.starts_with('c') ? &scope.chunk
                         : item.starts_with('l') ? &scope.layer
                                                 : nullptr;
    if (!value || part == nullptr || *part >= 0 || (part == &scope.chunk && *value < 1)) {
      return refused(item);
    }
    *part = *value;
    begin = end + 1;
  }
  return scope;
}

// The reason why a key cannot have this value or this scope; empty if it can.
std::string misfit(const CostSetting& setting, std::string_view word) {
  const CostScope& scope = setting.scope;
  const double value = setting.value;
  if (!std::isfinite(value) || value < 0 || value > 1e12) {
    return fmt::format("{} is no number from 0 to 1e12", word);
  }
  // Values end where those of a model file end, so that no quotient is infinite.
  if (setting.key == Key::Bandwidth && value < 1e-6) return "bw is at least 1e-06";
  if (setting.key == Key::Experts && value > 1) return "experts is a part, from 0 to 1";
  if (setting.key == Key::Rest && value >= 1) return "rest is from 0 to below 1";
  if (setting.key == Key::Pace && (value < kLeastPace || value > kMostPace)) {
    return fmt::format("pace is from {} to {}", kLeastPace, kMostPace);
  }
  if ((setting.key == Key::Slowdown || setting.key == Key::Crowded) && value < 1) {
    return fmt::format("{} is at least 1", word);
  }
  if (is_of_step(setting.key) && !scope.everything()) {
    return fmt::format("{} is said of the whole step, without a scope", word);
  }
  const bool link = scope.peer >= 0;
  if (is_of_link(setting.key) && !scope.everything() && !link) {
    return fmt::format("{} is said of a link, as in r0-r1:{}=1, or of all", word, word);
  }
  if (link && !is_of_link(setting.key)) {
    return fmt::format("{} is said of tasks, not of a link", word);
  }
  return {};
}

// Computations take so much on a device that computes for the share `used` of the step, in times of
// one that always does. Exchanges and reductions move bytes, which a clock has little to do with. A
// device at its limit of power has a clock whose power, its cube, is 1/used of what it could have
// all of the time, up to one that no power raises; there devices are alike, and below it one needs
// more power than another, which is its pace.
void adapt(TaskCosts& costs, double used) {
  const double limited = costs.pace * std::cbrt(used);
  const double takes = costs.rest > 0 ? std::max(1 - costs.rest, limited) : costs.pace;
  if (takes == 1) return;
  for (double* time :
       {&costs.forward, &costs.backward, &costs.weight, &costs.again, &costs.autograd,
        &costs.more_of_whole, &costs.quantize_forward, &costs.quantize_backward}) {
    *time *= takes;
  }
}

}  // namespace

std::string_view name_of(CostPer per) {
  return per == CostPer::Rank ? "rank" : "chunk";
}

void Costs::set(const CostSetting& setting) {
  if (setting.key == Key::Overlap) {
    overlap = setting.value;
  } else if (setting.key == Key::Slowdown) {
    slowdown = setting.value;
  } else if (setting.key == Key::Crowded) {
    crowded = setting.value;
  } else if (setting.key == Key::Ahead) {
    ahead = setting.value;
  } else {
    settings.push_back(setting);
  }
}

double Costs::share_of(std::int32_t rank) const {
  return shares.empty() ? 1 : shares[as_index(rank)];
}

TaskCosts Costs::of_layer(std::int32_t rank, std::int32_t chunk, std::int32_t layer,
                          std::int32_t layers) const {
  TaskCosts costs;
  const double share = share_of(rank);
  for (const Key key : kOfLayers) slot(costs, key) *= share / layers;
  if (const Module* module = modules.of(rank, chunk, layer); module != nullptr) {
    costs.forward = module->cost.forward.value_or(0);
    costs.backward = module->cost.backward.value_or(0);
    costs.weight = module->cost.weight.value_or(0);
    costs.dispatch = module->cost.dispatch.value_or(0);
    costs.combine = module->cost.combine.value_or(0);
    costs.reduce = module->cost.reduce.value_or(0);
    costs.autograd = module->cost.autograd.value_or(0);
    const double halves = costs.backward + costs.weight;
    costs.more_of_whole = module->cost.whole.value_or(halves + costs.autograd) - halves;
    costs.fuse = module->cost.fuse.value_or(1);
    costs.beside = module->cost.beside.value_or(1);
    costs.rest = module->cost.rest.value_or(0);
    costs.quantize_forward = module->cost.quantize_forward.value_or(0);
    costs.quantize_backward = module->cost.quantize_backward.value_or(0);
  }
  if (as_index(rank) < paces.size()) costs.pace = paces[as_index(rank)];
  bool says_again = false;
  for (const CostSetting& setting : settings) {
    const CostScope& scope = setting.scope;
    if (is_of_link(setting.key) || !covers(scope.rank, rank) || !covers(scope.chunk, chunk) ||
        !covers(scope.layer, layer)) {
      continue;
    }
    const bool time = std::find(kOfLayers.begin(), kOfLayers.end(), setting.key) != kOfLayers.end();
    double value = setting.value;
    if (time && scope.layer < 0) value /= layers;
    const bool shared = time && is_shared(setting.key);
    if (shared && scope.layer < 0 && scope.chunk < 0) value *= share;
    slot(costs, setting.key) = value;
    if (setting.key == Key::Again) says_again = true;
    if (setting.key == Key::Forward) costs.quantize_forward = 0;
    if (setting.key == Key::Backward) costs.autograd = costs.quantize_backward = 0;
    if (setting.key == Key::Backward || setting.key == Key::Weight) {
      costs.more_of_whole = costs.autograd;
    }
  }
  if (!says_again) costs.again = costs.forward;
  adapt(costs, used.empty() ? 1 : used[as_index(rank)]);
  if (recomputed.has(rank, chunk)) {
    costs.backward += costs.again + costs.dispatch + costs.combine;
    if (!says_again) costs.quantize_backward += costs.quantize_forward;
  }
  return costs;
}

TaskCosts Costs::of_chunk(std::int32_t rank, std::int32_t chunk, std::int32_t layers) const {
  TaskCosts sum = of_layer(rank, chunk, 0, layers);
  for (std::int32_t layer = 1; layer < layers; ++layer) {
    TaskCosts next = of_layer(rank, chunk, layer, layers);
    const double weights = sum.weight + next.weight;
    if (weights > 0) sum.fuse = (sum.weight * sum.fuse + next.weight * next.fuse) / weights;
    const double all = halves_of(sum) + halves_of(next);
    if (all > 0) {
      sum.beside = (halves_of(sum) * sum.beside + halves_of(next) * next.beside) / all;
      sum.rest = (halves_of(sum) * sum.rest + halves_of(next) * next.rest) / all;
    }
    for (const Key key : kOfLayers) slot(sum, key) += slot(next, key);
    sum.autograd += next.autograd;
    sum.more_of_whole += next.more_of_whole;
    sum.quantize_forward += next.quantize_forward;
    sum.quantize_backward += next.quantize_backward;
  }
  return sum;
}

LinkCosts Costs::between(std::int32_t from, std::int32_t to) const {
  LinkCosts costs = link;
  for (const CostSetting& setting : settings) {
    const CostScope& scope = setting.scope;
    const bool meant = scope.everything() || (scope.rank == from && scope.peer == to) ||
                       (scope.both_ways && scope.rank == to && scope.peer == from);
    if (!meant) continue;
    if (setting.key == Key::Latency) costs.latency = setting.value;
    if (setting.key == Key::Bandwidth) costs.bandwidth = setting.value;
    if (setting.key == Key::Bytes) costs.bytes = setting.value;
  }
  return costs;
}

bool Costs::tell_quantization() const {
  return std::any_of(modules.list.begin(), modules.list.end(), [](const Module& module) {
    return module.cost.quantize_forward || module.cost.quantize_backward;
  });
}

bool Costs::tell_rest() const {
  if (alike) return false;
  return std::ranges::any_of(modules.list,
                             [](const Module& one) { return one.cost.rest.value_or(0) > 0; }) ||
         std::ranges::any_of(settings,
                             [](const auto& one) { return one.key == Key::Rest && one.value > 0; });
}

bool Costs::uniform() const {
  const bool shared_alike =
      std::adjacent_find(shares.begin(), shares.end(), std::not_equal_to<>()) == shares.end();
  return shared_alike && used.empty() && paces.empty() && modules.layers.empty() &&
         !recomputed.any() && std::all_of(settings.begin(), settings.end(), [](const auto& s) {
           return s.scope.everything();
         });
}

Result<std::vector<CostSetting>, std::string> read_costs(std::string_view text) {
  CostScope scope;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    const auto read = read_scope(text.substr(0, colon));
    if (!read) return read.error();
    scope = *read;
    text.remove_prefix(colon + 1);
  }
  std::vector<CostSetting> settings;
  for (const NamedNumber& number : named_numbers(text)) {
    const auto* found = std::find_if(kKeys.begin(), kKeys.end(),
                                     [&](const KeyWord& key) { return key.word == number.name; });
    if (found == kKeys.end() || !number.value) {
      return fmt::format(
          "`{}` is not a cost; write a list such as f=12,b=13,w=9,comm=1 of the keys f, "
          "b, w, re, dispatch, combine, fuse, beside, rest, pace, experts, unshard, reshard, "
          "reduce, "
          "comm, bw, bytes, overlap, slowdown, crowded and ahead",
          number.item);
    }
    const CostSetting setting{.scope = scope, .key = found->key, .value = *number.value};
    if (std::string why = misfit(setting, number.name); !why.empty()) return why;
    settings.push_back(setting);
  }
  return settings;
}

Result<Costs, std::string> costs_of(const Model& model) {
  Costs costs;
  costs.link = {.latency = model.transfer.latency.value_or(0),
                .bandwidth = model.transfer.bandwidth,
                .bytes = static_cast<double>(model.transfer.bytes.value_or(0))};
  costs.crowded = model.transfer.crowded.value_or(1);
  costs.slowdown = model.transfer.slowdown.value_or(1);
  costs.ahead = static_cast<double>(model.transfer.ahead.value_or(0));
  costs.paces = model.paces;
  costs.in_microseconds = model.transfer.latency || model.transfer.bandwidth;
  const auto& modules = model.modules.list;
  const bool stated = std::any_of(modules.begin(), modules.end(),
                                  [](const Module& module) { return module.cost != ModuleCost{}; });
  if (!stated) return costs;
  for (const Module& module : modules) {
    const std::pair<const char*, bool> needed[] = {{"forward", module.cost.forward.has_value()},
                                                   {"backward", module.cost.backward.has_value()},
                                                   {"weight", module.cost.weight.has_value()}};
    for (const auto& [what, there] : needed) {
      if (!there) return fmt::format("module `{}` has no cost.{}", module.name, what);
    }
  }
  costs.modules = model.modules;
  costs.halves_hand_dummies = model.plan.kind == PlanKind::Te;
  costs.in_microseconds = true;
  return costs;
}

}  // namespace capo
