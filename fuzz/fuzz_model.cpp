// A model.json, and the same text as the stages of a topology alone.
//
// A model that was read can be written and reads back as the same: as a model of its own, and as
// its author's text with costs in it, as `capo measure` leaves it.

#include "core/text/model_printer.h"
#include "core/text/model_reader.h"
#include "fuzz/bytes.h"
#include "fuzz/laws.h"
#include "sim/costs.h"
#include "testing/model_text.h"

#include <string>
#include <utility>

namespace {

using namespace capo;

// Numbers of six digits, which is what is written of a measurement.
MeasuredCosts measured(const Model& model) {
  MeasuredCosts costs{.transfer = TransferCost{.latency = 4.5, .bandwidth = 45000, .bytes = 16}};
  for (const Module& module : model.modules.list) {
    costs.modules[module.name] = {.forward = 310, .backward = 0.125, .weight = 0};
  }
  return costs;
}

Model with(Model model, const MeasuredCosts& costs) {
  for (Module& module : model.modules.list) {
    module.cost.forward = costs.modules.at(module.name).forward;
    module.cost.backward = costs.modules.at(module.name).backward;
    module.cost.weight = costs.modules.at(module.name).weight;
  }
  model.transfer = *costs.transfer;
  return model;
}

// Notes are of the author's way to write it.
void require_reads_as(const Model& model, const std::string& text, const char* words) {
  auto again = read_model(text, fuzz::limits_of_printed());
  if (again) again->notes = model.notes;
  fuzz::require(again && *again == model, words);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Source source{.name = "<fuzz>", .text = fuzz::Bytes(data, size).rest()};
  if (const auto stages = read_topology(source.text, fuzz::small_limits()); !stages) {
    fuzz::require_refused(source, stages.error());
  }
  const auto model = read_model(source.text, fuzz::small_limits());
  if (!model) {
    fuzz::require_refused(source, model.error());
    return 0;
  }
  const auto costs = costs_of(*model);
  fuzz::require(costs || !costs.error().empty(), "costs that are incomplete are said to be");
  require_reads_as(*model, testing::model_text(*model), "a model that is written is the same");
  require_reads_as(*model, with_costs(source.text, {}), "a text without new costs is the same");
  const MeasuredCosts all = measured(*model);
  require_reads_as(with(*model, all), with_costs(source.text, all),
                   "a text with costs has these and nothing else that is new");
  return 0;
}
