#include "core/model/model.h"

#include "core/base/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace capo {

namespace {

// A level with one entry speaks for all of its kind.
template <typename Level>
const typename Level::value_type* entry_of(const Level& level, std::int32_t index) {
  if (level.size() == 1) return &level.front();
  const auto at = as_index(index);
  return index >= 0 && at < level.size() ? &level[at] : nullptr;
}

}  // namespace

std::string_view name_of(DataType type) {
  constexpr std::array<std::string_view, 3> kNames{"bf16", "fp16", "fp32"};
  return kNames[as_index(type)];
}

std::string_view name_of(Splits splits) {
  constexpr std::array<std::string_view, 3> kNames{"host", "device", "input"};
  return kNames[as_index(splits)];
}

const Module* ModuleTable::of(std::int32_t rank, std::int32_t chunk, std::int32_t layer) const {
  const auto* chunks = entry_of(layers, rank);
  const auto* in_chunk = chunks == nullptr ? nullptr : entry_of(*chunks, chunk - 1);
  const auto* index = in_chunk == nullptr ? nullptr : entry_of(*in_chunk, layer);
  return index == nullptr ? nullptr : &list[as_index(*index)];
}

ModuleTable modules_of_kinds(const std::vector<ModuleKind>& kinds) {
  ModuleTable table;
  auto& chunks = table.layers.emplace_back();
  for (const ModuleKind kind : kinds) {
    auto module = std::find_if(table.list.begin(), table.list.end(),
                               [&](const Module& known) { return known.kind == kind; });
    if (module == table.list.end()) {
      module = table.list.insert(module, {.name = std::string(name_of(kind)), .kind = kind});
    }
    chunks.push_back({static_cast<std::int32_t>(module - table.list.begin())});
  }
  return table;
}

std::size_t ModuleTable::layers_told_apart(std::int32_t rank, std::int32_t chunk) const {
  const auto* chunks = entry_of(layers, rank);
  const auto* in_chunk = chunks == nullptr ? nullptr : entry_of(*chunks, chunk - 1);
  return in_chunk == nullptr ? 0 : in_chunk->size();
}

std::optional<std::string> misfit_of_groups(const std::vector<CollectiveGroup>& groups,
                                            std::size_t ranks) {
  for (const CollectiveGroup& group : groups) {
    for (const std::int32_t rank : group.members) {
      if (RankId(rank).index() < ranks) continue;
      return fmt::format("group {} has rank {} among its members, but the input has ranks 0 to {}",
                         group.name, rank, ranks - 1);
    }
  }
  return std::nullopt;
}

bool CollectiveGroup::performs(Kind kind) const {
  return std::find(actions.begin(), actions.end(), kind) != actions.end();
}

bool CollectiveGroup::exchanges() const {
  return std::any_of(actions.begin(), actions.end(), is_exchange);
}

bool declares_exchanges(const Model& declared) {
  return std::any_of(declared.groups.begin(), declared.groups.end(),
                     [](const CollectiveGroup& group) { return group.exchanges(); });
}

}  // namespace capo
