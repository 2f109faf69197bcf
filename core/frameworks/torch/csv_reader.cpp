#include "core/frameworks/torch/csv_reader.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/frameworks/torch/table.h"
#include "core/text/printable.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace capo {

namespace {

Kind single_kind(TorchType type) {
  const std::optional<Kind> kind = kind_of(type);
  CAPO_ASSERT(kind.has_value(), "a single action is never of the container's type");
  return *kind;
}

bool ends_cell(char c) {
  return c == ',' || c == '\r' || c == '\n';
}

// The text without blanks and without leading zeros of its numbers. torch's repr of a cell that it
// reads completely looks like this.
std::string normal_form(std::string_view cell) {
  std::string out;
  for (std::size_t at = 0; at < cell.size(); ++at) {
    const char c = cell[at];
    if (is_blank(c)) continue;
    const bool in_number = !out.empty() && is_digit(out.back());
    if (c == '0' && !in_number && at + 1 < cell.size() && is_digit(cell[at + 1])) continue;
    out += c;
  }
  return out;
}

struct PlacedAction {
  TorchAction action;
  std::uint32_t cell = 0;
  Span span;
  Group group = Group::Alone;
  bool idle = false;
};

class CsvReader {
 public:
  CsvReader(const std::vector<TorchRow>& rows, const TorchDeclarations& declarations,
            const Limits& limits)
      : rows_(rows), declarations_(declarations), limits_(limits) {}

  Read<TorchReading> read() {
    if (rows_.empty()) return malformed({}, "the table has no row", "a table has one row per rank");
    if (rows_.size() > limits_.ranks) {
      const auto& cells = rows_[limits_.ranks].cells;
      return over_limit(cells.empty() ? Span{} : cells.front().span,
                        fmt::format("the table has more than {} rows", limits_.ranks),
                        "--max-ranks");
    }
    placed_.resize(rows_.size());
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (auto refusal = read_row(r)) return std::move(*refusal);
    }
    if (auto refusal = place()) return std::move(*refusal);
    judge_form();
    return std::move(reading_);
  }

 private:
  struct At {
    std::size_t rank;
    std::size_t cell;
    std::string_view text;
    Span span;
  };

  std::optional<Refusal> read_row(std::size_t r) {
    placed_[r].reserve(rows_[r].cells.size());
    for (std::size_t c = 0; c < rows_[r].cells.size(); ++c) {
      if (auto refusal = read_cell(r, c)) return refusal;
    }
    return std::nullopt;
  }

  std::optional<Refusal> read_cell(std::size_t r, std::size_t c) {
    const TorchRow::Cell& cell = rows_[r].cells[c];
    const At at{.rank = r, .cell = c, .text = cell.text, .span = cell.span};
    if (const auto action = plain_action(cell.text, *declarations_.version)) {
      if (++entries_ > limits_.entries) return too_many_entries(cell.span, limits_);
      return put(at, *action, Group::Alone, cell.text);
    }
    return read_with_faults(at);
  }

  std::optional<Refusal> read_with_faults(const At& at) {
    const TorchCell read = read_as_torch(at.text, *declarations_.version);
    entries_ += std::max<std::size_t>(read.actions.size(), 1);
    if (entries_ > limits_.entries) return too_many_entries(at.span, limits_);
    if (read.form == TorchCell::Form::Refused) {
      return malformed(
          at.span, fmt::format("{} is no action of PyTorch's language", shown(at.text)),
          "an action is `<stage><type>[<microbatch>]`, such as 2F0; torch stops with " +
              printable(read.error, 160));
    }
    if (read.form == TorchCell::Form::Idle) {
      placed_[at.rank].push_back(
          {.cell = static_cast<std::uint32_t>(at.cell), .span = at.span, .idle = true});
      return std::nullopt;
    }
    if (read.form == TorchCell::Form::Composite && read.actions.empty()) {
      fault(at, CellFault::Kind::EmptyComposite, read.repr);
      return std::nullopt;
    }
    if (read.repr != at.text && read.repr != normal_form(at.text)) {
      fault(at, CellFault::Kind::DroppedText, read.repr);
    }
    if (read.form == TorchCell::Form::Composite && read.container != TorchType::Overlap) {
      fault(at, CellFault::Kind::WrongContainer, read.repr);
    }
    Group group = read.form == TorchCell::Form::Composite ? Group::Opens : Group::Alone;
    for (const TorchAction& action : read.actions) {
      if (auto refusal = put(at, action, group, read.repr)) return refusal;
      if (group == Group::Opens) group = Group::Continues;
    }
    return std::nullopt;
  }

