#include "core/convert/for_torch.h"

#include <algorithm>
#include <utility>

namespace capo {

namespace {

bool communicates(const torch::Rows& rows) {
  const auto does = [](const torch::Slot& slot) {
    if (slot.idle()) return false;
    const TorchType type = slot.head().type;
    return torch::is_send(type) || torch::is_receive(type) || torch::is_send_wait(type) ||
           type == TorchType::Unshard || type == TorchType::Reshard;
  };
  return std::any_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return std::any_of(row.begin(), row.end(), does); });
}

std::string text_of(const torch::Rows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t at = 0; at < row.size(); ++at)
      text += (at > 0 ? "," : "") + torch::to_text(row[at]);
    text += '\n';
  }
  return text;
}

}  // namespace

Result<torch::Rows, RaisedByTorch> read_for_torch(const std::vector<TorchRow>& rows,
                                                  const torch::Version& version) {
  torch::Rows out;
  for (const TorchRow& row : rows) {
    auto& slots = out.emplace_back();
    for (const TorchRow::Cell& text : row.cells) {
      TorchCell cell = read_as_torch(text.text, version);
      if (cell.form == TorchCell::Form::Refused) return RaisedByTorch{std::move(cell.error)};
      slots.push_back({.composite = cell.form == TorchCell::Form::Composite,
                       .actions = std::move(cell.actions),
                       .container = cell.container});
    }
  }
  return out;
}

Result<torch::Rows, RaisedByTorch> lowered_rows(torch::Rows rows, const ForTorch& wanted) {
  torch::Table table{
      .rows = std::move(rows), .stages = wanted.stages, .microbatches = wanted.microbatches};
  table.communicates = wanted.communicates.value_or(communicates(table.rows));
  torch::Lowered lowered = wanted.version->prepare(table, wanted.policy);
  if (!lowered.error.empty()) return RaisedByTorch{std::move(lowered.error)};
  return std::move(lowered.rows);
}

Result<std::string, RaisedByTorch> lower_for_torch(torch::Rows rows, const ForTorch& wanted) {
  const auto lowered = lowered_rows(std::move(rows), wanted);
  if (!lowered) return lowered.error();
  return text_of(*lowered);
}

}  // namespace capo
