// Requests of published schedules, for the tests of what holds of all of them or of one over many
// settings: simulated at the costs that they were made for, in words, by chance, and all there are.

#pragma once

#include "schedules/catalogue.h"
#include "schedules/generators.h"
#include "tests/sim/simulated.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace capo::published_requests {

using schedules::Request;

/// "zb-1p p=4 m=8 f=1 b=1 w=1 c=0", and whatever else is stated.
inline std::string words_for(const Request& request) {
  const auto& [forward, backward, weight, transfer] = request.costs;
  std::string words = fmt::format("{} p={} m={} f={} b={} w={} c={}", request.name, request.ranks,
                                  request.microbatches, forward, backward, weight, transfer);
  if (request.chunks) words += fmt::format(" v={}", *request.chunks);
  if (request.group) words += fmt::format(" g={}", *request.group);
  if (request.memory_limit) words += fmt::format(" limit={}", *request.memory_limit);
  for (const auto& [f, b, w, c] : request.rank_costs) words += fmt::format(" {}/{}/{}", f, b, w);
  return words;
}

inline void declare_costs(const Request& request, Costs& costs) {
  using Key = CostSetting::Key;
  const auto declare = [&](const schedules::Costs& chunk, std::int32_t rank) {
    costs.set({.scope = {.rank = rank}, .key = Key::Forward, .value = chunk.forward});
    costs.set({.scope = {.rank = rank}, .key = Key::Backward, .value = chunk.backward});
    costs.set({.scope = {.rank = rank}, .key = Key::Weight, .value = chunk.weight});
  };
  constexpr std::int32_t kEveryRank = -1;
  declare(request.costs, kEveryRank);
  std::int32_t rank = 0;
  for (const schedules::Costs& chunk : request.rank_costs) declare(chunk, rank++);
  const schedules::Costs& first =
      request.rank_costs.empty() ? request.costs : request.rank_costs.front();
  costs.set({.key = Key::Latency, .value = first.transfer});
}

/// The costs and the memory of the request are those of the simulation as well.
inline std::unique_ptr<simulated::Simulated> simulate_request(const Request& request,
                                                              SimulationOptions options = {}) {
  declare_costs(request, options.costs);
  if (const auto& memory = request.memory) {
    options.memory = MemoryChange{
        .forward = memory->forward, .backward = memory->backward, .weight = memory->weight};
  }
  return simulated::simulate_named(request, std::move(options));
}

/// The same numbers with every compiler and library.
class Chance {
 public:
  explicit Chance(std::uint32_t seed) : engine_(seed) {}

  /// Both included.
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(engine_() % static_cast<std::uint32_t>(high - low + 1));
  }
  double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_()) / 4294967296.0);
  }
  /// Half of them whole numbers, whose sums come out even, and a fifth without transfers.
  schedules::Costs costs() {
    const bool whole = between(0, 1) == 0;
    const auto draw = [&](double low, double high) {
      return whole ? between(static_cast<std::int32_t>(low + 1), static_cast<std::int32_t>(high))
                   : between(low, high);
    };
    schedules::Costs costs{.forward = draw(0.1, 20), .backward = draw(0.1, 20)};
    costs.weight = draw(0.1, 20);
    costs.transfer = between(0, 4) == 0 ? 0 : draw(0, 6);
    return costs;
  }

 private:
  std::mt19937 engine_;
};

/// The chunks, groups and limits to ask one name for; what it does not have is left out.
struct Choices {
  std::vector<std::optional<std::int32_t>> chunks{std::nullopt};
  std::vector<std::optional<std::int32_t>> groups{std::nullopt};
  std::vector<std::optional<double>> limits{std::nullopt};
};

inline Choices choices_of(const schedules::Entry& entry, std::int32_t ranks) {
  Choices choices;
  if (entry.chunks == "any") choices.chunks = {1, 2, 3};
  if (entry.chunks == "even") choices.chunks = {2, 4};
  if (entry.uses == "group") choices.groups = {std::nullopt, ranks + 1, (ranks + 1) / 2};
  if (entry.uses == "costs, memory") choices.limits = {0.6 * ranks + 1, ranks, 2 * ranks};
  return choices;
}

/// Every name of the catalogue and every table of PyTorch, on up to six ranks with up to 12
/// microbatches and costs by chance, sometimes of each rank, as far as there is such a schedule.
inline std::vector<Request> every_request() {
  std::vector<schedules::Entry> entries = schedules::entries();
  std::vector<std::string> torch;  // the entries view these names
  torch.reserve(schedules::kTorchClasses.size());
  for (const schedules::TorchClass each : schedules::kTorchClasses) {
    torch.push_back(fmt::format("torch:{}", schedules::name_of(each)));
  }
  for (const std::string& name : torch) entries.push_back({.name = name, .chunks = "any"});

  Chance chance(20240117);
  std::vector<Request> requests;
  for (const schedules::Entry& entry : entries) {
    for (const std::int32_t ranks : {1, 2, 3, 4, 6}) {
      const Choices choices = choices_of(entry, ranks);
      for (const std::int32_t microbatches : {1, 6, 7, 12}) {
        for (const auto& chunks : choices.chunks) {
          for (const auto& group : choices.groups) {
            for (const auto& limit : choices.limits) {
              Request request{.name = std::string(entry.name),
                              .ranks = ranks,
                              .microbatches = microbatches,
                              .chunks = chunks,
                              .group = group,
                              .costs = chance.costs(),
                              .memory_limit = limit};
              if (!schedules::schedule_named(request)) continue;
              requests.push_back(request);
              if (requests.size() % 3 != 0) continue;
              for (std::int32_t rank = 0; rank < ranks; ++rank) {
                request.rank_costs.push_back(chance.costs());
              }
              if (schedules::schedule_named(request)) requests.push_back(request);
            }
          }
        }
      }
    }
  }
  return requests;
}

}  // namespace capo::published_requests
