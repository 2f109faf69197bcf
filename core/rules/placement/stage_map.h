// Which chunks of which ranks hold each stage, under a topology that says so.

#pragma once

#include "core/rules/context.h"

#include <cstdint>
#include <map>
#include <vector>

namespace capo::rules {

struct Holder {
  std::int32_t rank;
  std::int32_t chunk;
};

/// Holders by stage, ranks ascending; empty where chunks are not wired to stages. A stage that the
/// model does not have is left out: it is stage_unknown's.
[[nodiscard]] std::map<std::int32_t, std::vector<Holder>> holders_by_stage(const Context& context);

}  // namespace capo::rules
