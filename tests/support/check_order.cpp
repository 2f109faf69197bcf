#include "tests/support/check_order.h"

#include <nlohmann/json.hpp>

namespace capo::testing_support {

using nlohmann::json;

Outcome check_order(const std::string& order, const std::vector<std::string>& flags) {
  std::vector<std::string> arguments{"check", "--order", order};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return run_capo(arguments);
}

json report_of(const std::string& order, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--format", "json"});
  return json::parse(check_order(order, flags).out);
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

}  // namespace capo::testing_support
