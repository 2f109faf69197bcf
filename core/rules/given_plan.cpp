#include "core/rules/given_plan.h"

#include "core/base/index.h"
#include "core/base/plural.h"
#include "core/plan/accesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <span>
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
  Placing(const BufferTable& table, const StageMap& map, const std::vector<std::vector<Work>>& work)
      : table_(table), work_(work), used_(table.all()) {
    plan_.kind = PlanKind::Given;
    plan_.address.assign(table.all(), kNowhere);
    for_each_written([this](std::size_t, const Work&, BufferId id) { used_[id] = true; });
    for_each_received(map, [this](BufferId id) { used_[id] = true; });
  }

  std::optional<Refusal> put(const GivenBuffer& given) {
    const Buffer& of = given.buffer;
    const std::string name = words_of(of);
    if (!exists(of)) return malformed(given.span, fmt::format("there is no {}", name.substr(4)));
    const BufferId id = id_of(of);
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

  // Puts what is another's tensor at the place of that.
  std::optional<Refusal> put_also(const GivenBuffer& given) {
    for (const Buffer& other : given.also) {
      GivenBuffer same = given;
      same.buffer = other;
      if (auto refusal = put(same)) return refusal;
      if (!reads_what_is_made(given.buffer, other)) {
        return malformed(given.span, fmt::format("{} is no tensor of {}, which is made elsewhere",
                                                 words_of(given.buffer), words_of(other)));
      }
      if (plan_.tensor.empty()) {
        plan_.tensor.resize(table_.all());
        std::iota(plan_.tensor.begin(), plan_.tensor.end(), BufferId{0});
      }
      plan_.tensor[id_of(other)] = id_of(given.buffer);
    }
    return std::nullopt;
  }

  // Puts buffers that lie one behind another from an offset on. Where an order has no error each of
  // them is used.
  void put_in_a_row(std::span<const BufferId> row, std::int64_t offset) {
    for (const BufferId id : row) {
      const std::int64_t bytes = table_.bytes(id);
      if (bytes > 0) plan_.address[id] = address_in(Region::Pool, offset);
      offset += bytes;
    }
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
  [[nodiscard]] BufferId id_of(const Buffer& of) const {
    return is_received(of.kind) ? table_.received(of.rank, of.chunk, of.microbatch, of.kind)
                                : table_.id(of.rank, of.chunk, of.layer, of.microbatch, of.kind);
  }

  // Whether a layer reads what its neighbour makes: an output, or a grad input.
  static bool reads_what_is_made(const Buffer& made, const Buffer& read) {
    Buffer next = made;
    next.kind = read.kind;
    next.layer = read.layer;
    const bool forwards = made.kind == BufferKind::Output && read.kind == BufferKind::StaticInput;
    const bool back = made.kind == BufferKind::GradInput && read.kind == BufferKind::GradOutput;
    return next == read &&
           ((forwards && read.layer == made.layer + 1) || (back && read.layer + 1 == made.layer));
  }

  // Whether the orders use a buffer that is nowhere yet.
  [[nodiscard]] bool has_no_place(BufferId id) const {
    return used_[id] && plan_.address[id] == kNowhere && table_.bytes(id) > 0;
  }

  [[nodiscard]] std::string size_words(std::int64_t bytes) const {
    return counted(bytes, table_.sized() ? "byte" : "unit");
  }

  [[nodiscard]] bool exists(const Buffer& of) const {
    if (!is_received(of.kind) && as_index(of.kind) >= table_.kinds()) return false;
    return as_index(of.rank) < table_.ranks() && as_index(of.chunk) <= table_.chunks(of.rank) &&
           of.layer < (is_received(of.kind) ? 1 : table_.layers(of.rank, of.chunk)) &&
           of.microbatch < table_.microbatches();
  }

  // Calls visit(buffer) for each buffer that another rank's stage sends to.
  template <typename Visit>
  void for_each_received(const StageMap& map, Visit visit) const {
    for (StageId stage = 0; stage < map.stages(); ++stage) {
      for (const Kind kind : {Kind::ReceiveForward, Kind::ReceiveBackward}) {
        const StageId sender = map.neighbour(kind, stage);
        if (sender == kNoStage || map.same_rank(sender, stage)) continue;
        const auto [rank, chunk] = map.home(stage);
        for (std::int32_t m = 0; m < table_.microbatches(); ++m)
          visit(table_.received(rank, chunk, m, received_kind(kind)));
      }
    }
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

  const BufferTable& table_;
  const std::vector<std::vector<Work>>& work_;
  std::vector<bool> used_;  // by buffer: some work writes it
  Plan plan_;
};

Read<Plan> with_buffers(Placing placing, const std::vector<GivenBuffer>& buffers, Span span) {
  for (const GivenBuffer& buffer : buffers) {
    if (auto refusal = placing.put(buffer)) return std::move(*refusal);
    if (auto refusal = placing.put_also(buffer)) return std::move(*refusal);
  }
  if (const auto missing = placing.missing()) {
    return malformed(
        span, fmt::format("no place for {} here, and the orders use it", words_of(*missing)));
  }
  return placing.finished();
}

// Arenas of a rank lie one behind another, each as large as the largest row that shares it.
class Arenas {
 public:
  using Key = std::array<std::int32_t, 4>;  // rows of a rank that have one key share an arena

  Arenas(Placing placing, const BufferTable& table)
      : placing_(std::move(placing)), table_(table), arenas_(table.ranks()) {}

  void share(std::int32_t rank, const Key& key, std::vector<BufferId> row) {
    std::int64_t bytes = 0;
    for (const BufferId id : row) bytes += table_.bytes(id);
    Arena& arena = arenas_[as_index(rank)][key];
    arena.bytes = std::max(arena.bytes, bytes);
    arena.rows.push_back(std::move(row));
  }

  // The plan, in which a buffer of no row has memory of its own.
  Plan placed() {
    std::vector<std::int64_t> ends;
    for (const auto& rank : arenas_) {
      std::int64_t offset = 0;
      for (const auto& [key, arena] : rank) {
        for (const auto& row : arena.rows) placing_.put_in_a_row(row, offset);
        offset += arena.bytes;
      }
      ends.push_back(offset);
    }
    placing_.put_the_rest(std::move(ends));
    return placing_.finished();
  }

 private:
  struct Arena {
    std::int64_t bytes = 0;
    std::vector<std::vector<BufferId>> rows;
  };

  Placing placing_;
  const BufferTable& table_;
  std::vector<std::map<Key, Arena>> arenas_;  // by rank
};

// The buffers that a layer's forward keeps, the one that is read last at their beginning.
std::array<BufferId, 2> kept_by(const BufferTable& table, std::int32_t rank, std::int32_t chunk,
                                std::int32_t layer, std::int32_t microbatch) {
  const auto of = [&](BufferKind kind) { return table.id(rank, chunk, layer, microbatch, kind); };
  std::array kept{of(BufferKind::StaticInput), of(BufferKind::Activations)};
  if (!table.facts(rank, chunk, layer).aliases.input) std::swap(kept[0], kept[1]);
  return kept;
}

std::optional<Refusal> refuse(const GivenSlots& given, const BufferTable& table,
                              const StageMap& map) {
  if (given.stage >= map.stages() || map.home(given.stage).rank != given.rank) {
    return malformed(given.span, fmt::format("rank {} has no stage {}", given.rank, given.stage));
  }
  if (std::cmp_not_equal(given.slots.size(), table.microbatches())) {
    return malformed(given.span,
                     fmt::format("stage {} has {} here, and {} in the orders", given.stage,
                                 counted(static_cast<std::int64_t>(given.slots.size()), "slot"),
                                 counted(table.microbatches(), "microbatch", "microbatches")));
  }
  return std::nullopt;
}

std::string missing_stage(const std::vector<GivenSlots>& all, const StageMap& map) {
  std::int32_t stage = 0;
  while (std::any_of(all.begin(), all.end(),
                     [stage](const GivenSlots& given) { return given.stage == stage; })) {
    ++stage;
  }
  return fmt::format("stage {} of rank {} has no slots here", stage, map.home(stage).rank);
}

// A slot of torch's holds what all layers of a stage keep.
Read<Plan> with_slots(Arenas arenas, const std::vector<GivenSlots>& all, Span span,
                      const BufferTable& table, const StageMap& map) {
  for (const GivenSlots& given : all) {
    if (auto refusal = refuse(given, table, map)) return std::move(*refusal);
    const std::int32_t chunk = map.home(given.stage).chunk;
    for (std::int32_t m = 0; m < table.microbatches(); ++m) {
      std::vector<BufferId> row;
      for (std::int32_t layer = 0; layer < table.layers(given.rank, chunk); ++layer) {
        for (const BufferId id : kept_by(table, given.rank, chunk, layer, m)) row.push_back(id);
      }
      arenas.share(given.rank, {given.slots[as_index(m)]}, std::move(row));
    }
  }
  if (all.size() < as_index(map.stages())) return malformed(span, missing_stage(all, map));
  return arenas.placed();
}

// The numbers that share an arena are apart for these.
enum class ArenaOf : std::uint8_t { Saved, Output, UserGrad };

void share_graph(Arenas& arenas, const BufferTable& table, const Buffer& of,
                 const GraphSlot& slot) {
  const auto id = [&](BufferKind kind) {
    return table.id(of.rank, of.chunk, of.layer, of.microbatch, kind);
  };
  const auto key = [](ArenaOf what, std::int32_t a, std::int32_t b = 0, std::int32_t c = 0) {
    return Arenas::Key{static_cast<std::int32_t>(what), a, b, c};
  };
  const auto kept = kept_by(table, of.rank, of.chunk, of.layer, of.microbatch);
  arenas.share(of.rank, key(ArenaOf::Saved, slot.saved_arena), {kept.begin(), kept.end()});
  arenas.share(of.rank, key(ArenaOf::Output, slot.physical_slot, slot.model_chunk, slot.layer),
               {id(BufferKind::Output)});
  arenas.share(of.rank, key(ArenaOf::UserGrad, slot.user_grad_arena), {id(BufferKind::GradInput)});
}

// Calls visit(graph) for a rank's graphs in TransformerEngine's order: by chunk, microbatch, layer.
template <typename Visit>
void for_each_graph(const BufferTable& table, std::int32_t rank, Visit visit) {
  for (std::int32_t chunk = 1; std::cmp_less_equal(chunk, table.chunks(rank)); ++chunk) {
    for (std::int32_t m = 0; m < table.microbatches(); ++m) {
      for (std::int32_t layer = 0; layer < table.layers(rank, chunk); ++layer)
        visit(Buffer{.rank = rank, .chunk = chunk, .layer = layer, .microbatch = m});
    }
  }
}

std::optional<Refusal> refuse(const GivenGraphSlots& given, const BufferTable& table) {
  if (as_index(given.rank) >= table.ranks())
    return malformed(given.span, fmt::format("there is no rank {}", given.rank));
  std::size_t graphs = 0;
  for_each_graph(table, given.rank, [&graphs](const Buffer&) { ++graphs; });
  if (given.slots.size() == graphs) return std::nullopt;
  return malformed(given.span,
                   fmt::format("rank {} has {} here, and {} in the orders", given.rank,
                               counted(static_cast<std::int64_t>(given.slots.size()), "slot"),
                               counted(static_cast<std::int64_t>(graphs), "graph")));
}

std::string missing_rank(const std::vector<GivenGraphSlots>& all) {
  std::int32_t rank = 0;
  while (std::any_of(all.begin(), all.end(),
                     [rank](const GivenGraphSlots& given) { return given.rank == rank; })) {
    ++rank;
  }
  return fmt::format("rank {} has no slots here", rank);
}

Read<Plan> with_graph_slots(Arenas arenas, const std::vector<GivenGraphSlots>& all, Span span,
                            const BufferTable& table) {
  for (const GivenGraphSlots& given : all) {
    if (auto refusal = refuse(given, table)) return std::move(*refusal);
    std::size_t at = 0;
    for_each_graph(table, given.rank, [&](const Buffer& graph) {
      share_graph(arenas, table, graph, given.slots[at++]);
    });
  }
  if (all.size() < table.ranks()) return malformed(span, missing_rank(all));
  return arenas.placed();
}

}  // namespace

Read<Plan> plan_of(const GivenPlan& given, const BufferTable& table, const StageMap& map,
                   const std::vector<std::vector<Work>>& work) {
  Placing placing(table, map, work);
  if (const auto* buffers = std::get_if<std::vector<GivenBuffer>>(&given.places))
    return with_buffers(std::move(placing), *buffers, given.span);
  Arenas arenas(std::move(placing), table);
  if (const auto* slots = std::get_if<std::vector<GivenSlots>>(&given.places))
    return with_slots(std::move(arenas), *slots, given.span, table, map);
  return with_graph_slots(std::move(arenas), std::get<std::vector<GivenGraphSlots>>(given.places),
                          given.span, table);
}

}  // namespace capo
