#include "tests/support/data.h"

#include "core/text/number.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace capo::testing_support {

std::string data_path(const std::string& name) {
  return std::string(CAPO_SOURCE_DIR "/tests/data/") + name;
}

nlohmann::json read_data(const std::string& name) {
  std::ifstream file(data_path(name));
  return nlohmann::json::parse(file);
}

TeList te_list_of(const nlohmann::json& order) {
  TeList list;
  for (const auto& item : order) {
    Number number;
    if (item.is_string()) {
      number = read_number(item.get<std::string>()).value();
    } else {
      number = {.value = item.get<double>(),
                .type = item.is_number_float() ? NumberType::Float : NumberType::Integer};
    }
    list.entries.push_back({.value = number.value, .type = number.type});
  }
  return list;
}

Layers layers_of(const nlohmann::json& layers) {
  if (layers.is_null()) return {.form = Layers::Form::Null};
  if (layers.is_number())
    return {.form = Layers::Form::Count, .values = {layers.get<std::int64_t>()}};
  return {.form = Layers::Form::List, .values = layers.get<std::vector<std::int64_t>>()};
}

}  // namespace capo::testing_support