  std::optional<Refusal> put(const At& at, const TorchAction& action, Group group,
                             std::string_view repr) {
    if (action.stage > static_cast<std::int64_t>(limits_.counts) ||
        action.microbatch > static_cast<std::int64_t>(limits_.counts)) {
      return over_limit(at.span,
                        fmt::format("{} has a number above {}", shown(at.text), limits_.counts),
                        "--max-count");
    }
    if (!has_microbatch(single_kind(action.type)) && action.microbatch >= 0) {
      fault(at, CellFault::Kind::SurplusMicrobatch, repr);
    }
    placed_[at.rank].push_back({.action = action,
                                .cell = static_cast<std::uint32_t>(at.cell),
                                .span = at.span,
                                .group = group});
    return std::nullopt;
  }

  void fault(const At& at, CellFault::Kind kind, std::string_view repr) {
    reading_.faults.push_back({.kind = kind,
                               .rank = static_cast<std::int32_t>(at.rank),
                               .cell = static_cast<std::uint32_t>(at.cell),
                               .span = at.span,
                               .torch_reads = std::string(repr)});
  }

  // A rank holds the stages that are declared for it, and those that stand in its row all the same.
  std::optional<Refusal> place() {
    std::vector<std::set<std::int32_t>> held(rows_.size());
    if (declarations_.stage_to_rank) {
      const auto& owners = *declarations_.stage_to_rank;
      for (std::size_t stage = 0; stage < owners.size(); ++stage) {
        const auto owner = as_index(owners[stage]);
        if (owners[stage] < 0 || owner >= rows_.size()) {
          return malformed(
              {},
              fmt::format("stage {} is placed on rank {}, but the last row of the table is rank {}",
                          stage, owners[stage], rows_.size() - 1),
              "row i of the table is rank i");
        }
        held[owner].insert(static_cast<std::int32_t>(stage));
      }
    }
    if (declarations_.stages && declarations_.stage_to_rank &&
        declarations_.stage_to_rank->size() != as_index(*declarations_.stages)) {
      return malformed({},
                       fmt::format("{} stages are declared, and the ranks of {}",
                                   *declarations_.stages, declarations_.stage_to_rank->size()),
                       "stage-to-rank names the rank of every stage");
    }
    Schedule& schedule = reading_.schedule;
    schedule.naming = Naming::Named;
    schedule.topology = Topology::Custom;
    schedule.microbatches = declarations_.microbatches;
    schedule.stages = declarations_.stages;
    if (!schedule.stages && declarations_.stage_to_rank) {
      schedule.stages = static_cast<std::int32_t>(declarations_.stage_to_rank->size());
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) schedule.ranks.push_back(rank_order(held[r], r));
    return std::nullopt;
  }

  // Declared stages come first, so that a stage that strayed into the row gets the higher chunks.
  RankOrder rank_order(const std::set<std::int32_t>& declared, std::size_t r) const {
    RankOrder rank;
    std::map<std::int32_t, std::int32_t> chunk_of;
    const auto add = [&](std::int32_t stage) {
      if (!chunk_of.try_emplace(stage, static_cast<std::int32_t>(chunk_of.size()) + 1).second)
        return;
      rank.stages.push_back(stage);
    };
    std::set<std::int32_t> strayed;
    for (const PlacedAction& placed : placed_[r]) {
      if (!placed.idle) strayed.insert(static_cast<std::int32_t>(placed.action.stage));
    }
    std::for_each(declared.begin(), declared.end(), add);
    std::for_each(strayed.begin(), strayed.end(), add);
    rank.chunks = static_cast<std::int32_t>(rank.stages.size());
    if (declarations_.stage_to_rank)
      rank.strays = rank.chunks - static_cast<std::int32_t>(declared.size());
    rank.chunks_declared = declarations_.stage_to_rank.has_value();

    rank.order.reserve(placed_[r].size());
    for (const PlacedAction& placed : placed_[r]) {
      Entry entry{
          .offset = placed.span.offset,
          .length = static_cast<std::uint16_t>(std::min<std::uint32_t>(placed.span.length, 0xffff)),
          .kind = Kind::Idle,
          .group = placed.group};
      if (!placed.idle) {
        entry.kind = single_kind(placed.action.type);
        entry.chunk = chunk_of.at(static_cast<std::int32_t>(placed.action.stage));
        if (has_microbatch(entry.kind)) {
          entry.microbatch = static_cast<std::int32_t>(placed.action.microbatch);
        }
      }
      rank.order.push_back(entry);
    }
    settle_delay(rank);
    return rank;
  }

