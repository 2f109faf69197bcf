#include "core/rules/given_plan.h"

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/plan/accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace capo {

namespace {

std::string words_of(const Buffer& buffer) {
  return fmt::format("the {} of rank {}, chunk {}, layer {}, microbatch {}", name_of(buffer.kind),
                     buffer.rank, buffer.chunk, buffer.layer, buffer.microbatch);
}

// Puts buffers at their addresses.
class Placing {
 public:
  Placing(const BufferTable& table, const std::vector<std::vector<Work>>& work)
      : table_(table), work_(work), used_(table.size()) {
    plan_.kind = PlanKind::Given;
    plan_.address.assign(table.size(), kNowhere);
    for_each_written([this](std::size_t, const Work&, BufferId id) { used_[id] = true; });
  }

  std::optional<Refusal> put(const GivenBuffer& given) {
    const Buffer& of = given.buffer;
    const std::string name = words_of(of);
    if (!exists(of)) return malformed(given.span, fmt::format("there is no {}", name.substr(4)));
    const BufferId id = table_.id(of.rank, of.chunk, of.layer, of.microbatch, of.kind);
    if (!used_[id]) return malformed(given.span, fmt::format("the orders never use {}", name));
    if (given.bytes != table_.bytes(of)) {
      return malformed(given.span,
                       fmt::format("{} for {} here, and {} by the model", size_words(given.bytes),
                                   name, size_words(table_.bytes(of))));
    }
    if (plan_.address[id] != kNowhere)
      return malformed(given.span, fmt::format("a second place for {}", name));
    if (given.bytes > 0) plan_.address[id] = address_in(given.region, given.offset);
    return std::nullopt;
  }

  // The buffers of an activation, the one that is read last at the slot's beginning.
  void put_activation(std::int32_t rank, std::int32_t chunk, std::int32_t microbatch,
                      std::int64_t offset) {
    for_each_kept(rank, chunk, [&](std::int32_t layer, BufferKind kind, std::int64_t bytes) {
      const BufferId id = table_.id(rank, chunk, layer, microbatch, kind);
      if (used_[id] && bytes > 0) plan_.address[id] = address_in(Region::Pool, offset);
      offset += bytes;
    });
  }

  // Gives every buffer that has no place one of its own, behind these ends of the ranks' memory.
  void put_the_rest(std::vector<std::int64_t> ends) {
    for (BufferId id = 0; id < table_.size(); ++id) {
      if (!has_no_place(id)) continue;
      std::int64_t& end = ends[as_index(table_.at(id).rank)];
      plan_.address[id] = address_in(Region::Pool, end);
      end += table_.bytes(id);
    }
  }

  [[nodiscard]] std::int64_t bytes_of_activation(std::int32_t rank, std::int32_t chunk) const {
    std::int64_t sum = 0;
    for_each_kept(rank, chunk,
                  [&sum](std::int32_t, BufferKind, std::int64_t bytes) { sum += bytes; });
    return sum;
  }

  // A buffer that the orders use and that has no place.
  [[nodiscard]] std::optional<Buffer> missing() const {
    for (BufferId id = 0; id < table_.size(); ++id) {
      if (has_no_place(id)) return table_.at(id);
    }
    return std::nullopt;
  }

  // The plan, with the memory that its buffers reach over.
  Plan finished() {
    plan_.ranks.resize(table_.ranks());
    std::vector<std::map<Region, std::int64_t>> ends(table_.ranks());
    for_each_written([&](std::size_t rank, const Work& work, BufferId id) {
      const std::int64_t address = plan_.address[id];
      if (address == kNowhere) return;
      std::int64_t& end = ends[rank][region_of(address)];
      const std::int64_t more = offset_of(address) + table_.bytes(id) - end;
      if (more <= 0) return;
      end += more;
      plan_.ranks[rank].pool += more;
      plan_.ranks[rank].peak_entry = work.entry;
    });
    for (std::size_t r = 0; r < table_.ranks(); ++r) {
      for (const LayerFacts& facts : table_.facts_of(static_cast<std::int32_t>(r)))
        plan_.ranks[r].weights += facts.weight_bytes;
    }
    return std::move(plan_);
  }

 private:
  // Whether the orders use a buffer that is nowhere yet.
  [[nodiscard]] bool has_no_place(BufferId id) const {
    return used_[id] && plan_.address[id] == kNowhere && table_.bytes(id) > 0;
  }

  [[nodiscard]] std::string size_words(std::int64_t bytes) const {
    return counted(bytes, table_.sized() ? "byte" : "unit");
  }

  [[nodiscard]] bool exists(const Buffer& of) const {
    return as_index(of.rank) < table_.ranks() && as_index(of.chunk) <= table_.chunks(of.rank) &&
           of.layer < table_.layers(of.rank, of.chunk) && of.microbatch < table_.microbatches();
  }

  // Calls visit(rank, work, buffer) for each buffer that a work writes, in the orders' order.
  template <typename Visit>
  void for_each_written(Visit visit) const {
    for (std::size_t r = 0; r < work_.size(); ++r) {
      const auto rank = static_cast<std::int32_t>(r);
      for (const Work& work : work_[r]) {
        for_each_layer(table_, rank, work, [&](std::int32_t layer) {
          for_each_access(
              table_, rank, work, layer, [&](BufferId id) { visit(r, work, id); }, [](BufferId) {});
        });
      }
    }
  }

  template <typename Visit>
  void for_each_kept(std::int32_t rank, std::int32_t chunk, Visit visit) const {
    for (std::int32_t layer = 0; layer < table_.layers(rank, chunk); ++layer) {
      const LayerFacts& facts = table_.facts(rank, chunk, layer);
      std::array kinds{BufferKind::StaticInput, BufferKind::Activations};
      if (!facts.aliases.input) std::swap(kinds[0], kinds[1]);
      for (const BufferKind kind : kinds) visit(layer, kind, facts.bytes[as_index(kind)]);
    }
  }

  const BufferTable& table_;
  const std::vector<std::vector<Work>>& work_;
  std::vector<bool> used_;  // by buffer: some work writes it
  Plan plan_;
};

Read<Plan> with_buffers(Placing placing, const std::vector<GivenBuffer>& buffers, Span span) {
  for (const GivenBuffer& buffer : buffers) {
    if (auto refusal = placing.put(buffer)) return std::move(*refusal);
  }
  if (const auto missing = placing.missing()) {
    return malformed(
        span, fmt::format("no place for {} here, and the orders use it", words_of(*missing)));
  }
  return placing.finished();
}

// Slots of a rank lie one behind another, each as large as its largest activation.
class SlotPlacing {
 public:
  SlotPlacing(Placing placing, const BufferTable& table, const StageMap& map)
      : placing_(std::move(placing)), table_(table), map_(map), sizes_(table.ranks()) {}

  Read<Plan> placed(const std::vector<GivenSlots>& all, Span span) {
    for (const GivenSlots& given : all) {
      if (auto refusal = refuse(given)) return std::move(*refusal);
      size(given);
    }
    if (all.size() < as_index(map_.stages())) return malformed(span, missing(all));
    std::vector<std::int64_t> ends;
    for (auto& rank : sizes_) ends.push_back(stack(rank));
    for (const GivenSlots& given : all) put(given);
    placing_.put_the_rest(ends);
    return placing_.finished();
  }

 private:
  struct Slot {
    std::int64_t bytes = 0;
    std::int64_t offset = 0;
  };
  using Slots = std::map<std::int32_t, Slot>;

  [[nodiscard]] std::optional<Refusal> refuse(const GivenSlots& given) const {
    if (given.stage >= map_.stages() || map_.home(given.stage).rank != given.rank) {
      return malformed(given.span, fmt::format("rank {} has no stage {}", given.rank, given.stage));
    }
    if (std::cmp_not_equal(given.slots.size(), table_.microbatches())) {
      return malformed(given.span,
                       fmt::format("stage {} has {} here, and {} in the orders", given.stage,
                                   counted(static_cast<std::int64_t>(given.slots.size()), "slot"),
                                   counted(table_.microbatches(), "microbatch", "microbatches")));
    }
    return std::nullopt;
  }

  void size(const GivenSlots& given) {
    const std::int64_t bytes =
        placing_.bytes_of_activation(given.rank, map_.home(given.stage).chunk);
    for (const std::int32_t number : given.slots) {
      Slot& slot = sizes_[as_index(given.rank)][number];
      slot.bytes = std::max(slot.bytes, bytes);
    }
  }

  // Returns the end of the last one.
  static std::int64_t stack(Slots& slots) {
    std::int64_t offset = 0;
    for (auto& [number, slot] : slots) {
      slot.offset = offset;
      offset += slot.bytes;
    }
    return offset;
  }

  void put(const GivenSlots& given) {
    for (std::size_t m = 0; m < given.slots.size(); ++m) {
      placing_.put_activation(given.rank, map_.home(given.stage).chunk,
                              static_cast<std::int32_t>(m),
                              sizes_[as_index(given.rank)].at(given.slots[m]).offset);
    }
  }

  [[nodiscard]] std::string missing(const std::vector<GivenSlots>& all) const {
    std::int32_t stage = 0;
    while (std::any_of(all.begin(), all.end(),
                       [stage](const GivenSlots& given) { return given.stage == stage; })) {
      ++stage;
    }
    return fmt::format("stage {} of rank {} has no slots here", stage, map_.home(stage).rank);
  }

  Placing placing_;
  const BufferTable& table_;
  const StageMap& map_;
  std::vector<Slots> sizes_;  // by rank
};

}  // namespace

Read<Plan> plan_of(const GivenPlan& given, const BufferTable& table, const StageMap& map,
                   const std::vector<std::vector<Work>>& work) {
  Placing placing(table, work);
  if (const auto* buffers = std::get_if<std::vector<GivenBuffer>>(&given.places))
    return with_buffers(std::move(placing), *buffers, given.span);
  return SlotPlacing(std::move(placing), table, map)
      .placed(std::get<std::vector<GivenSlots>>(given.places), given.span);
}

}  // namespace capo
