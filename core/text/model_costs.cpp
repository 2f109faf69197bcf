#include "core/text/model_costs.h"

#include "core/base/assert.h"
#include "core/text/number.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

double rounded(double value) {
  return read_number(fmt::format("{:.6g}", value))->value;
}

void state(Json& object, const char* name, const std::optional<double>& value) {
  if (value) object[name] = rounded(*value);
}

// Makes the object of that name if there is none: null would turn into one by itself, but not if
// memory runs out.
Json& object_in(Json& json, const char* name) {
  return json.emplace(name, Json::object()).first.value();
}

}  // namespace

std::string with_costs(std::string_view model, const MeasuredCosts& costs) {
  Json json = Json::parse(model, nullptr, false);
  CAPO_ASSERT(json.is_object(), "a model that was read is an object");
  for (const auto& [name, cost] : costs.modules) {
    Json& stated = object_in(json["modules"][name], "cost");
    state(stated, "forward", cost.forward);
    state(stated, "backward", cost.backward);
    state(stated, "weight", cost.weight);
    state(stated, "dispatch", cost.dispatch);
    state(stated, "combine", cost.combine);
  }
  if (costs.transfer) {
    Json& stated = object_in(json, "transfer");
    state(stated, "latency", costs.transfer->latency);
    state(stated, "bandwidth", costs.transfer->bandwidth);
    if (costs.transfer->bytes) stated["bytes"] = *costs.transfer->bytes;
  }
  return json.dump(2) + "\n";
}

}  // namespace capo
