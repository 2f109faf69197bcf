// Plans that others made lie where their files say: what any plan writes is read back as it was,
// and two buffers share memory exactly if the slots of their activations or graphs are one.

#include "core/base/index.h"
#include "core/rules/given_plan.h"
#include "tests/properties/drawn_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace capo::testing {
namespace {

Plan read_back(const Drawn& drawn, const std::string& text) {
  const auto given = read_given_plan(text, {});
  if (!given) RC_FAIL(given.error().finding.message + text);
  const auto plan =
      plan_of(*given, drawn.step.table(), *drawn.step.course().map, drawn.step.course().work);
  if (!plan) RC_FAIL(plan.error().finding.message + text);
  return *plan;
}

// --- buffers -------------------------------------------------------------------------------------

std::string name_in_plan(const Buffer& of) {
  return fmt::format(R"("rank": {}, "chunk": {}, "layer": {}, "microbatch": {}, "kind": "{}")",
                     of.rank, of.chunk, of.layer, of.microbatch, name_of(of.kind));
}

// A buffer that is another's tensor has no place of its own.
struct Shared {
  BufferId maker = kNoBuffer;
  BufferId reader = kNoBuffer;
};

std::string buffers_of(const BufferTable& table, const Plan& plan, const Shared& shared = {}) {
  std::vector<std::string> all;
  for (BufferId id = 0; id < table.all(); ++id) {
    const std::int64_t address = plan.address[id];
    if (address == kNowhere || id == shared.reader) continue;
    const Buffer of = table.at(id);
    const std::string also = id == shared.maker ? fmt::format(R"(, "also": [{{{}}}])",
                                                              name_in_plan(table.at(shared.reader)))
                                                : "";
    all.push_back(fmt::format(R"({{{}, "region": "{}", "offset": {}, "bytes": {}{}}})",
                              name_in_plan(of), name_of(region_of(address)), offset_of(address),
                              table.bytes(of), also));
  }
  return fmt::format(R"({{"buffers": [{}]}})", fmt::join(all, ","));
}

RC_GTEST_PROP(GivenPlans, AreReadBackAsTheyAreWritten, ()) {
  const Drawn drawn;
  Plan plan = drawn.step.plan(PlanKind::Safe);
  for (std::int64_t& address : plan.address) {
    if (address != kNowhere && below(4) == 0)
      address = address_in(region_of(address), below(1'000'000));
  }
  RC_ASSERT(read_back(drawn, buffers_of(drawn.step.table(), plan)).address == plan.address);
}

// Whether a layer reads what its neighbour in the same chunk and microbatch makes.
bool are_neighbours(const Buffer& maker, const Buffer& reader) {
  if (maker.rank != reader.rank || maker.chunk != reader.chunk ||
      maker.microbatch != reader.microbatch)
    return false;
  if (maker.kind == BufferKind::Output)
    return reader.kind == BufferKind::StaticInput && reader.layer - maker.layer == 1;
  return maker.kind == BufferKind::GradInput && reader.kind == BufferKind::GradOutput &&
         maker.layer - reader.layer == 1;
}

// A buffer is given to each of its neighbours, and to any other of its size.
RC_GTEST_PROP(GivenPlans, LetTwoBuffersBeOneTensorWhereOneReadsWhatTheOtherMakes, ()) {
  const Drawn drawn;
  const BufferTable& table = drawn.step.table();
  const Plan plan = drawn.step.plan(PlanKind::Safe);
  std::vector<BufferId> placed;
  for (BufferId id = 0; id < table.size(); ++id) {
    if (plan.address[id] != kNowhere) placed.push_back(id);
  }
  if (placed.empty()) return;
  const auto any = [&] {
    return placed[as_index(below(static_cast<std::int32_t>(placed.size())))];
  };
  const BufferId maker = any();
  const BufferId other = any();
  for (const BufferId reader : placed) {
    const bool neighbours = are_neighbours(table.at(maker), table.at(reader));
    if (reader != other && !neighbours) continue;
    if (reader == maker || table.bytes(reader) != table.bytes(maker)) continue;
    const auto given = read_given_plan(buffers_of(table, plan, {maker, reader}), {});
    if (!given) RC_FAIL(given.error().finding.message);
    const auto read = plan_of(*given, table, *drawn.step.course().map, drawn.step.course().work);
    RC_CLASSIFY(neighbours);
    RC_ASSERT(read.has_value() == neighbours);
    if (neighbours) RC_ASSERT(read->tensor_of(reader) == maker);
  }
}

// --- slots ---------------------------------------------------------------------------------------

// A share of an arena: buffers that lie there one behind another.
struct Share {
  std::array<std::int32_t, 5> arena;  // rank first
  std::array<std::int32_t, 3> row;
};

bool overlap(const BufferTable& table, const Plan& plan, BufferId a, BufferId b) {
  const std::int64_t of_a = plan.address[a];
  const std::int64_t of_b = plan.address[b];
  return of_a < of_b + table.bytes(b) && of_b < of_a + table.bytes(a);
}

// Rows of one arena begin together, and no other two buffers share memory.
template <typename ShareOf>
void expect_shared(const Drawn& drawn, const Plan& plan, ShareOf share_of) {
  const BufferTable& table = drawn.step.table();
  std::map<std::array<std::int32_t, 5>, std::map<std::array<std::int32_t, 3>, std::int64_t>> begin;
  for (BufferId a = 0; a < table.size(); ++a) {
    if (plan.address[a] == kNowhere) continue;
    const std::optional<Share> own = share_of(table.at(a));
    if (own) {
      const auto at = begin[own->arena].try_emplace(own->row, plan.address[a]).first;
      at->second = std::min(at->second, plan.address[a]);
    }
    for (BufferId b = a + 1; b < table.size() && table.at(b).rank == table.at(a).rank; ++b) {
      if (plan.address[b] == kNowhere || !overlap(table, plan, a, b)) continue;
      const std::optional<Share> other = share_of(table.at(b));
      RC_ASSERT(own.has_value());
      RC_ASSERT(other.has_value());
      RC_ASSERT(own->arena == other->arena);
      RC_ASSERT(own->row != other->row);
    }
  }
  bool shared = false;
  for (const auto& [arena, rows] : begin) {
    for (const auto& [row, address] : rows) RC_ASSERT(address == rows.begin()->second);
    shared |= rows.size() > 1U;
  }
  RC_CLASSIFY(shared);
}

bool is_kept(BufferKind kind) {
  return kind == BufferKind::StaticInput || kind == BufferKind::Activations;
}

// The buffer that is read last lies at the beginning, where all rows of the arena lie.
void expect_last_read_first(const Drawn& drawn, const Plan& plan) {
  const BufferTable& table = drawn.step.table();
  for (BufferId id = 0; id < table.size(); ++id) {
    Buffer of = table.at(id);
    if (of.kind != BufferKind::StaticInput) continue;
    of.kind = BufferKind::Activations;
    const BufferId other = table.id(of.rank, of.chunk, of.layer, of.microbatch, of.kind);
    if (plan.address[id] == kNowhere || plan.address[other] == kNowhere) continue;
    RC_ASSERT((plan.address[id] < plan.address[other]) ==
              table.facts(of.rank, of.chunk, of.layer).aliases.input);
  }
}

RC_GTEST_PROP(GivenPlans, ShareWhatTorchsSlotsSay, ()) {
  const Drawn drawn;
  const BufferTable& table = drawn.step.table();
  const StageMap& map = *drawn.step.course().map;
  std::map<std::int32_t, std::vector<std::int32_t>> slots;  // by stage
  std::map<std::int32_t, std::vector<std::string>> ranks;
  for (std::int32_t stage = 0; stage < map.stages(); ++stage) {
    for (std::int32_t m = 0; m < table.microbatches(); ++m) slots[stage].push_back(below(4));
    ranks[map.home(stage).rank].push_back(
        fmt::format("\"{}\": [{}]", stage, fmt::join(slots[stage], ", ")));
  }
  std::vector<std::string> all;
  for (const auto& [rank, stages] : ranks)
    all.push_back(fmt::format("\"{}\": {{{}}}", rank, fmt::join(stages, ", ")));
  const Plan plan = read_back(drawn, fmt::format(R"({{"slots": {{{}}}}})", fmt::join(all, ", ")));
  std::map<std::array<std::int32_t, 2>, std::int32_t> stage_at;  // by rank and chunk
  for (std::int32_t stage = 0; stage < map.stages(); ++stage)
    stage_at[{map.home(stage).rank, map.home(stage).chunk}] = stage;
  expect_shared(drawn, plan, [&](const Buffer& of) -> std::optional<Share> {
    if (!is_kept(of.kind)) return std::nullopt;
    const std::int32_t slot = slots[stage_at.at({of.rank, of.chunk})][as_index(of.microbatch)];
    return Share{{of.rank, slot}, {of.chunk, of.microbatch}};
  });
  expect_last_read_first(drawn, plan);
}

RC_GTEST_PROP(GivenPlans, ShareWhatSlotsOfGraphsSay, ()) {
  const Drawn drawn;
  const BufferTable& table = drawn.step.table();
  std::map<std::array<std::int32_t, 4>, std::array<std::int32_t, 7>> slots;  // by graph
  std::vector<std::string> ranks;
  for (std::int32_t rank = 0; as_index(rank) < table.ranks(); ++rank) {
    std::vector<std::string> graphs;
    for (std::int32_t chunk = 1; as_index(chunk) <= table.chunks(rank); ++chunk) {
      for (std::int32_t m = 0; m < table.microbatches(); ++m) {
        for (std::int32_t layer = 0; layer < table.layers(rank, chunk); ++layer) {
          auto& numbers = slots[{rank, chunk, m, layer}];
          for (std::int32_t& number : numbers) number = below(3);
          graphs.push_back(fmt::format("[{}]", fmt::join(numbers, ", ")));
        }
      }
    }
    ranks.push_back(fmt::format("\"{}\": [{}]", rank, fmt::join(graphs, ", ")));
  }
  const Plan plan =
      read_back(drawn, fmt::format(R"({{"graph_memory_slots": {{{}}}}})", fmt::join(ranks, ", ")));
  expect_shared(drawn, plan, [&](const Buffer& of) -> std::optional<Share> {
    const auto& [saved, slot, branch, chunk, layer, group, grad] =
        slots.at({of.rank, of.chunk, of.microbatch, of.layer});
    const std::array row{of.chunk, of.microbatch, of.layer};
    if (is_kept(of.kind)) return Share{{of.rank, 0, saved}, row};
    if (of.kind == BufferKind::Output) return Share{{of.rank, 1, slot, chunk, layer}, row};
    if (of.kind == BufferKind::GradInput) return Share{{of.rank, 2, grad}, row};
    return std::nullopt;
  });
  expect_last_read_first(drawn, plan);
}

}  // namespace
}  // namespace capo::testing
