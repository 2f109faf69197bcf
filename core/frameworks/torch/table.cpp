#include "core/frameworks/torch/table.h"

#include "core/base/assert.h"
#include "core/base/index.h"
#include "core/text/scan.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace capo {

namespace {

std::optional<TorchType> type_named(std::string_view name, const torch::Version& version) {
  if (name == "OVERLAP_F_B") return TorchType::Overlap;
  for (const auto& [word, type] : version.words) {
    if (word == name) return type;
  }
  return std::nullopt;
}

// This is Python's str.strip().
std::string_view strip(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\v\f\x1c\x1d\x1e\x1f";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = text.substr(0, as_index(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

std::int64_t to_number(std::string_view digits) {
  constexpr std::int64_t kLargest = 1'000'000'000'000'000'000;
  std::int64_t value = 0;
  for (const char c : digits) {
    if (value >= kLargest / 10) return kLargest;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::string_view without_leading_zeros(std::string_view digits) {
  const std::size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? digits.substr(0, 1) : digits.substr(first);
}

// A text as the pattern takes it apart.
struct Match {
  std::string_view stage;
  torch::TorchWord word;
  std::string_view microbatch;  // empty: none
  std::string_view rest;        // torch drops it

  [[nodiscard]] TorchAction action() const {
    return {.stage = to_number(stage),
            .type = word.type,
            .microbatch = microbatch.empty() ? -1 : to_number(microbatch)};
  }
  [[nodiscard]] std::string repr() const {
    std::string text(without_leading_zeros(stage));
    text += word.word;
    if (!microbatch.empty()) text += without_leading_zeros(microbatch);
    return text;
  }
};

// The pattern is applied at the beginning of `text`, and the rest dropped, as re.match does.
std::optional<Match> match(std::string_view text, const torch::Version& version) {
  const std::string_view stage = take_digits(text);
  if (stage.empty() || text.empty()) return std::nullopt;
  for (const torch::TorchWord& row : version.words) {
    // Ten million cells are read: most words already differ in their first letter.
    if (row.word.front() != text.front() || !text.starts_with(row.word)) continue;
    text.remove_prefix(row.word.size());
    const std::string_view microbatch = take_digits(text);
    return Match{.stage = stage, .word = row, .microbatch = microbatch, .rest = text};
  }
  return std::nullopt;
}

bool begins_with_zero(std::string_view digits) {
  return digits.size() > 1 && digits.front() == '0';
}

TorchCell refused(std::string error) {
  return {.form = TorchCell::Form::Refused, .error = std::move(error)};
}

TorchCell invalid_action(std::string_view text) {
  return refused("RuntimeError: Invalid action string: " + std::string(text) +
                 ", should be formatted as [stage][action type][(microbatch)] e.g. 2F0");
}

TorchCell read_composite(std::string_view cell, std::size_t close, const torch::Version& version) {
  TorchCell composite{.form = TorchCell::Form::Composite};
  std::string_view members = cell.substr(1, close - 1);
  while (!strip(members).empty()) {
    const std::size_t end = std::min(members.find(';'), members.size());
    // torch reads each member with the whole reader; an empty one is no action, and none can be a
    // composite, since the first `)` ended the list.
    const std::string_view member = strip(members.substr(0, end));
    if (!member.empty()) {
      std::optional<Match> found = match(member, version);
      if (!found) return invalid_action(member);
      composite.repr += composite.repr.empty() ? "(" : ";";
      composite.repr += found->repr();
      composite.actions.push_back(found->action());
    }
    if (end == members.size()) break;
    members.remove_prefix(end + 1);
  }
  const std::string_view container = cell.substr(close + 1);
  const std::optional<TorchType> type = type_named(container, version);
  if (!type) return refused("RuntimeError: Invalid computation type " + std::string(container));
  composite.container = *type;
  // Without members torch drops the parentheses and shows the composite's stage, -1.
  composite.repr =
      (composite.actions.empty() ? "-1" : composite.repr + ")") + std::string(container);
  return composite;
}

}  // namespace

std::string_view torch_name(TorchType type) {
  if (type == TorchType::Overlap) return "OVERLAP_F_B";
  const auto words = torch::kNewest.words;
  return std::find_if(words.begin(), words.end(),
                      [type](const torch::TorchWord& row) { return row.type == type; })
      ->word;
}

std::optional<Kind> kind_of(TorchType type) {
  switch (type) {
    case TorchType::Forward:
      return Kind::Forward;
    case TorchType::FullBackward:
      return Kind::Backward;
    case TorchType::BackwardInput:
      return Kind::BackwardInput;
    case TorchType::BackwardWeight:
      return Kind::BackwardWeight;
    case TorchType::SendForward:
      return Kind::SendForward;
    case TorchType::ReceiveForward:
      return Kind::ReceiveForward;
    case TorchType::SendBackward:
      return Kind::SendBackward;
    case TorchType::ReceiveBackward:
      return Kind::ReceiveBackward;
    case TorchType::Unshard:
      return Kind::Unshard;
    case TorchType::Reshard:
      return Kind::Reshard;
    case TorchType::ReduceGradient:
      return Kind::ReduceGradient;
    case TorchType::WaitSendForward:
      return Kind::WaitSendForward;
    case TorchType::WaitSendBackward:
      return Kind::WaitSendBackward;
    case TorchType::WaitReduceGradient:
      return Kind::WaitReduceGradient;
    case TorchType::Overlap:
      return std::nullopt;
  }
  CAPO_UNREACHABLE();
}

std::string to_text(const TorchAction& action) {
  std::string text = std::to_string(action.stage) + std::string(torch_name(action.type));
  if (action.microbatch >= 0) text += std::to_string(action.microbatch);
  return text;
}

TorchCell read_as_torch(std::string_view cell, const torch::Version& version) {
  cell = strip(cell);
  if (cell.empty()) return {.form = TorchCell::Form::Idle};
  if (const std::size_t close = cell.find(')'); cell.front() == '(' && close != cell.npos) {
    return read_composite(cell, close, version);
  }
  std::optional<Match> found = match(cell, version);
  if (!found) return invalid_action(cell);
  return {.form = TorchCell::Form::Single, .actions = {found->action()}, .repr = found->repr()};
}

std::optional<TorchAction> plain_action(std::string_view cell, const torch::Version& version) {
  const std::optional<Match> found = match(cell, version);
  const bool plain = found && found->rest.empty() && !begins_with_zero(found->stage) &&
                     !begins_with_zero(found->microbatch);
  return plain ? std::optional(found->action()) : std::nullopt;
}

}  // namespace capo