  // A chunk that splits every backward holds its input halves as plain B, as a TE list does; I is
  // kept only beside whole backwards.
  static void settle_delay(RankOrder& rank) {
    std::vector<bool> whole(as_index(rank.chunks));
    std::vector<bool> split(as_index(rank.chunks));
    const auto of = [](const Entry& entry) { return entry.chunk.index(); };
    for (const Entry& entry : rank.order) {
      if (entry.kind == Kind::Backward) whole[of(entry)] = true;
      if (entry.kind == Kind::BackwardInput || entry.kind == Kind::BackwardWeight)
        split[of(entry)] = true;
    }
    rank.delay.emplace();
    for (std::size_t c = 0; c < whole.size(); ++c) {
      rank.delay->push_back(!split[c] ? Delay::Never : whole[c] ? Delay::Mixed : Delay::Always);
    }
    for (Entry& entry : rank.order) {
      if (entry.kind == Kind::BackwardInput && (*rank.delay)[of(entry)] == Delay::Always) {
        entry.kind = Kind::Backward;
      }
    }
  }

  static bool communicates(const PlacedAction& placed) {
    if (placed.idle) return false;
    const Kind kind = single_kind(placed.action.type);
    return is_transfer(kind) || is_send_wait(kind);
  }

  // Transfers and the waits for them belong to a table with communication, idle slots to one
  // without.
  void judge_form() {
    bool any_transfer = false;
    for (const auto& row : placed_) {
      for (const PlacedAction& placed : row) {
        any_transfer = any_transfer || communicates(placed);
      }
    }
    reading_.communicates = declarations_.communicates.value_or(any_transfer);
    for (std::size_t r = 0; r < placed_.size(); ++r) {
      for (const PlacedAction& placed : placed_[r]) {
        if (reading_.communicates ? !placed.idle : !communicates(placed)) continue;
        reading_.faults.push_back(
            {.kind = placed.idle ? CellFault::Kind::IdleSlot : CellFault::Kind::TransferInCompute,
             .rank = static_cast<std::int32_t>(r),
             .cell = placed.cell,
             .span = placed.span,
             .torch_reads = placed.idle ? "None" : to_text(placed.action)});
      }
    }
  }

  const std::vector<TorchRow>& rows_;
  const TorchDeclarations& declarations_;
  const Limits& limits_;
  std::size_t entries_ = 0;
  std::vector<std::vector<PlacedAction>> placed_;
  TorchReading reading_;
};

}  // namespace

Read<std::vector<TorchRow>> split_torch_csv(std::string_view text, const Limits& limits) {
  if (auto refusal = refuse_bytes(text, limits)) return std::move(*refusal);
  if (std::all_of(text.begin(), text.end(), is_blank)) {
    return malformed(span_of(0, text.size()), "the input holds no table",
                     "a table has one row of actions per rank");
  }
  std::vector<TorchRow> rows(1);
  std::size_t at = 0;
  while (true) {
    TorchRow::Cell cell;
    const std::size_t begin = at;
    const bool quoted = at < text.size() && text[at] == '"';
    if (quoted) {
      for (++at; at < text.size() && (text[at] != '"' || text.substr(at, 2) == "\"\""); ++at) {
        if (text[at] == '"') ++at;
        cell.text += text[at];
      }
      if (at == text.size()) {
        return malformed(span_of(begin, begin + 1), "this quote is never closed");
      }
      ++at;
    }
    std::size_t end = at;
    while (end < text.size() && !ends_cell(text[end])) ++end;
    cell.text += text.substr(at, end - at);
    cell.span = span_of(begin, end);
    at = end;

    const bool ends_row = at == text.size() || text[at] != ',';
    // A row of one empty cell is a blank line, which csv.reader gives as an empty row; a quoted one
    // is an idle slot.
    if (!(ends_row && rows.back().cells.empty() && cell.text.empty() && !quoted)) {
      rows.back().cells.push_back(std::move(cell));
    }
    if (at == text.size()) break;
    if (text[at] == '\r') ++at;
    ++at;
    if (!ends_row) continue;
    if (at >= text.size()) break;  // the last line end closes the last row
    if (rows.size() >= limits.ranks) {
      return over_limit(span_of(at, at + 1),
                        fmt::format("the table has more than {} rows", limits.ranks),
                        "--max-ranks");
    }
    rows.emplace_back();
  }
  return rows;
}

Read<TorchReading> read_torch_rows(const std::vector<TorchRow>& rows,
                                   const TorchDeclarations& declarations, const Limits& limits) {
  return CsvReader(rows, declarations, limits).read();
}

}  // namespace capo
