#include "core/rules/families.h"
#include "core/rules/rule.h"
#include "core/text/refusal.h"

#include <algorithm>
#include <span>
#include <vector>

namespace capo {

namespace {

// The rules of the readers, which have refused the input before any other rule could run.
constexpr Rule kReading[] = {
    {kMalformedRule, "malformed", "the input is not in the language", Family::Input, Pass::Reading,
     nullptr},
    {kLimitRule, "limit", "the input is larger than a limit allows", Family::Input, Pass::Reading,
     nullptr},
};

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  const auto append = [&all](std::span<const Rule> family) {
    all.insert(all.end(), family.begin(), family.end());
  };
  append(kReading);
  // One order by itself, then the placement.
  append(rules::entry_rules());
  append(rules::count_rules());
  append(rules::microbatch_rules());
  append(rules::order_rules());
  append(rules::placement_rules());
  // All ranks together.
  append(rules::stage_rules());
  append(rules::routing_rules());
  append(rules::transfer_rules());
  append(rules::deadlock_rules());
  append(rules::send_wait_rules());
  // Declared modules.
  append(rules::module_gradient_rules());
  append(rules::gradient_rules());
  append(rules::reduction_wait_rules());
  append(rules::capture_rules());
  append(rules::quantization_rules());
  // Memory, under a plan.
  append(rules::buffer_rules());
  append(rules::stream_rules());
  append(rules::replay_rules());
  append(rules::reset_rules());
  append(rules::stash_rules());
  return all;
}

}  // namespace

std::span<const Rule> catalogue() {
  static const std::vector<Rule> all = all_rules();
  return all;
}

const Rule* find_rule(std::string_view id_or_name) {
  const std::span<const Rule> all = catalogue();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Rule& rule) {
    return rule.id == id_or_name || rule.name == id_or_name;
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace capo
