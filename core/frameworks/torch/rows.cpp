// A schedule as the rows of actions that PyTorch's functions work on.
//
// A row keeps what PyTorch would have read: a composite without members has stage -1 and no actions
// of its own. Idle slots stay in place, since PyTorch counts steps with them. Tested by
// predict_test.cpp.

#include "core/base/index.h"
#include "core/frameworks/torch/predict.h"

#include "core/frameworks/torch/words.h"

#include <algorithm>
#include <set>
#include <utility>

namespace capo::torch {

namespace {

std::int64_t stage_of(const RankOrder& rank, std::int32_t chunk) {
  const auto position = as_index(chunk) - 1;
  return position < rank.stages.size() ? rank.stages[position] : chunk - 1;
}

TorchAction as_read_by(const Version& version, const TorchAction& action) {
  const bool known = std::any_of(version.words.begin(), version.words.end(),
                                 [&](const TorchWord& row) { return row.type == action.type; });
  return known ? action : read_as_torch(capo::to_text(action), version).actions.front();
}

}  // namespace

Rows rows_of(const Input& input, const Version& version) {
  std::set<std::pair<std::size_t, std::size_t>> empty_composites;
  for (const CellFault& fault : input.cell_faults) {
    if (fault.kind == CellFault::Kind::EmptyComposite) {
      empty_composites.emplace(as_index(fault.rank), fault.cell);
    }
  }
  Rows rows;
  for (const RankOrder& rank : input.schedule.ranks) {
    const std::vector<Delay> delay = resolved_delay(rank);
    std::vector<Slot>& row = rows.emplace_back();
    const auto add_empty = [&] {
      while (empty_composites.contains({rows.size() - 1, row.size()}))
        row.push_back({.composite = true});
    };
    for (const Entry& entry : rank.order) {
      if (entry.group != Group::Continues) {
        add_empty();
        row.push_back({.composite = entry.group == Group::Opens});
      }
      if (entry.kind == Kind::Idle) continue;
      const auto chunk = entry.chunk.index();
      row.back().actions.push_back(as_read_by(
          version,
          {.stage = stage_of(rank, entry.chunk),
           .type = torch_type(entry.kind, chunk < delay.size() ? delay[chunk] : Delay::Never),
           .microbatch = entry.microbatch}));
    }
    add_empty();
  }
  return rows;
}

Rows without_reductions(Rows rows) {
  for (auto& row : rows) {
    std::erase_if(row, [](const Slot& slot) {
      if (slot.composite || slot.idle()) return false;
      const TorchType type = slot.head().type;
      return type == TorchType::ReduceGradient || type == TorchType::WaitReduceGradient;
    });
  }
  return rows;
}

std::int64_t stages_of(const Input& input) {
  if (input.schedule.stages) return *input.schedule.stages;
  std::int64_t stages = 0;
  for (const RankOrder& rank : input.schedule.ranks) {
    for (std::int32_t chunk = 1; chunk <= rank.chunks; ++chunk)
      stages = std::max(stages, stage_of(rank, chunk) + 1);
  }
  return stages;
}

std::vector<std::int64_t> rank_of_stages(const Input& input, std::int64_t stages) {
  std::vector<std::int64_t> ranks(as_index(std::max<std::int64_t>(stages, 0)), -1);
  for (std::size_t r = 0; r < input.schedule.ranks.size(); ++r) {
    const RankOrder& rank = input.schedule.ranks[r];
    for (std::int32_t chunk = 1; chunk <= rank.chunks - rank.strays; ++chunk) {
      const std::int64_t stage = stage_of(rank, chunk);
      const bool known = stage >= 0 && stage < stages;
      if (known && ranks[as_index(stage)] < 0) {
        ranks[as_index(stage)] = static_cast<std::int64_t>(r);
      }
    }
  }
  return ranks;
}

std::string to_text(const Slot& slot) {
  if (!slot.composite) return slot.idle() ? "" : capo::to_text(slot.actions.front());
  if (slot.actions.empty()) return capo::to_text(slot.head());
  std::string text = "(";
  for (const TorchAction& action : slot.actions) {
    if (text.size() > 1) text += ';';
    text += capo::to_text(action);
  }
  return text + ")" + std::string(torch_name(slot.container));
}

}  // namespace capo::torch
