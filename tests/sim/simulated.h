// A simulation and what it refers to, in one piece, for tests.

#pragma once

#include "core/input/load.h"
#include "core/order/declare.h"
#include "schedules/catalogue.h"
#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace capo::simulated {

/// Everything that a simulation refers to stays where it is.
struct Simulated {
  Input input;
  SimulationOptions options;
  std::unique_ptr<Simulation> simulation;
  std::string why;  ///< there is none

  const Simulation* operator->() const { return simulation.get(); }
  const Simulation& operator*() const { return *simulation; }
};

inline std::unique_ptr<Simulated> simulate_input(Input input, SimulationOptions options) {
  auto made = std::make_unique<Simulated>();
  made->input = std::move(input);
  made->options = std::move(options);
  auto result = simulation_of(made->input, made->options);
  if (result) {
    made->simulation = std::move(*result);
  } else {
    made->why = result.error().why;
  }
  return made;
}

/// A text that `capo simulate` reads; its chunks wired as the text, or `topology`, says.
inline std::unique_ptr<Simulated> simulate_text(const std::string& text,
                                                SimulationOptions options = {},
                                                Topology topology = Topology::Independent) {
  auto input = load(Source{.name = "test", .text = text}, {});
  EXPECT_TRUE(input.has_value()) << text;
  if (topology != Topology::Independent) {
    EXPECT_EQ(declare_topology(input->schedule, topology, {}), std::nullopt);
  }
  return simulate_input(std::move(*input), std::move(options));
}

inline std::unique_ptr<Simulated> simulate_named(const schedules::Request& request,
                                                 SimulationOptions options = {}) {
  auto schedule = schedules::schedule_named(request);
  EXPECT_TRUE(schedule.has_value()) << request.name;
  return simulate_input({.form = Form::OrderFile, .schedule = std::move(*schedule)},
                        std::move(options));
}

/// Options under which messages travel so.
inline SimulationOptions over(Links links, Costs costs) {
  SimulationOptions options{.costs = std::move(costs), .ideal_links = links == Links::Ideal};
  if (links == Links::Buffered) options.check.environment.transfers = TransferMode::Buffered;
  return options;
}

/// Costs as `--cost` reads them, one text after another.
template <typename... Texts>
Costs costs(Texts... texts) {
  Costs all;
  for (const std::string& text : {std::string(texts)...}) {
    const auto settings = read_costs(text);
    EXPECT_TRUE(settings.has_value()) << text;
    for (const CostSetting& setting : *settings) all.set(setting);
  }
  return all;
}

}  // namespace capo::simulated
