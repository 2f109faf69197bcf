#include "testing/generators/arbitrary_table.h"

#include "core/base/index.h"
#include "core/frameworks/torch/csv_printer.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <span>

namespace capo::testing {

namespace {

// Rows whose entries hold stages where a schedule has chunks, and I for every input half.
struct RawTable {
  std::vector<std::vector<Entry>> rows;
  std::vector<std::int32_t> owners;  // rank of each stage; empty: not declared
  std::optional<std::int32_t> microbatches;
  std::optional<std::int32_t> stages;
};

constexpr std::array kWords{
    Kind::Forward,       Kind::Forward,        Kind::Backward,    Kind::Backward,
    Kind::BackwardInput, Kind::BackwardWeight, Kind::SendForward, Kind::ReceiveBackward,
    Kind::Unshard,       Kind::ReduceGradient, Kind::Idle};

Entry draw_entry(Dice& dice) {
  Entry entry{.kind = dice.pick(std::span<const Kind>(kWords))};
  if (entry.kind == Kind::Idle) return entry;
  entry.chunk = dice.between(0, 5);
  if (has_microbatch(entry.kind) && !dice.one_in(15)) entry.microbatch = dice.between(0, 5);
  return entry;
}

// The text of such a row is `""`, which the reader takes for a blank line.
bool is_lone_idle(const std::vector<Entry>& row) {
  return row.size() == 1 && row.front().kind == Kind::Idle;
}

RawTable draw_raw(Dice& dice) {
  RawTable table;
  table.rows.resize(1 + dice.below(4));
  for (auto& row : table.rows) {
    row.resize(dice.below(11));
    for (Entry& entry : row) entry = draw_entry(dice);
    draw_composites(dice, row);
  }
  if (dice.one_in(2)) {
    table.owners.resize(1 + dice.below(6));
    for (std::int32_t& owner : table.owners)
      owner = static_cast<std::int32_t>(dice.below(table.rows.size()));
  }
  if (dice.one_in(2)) table.microbatches = dice.between(1, 8);
  if (table.owners.empty() && dice.one_in(2)) table.stages = dice.between(1, 20);
  for (auto& row : table.rows) {
    if (is_lone_idle(row)) row.push_back(row.front());
  }
  if (std::all_of(table.rows.begin(), table.rows.end(),
                  [](const auto& row) { return row.empty(); })) {
    table.rows.front().push_back({.chunk = 0, .microbatch = 0, .kind = Kind::Forward});
  }
  return table;
}

// Declared stages come first, then strayed ones; both ascend.
std::vector<std::int32_t> stages_of(const RawTable& table, std::size_t r) {
  std::vector<std::int32_t> stages;
  for (std::size_t stage = 0; stage < table.owners.size(); ++stage) {
    if (as_index(table.owners[stage]) == r) stages.push_back(static_cast<std::int32_t>(stage));
  }
  std::set<std::int32_t> strayed;
  for (const Entry& entry : table.rows[r]) {
    if (entry.kind != Kind::Idle) strayed.insert(entry.chunk);
  }
  for (const std::int32_t stage : stages) strayed.erase(stage);
  stages.insert(stages.end(), strayed.begin(), strayed.end());
  return stages;
}

RankOrder rank_of(const RawTable& table, std::size_t r) {
  RankOrder rank{.order = table.rows[r]};
  rank.stages = stages_of(table, r);
  rank.chunks = static_cast<std::int32_t>(rank.stages.size());
  rank.chunks_declared = !table.owners.empty();
  std::vector<bool> whole(rank.stages.size());
  std::vector<bool> split(rank.stages.size());
  for (Entry& entry : rank.order) {
    if (entry.kind == Kind::Idle) continue;
    const auto c = as_index(std::find(rank.stages.begin(), rank.stages.end(), entry.chunk) -
                            rank.stages.begin());
    entry.chunk = static_cast<std::int32_t>(c) + 1;
    if (entry.kind == Kind::Backward) whole[c] = true;
    if (entry.kind == Kind::BackwardInput || entry.kind == Kind::BackwardWeight) split[c] = true;
  }
  rank.delay.emplace();
  for (std::size_t c = 0; c < whole.size(); ++c) {
    rank.delay->push_back(!split[c] ? Delay::Never : whole[c] ? Delay::Mixed : Delay::Always);
  }
  for (Entry& entry : rank.order) {
    if (entry.kind != Kind::BackwardInput) continue;
    if ((*rank.delay)[entry.chunk.index()] == Delay::Always) entry.kind = Kind::Backward;
  }
  return rank;
}

TableCase settled(const RawTable& table) {
  TableCase out;
  out.declarations = {.microbatches = table.microbatches, .stages = table.stages};
  if (!table.owners.empty()) out.declarations.stage_to_rank = table.owners;
  out.schedule = {.naming = Naming::Named,
                  .topology = Topology::Custom,
                  .microbatches = table.microbatches,
                  .stages = table.stages};
  if (!table.owners.empty()) out.schedule.stages = static_cast<std::int32_t>(table.owners.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    out.schedule.ranks.push_back(rank_of(table, r));
  return out;
}

std::vector<RawTable> simpler_tables(const RawTable& table) {
  std::vector<RawTable> out;
  const auto with = [&](auto change) {
    out.push_back(table);
    change(out.back());
  };
  const auto full_rows = std::count_if(table.rows.begin(), table.rows.end(),
                                       [](const auto& row) { return !row.empty(); });
  if (!table.owners.empty()) with([](RawTable& t) { t.owners.clear(); });
  if (table.microbatches) with([](RawTable& t) { t.microbatches.reset(); });
  if (table.stages) with([](RawTable& t) { t.stages.reset(); });
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    const bool last_full = full_rows == 1 && !row.empty();
    if (table.owners.empty() && !last_full) {
      with([r](RawTable& t) { t.rows.erase(t.rows.begin() + static_cast<std::ptrdiff_t>(r)); });
    }
    for (std::size_t i = 0; i < row.size() && !(last_full && row.size() == 1); ++i) {
      with([r, i](RawTable& t) {
        auto& entries = t.rows[r];
        const bool heads = entries[i].group == Group::Opens && i + 1 < entries.size() &&
                           entries[i + 1].group == Group::Continues;
        if (heads) entries[i + 1].group = Group::Opens;
        entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(i));
      });
    }
    if (std::any_of(row.begin(), row.end(),
                    [](const Entry& entry) { return entry.group != Group::Alone; })) {
      with([r](RawTable& t) {
        for (Entry& entry : t.rows[r]) entry.group = Group::Alone;
      });
    }
  }
  std::erase_if(out, [](const RawTable& smaller) {
    return std::any_of(smaller.rows.begin(), smaller.rows.end(), is_lone_idle);
  });
  return out;
}

}  // namespace

TableCase draw_arbitrary_table(Dice& dice) {
  return settled(draw_raw(dice));
}

rc::Gen<TableCase> arbitrary_table() {
  return rc::gen::map(generator(draw_raw, simpler_tables), settled);
}

void showValue(const TableCase& table, std::ostream& out) {
  const auto text = print_torch_csv(table.schedule);
  out << (text ? *text : "(" + text.error().reason + ")\n");
  if (table.declarations.microbatches)
    out << "microbatches " << *table.declarations.microbatches << '\n';
  if (table.declarations.stages) out << "stages " << *table.declarations.stages << '\n';
  if (!table.declarations.stage_to_rank) return;
  out << "stage to rank";
  for (const std::int32_t rank : *table.declarations.stage_to_rank) out << ' ' << rank;
}

}  // namespace capo::testing
