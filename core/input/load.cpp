#include "core/input/load.h"

#include "core/frameworks/te/list_text.h"
#include "core/input/json_reader.h"
#include "core/text/order_text.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo {

namespace {

// A table's first cell is digits and a letter, a composite, or an idle slot before others.
bool looks_like_torch_csv(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n\""), text.size());
  text.remove_prefix(first);
  if (text.empty()) return false;
  if (text.front() == ',') return true;
  if (text.front() == '(') text.remove_prefix(1);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && digits < text.size() && text[digits] >= 'A' && text[digits] <= 'Z';
}

bool begins_with(char letter, std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == letter;
}

// The text of a list may be JSON as well.
bool begins_as_json(std::string_view text) {
  return begins_with('{', text);
}

// Python's json.dump writes a list so; a schedule in JSON is an object.
bool begins_as_list(std::string_view text) {
  return begins_with('[', text);
}

// Refuses declarations that would make capo allocate more than the limits allow.
std::optional<Refusal> refuse_declarations(const LoadOptions& options) {
  const auto above = [&](std::int64_t number) {
    return number > static_cast<std::int64_t>(options.limits.counts);
  };
  const auto any_above = [&](const auto& numbers) {
    return std::any_of(numbers.begin(), numbers.end(), above);
  };
  const bool refused =
      above(options.te.microbatches.value_or(0)) || above(options.torch.microbatches.value_or(0)) ||
      above(options.torch.stages.value_or(0)) || any_above(options.te.layers.values) ||
      (options.te.delayed && any_above(options.te.delayed->chunks)) ||
      (options.torch.stage_to_rank && any_above(*options.torch.stage_to_rank));
  if (!refused) return std::nullopt;
  return over_limit(
      {}, fmt::format("a declared number is above the limit of {}", options.limits.counts),
      "--max-count");
}

Read<Input> read_te(const Source& source, const LoadOptions& options) {
  auto lists = read_te_lists(source.text, options.limits);
  if (!lists) return lists.error();
  Input input{.form = Form::TeList, .notes = std::move(lists->notes)};
  take_te_lists(input, std::move(lists->list), std::move(lists->begins), options.te);
  if (auto refusal = refuse_size(input.schedule, options.limits)) return std::move(*refusal);
  return input;
}

Read<Input> read_order(const Source& source, const LoadOptions& options) {
  auto schedule = read_order_file(source.text, options.limits);
  if (!schedule) return schedule.error();
  return Input{.form = Form::OrderFile, .schedule = std::move(*schedule)};
}

Read<Input> read_torch(const Source& source, const LoadOptions& options) {
  auto rows = split_torch_csv(source.text, options.limits);
  if (!rows) return rows.error();
  auto reading = read_torch_rows(*rows, options.torch, options.limits);
  if (!reading) return reading.error();
  return Input{.form = reading->communicates ? Form::TorchComms : Form::TorchCompute,
               .schedule = std::move(reading->schedule),
               .cell_faults = std::move(reading->faults)};
}

Read<Input> read_json(const Source& source, const LoadOptions& options) {
  auto document = JsonDocument::parse(source.text, options.limits);
  if (!document) return document.error();
  return read_json_schedule(*document, options.limits, ExtraKeys::Refused, options.te,
                            options.torch);
}

}  // namespace

TextForm detect_form(std::string_view name, std::string_view text) {
  if (name.ends_with(".order")) return TextForm::OrderFile;
  if (name.ends_with(".csv")) return TextForm::TorchCsv;
  if (name.ends_with(".json") && !begins_as_list(text)) return TextForm::Json;
  if (begins_as_json(text)) return TextForm::Json;
  if (looks_like_order_file(text)) return TextForm::OrderFile;
  return looks_like_torch_csv(text) ? TextForm::TorchCsv : TextForm::TeList;
}

TextForm notation_of(const Input& input) {
  if (input.form == Form::OrderFile) return TextForm::OrderFile;
  const bool json = input.form == Form::Json || input.csv_in_json;
  if (json || begins_as_json(input.source.text)) return TextForm::Json;
  return input.form == Form::TeList ? TextForm::TeList : TextForm::TorchCsv;
}

Result<Input, RefusedInput> load(Source source, const LoadOptions& options) {
  const auto read = [&]() -> Read<Input> {
    if (auto refusal = refuse_declarations(options)) return std::move(*refusal);
    switch (options.form.value_or(detect_form(source.name, source.text))) {
      case TextForm::TeList:
        return read_te(source, options);
      case TextForm::OrderFile:
        return read_order(source, options);
      case TextForm::TorchCsv:
        return read_torch(source, options);
      case TextForm::Json:
        return read_json(source, options);
    }
    CAPO_ASSERT(false, "every form has a reader");
    return Input{};
  };
  auto input = read();
  if (!input) return RefusedInput{.source = std::move(source), .refusal = input.error()};
  input->source = std::move(source);
  return std::move(*input);
}

Input only_rank(Input input, std::size_t rank) {
  const std::span<const TeEntry> list = te_list_of(input, rank);
  const std::size_t begin = input.te_begins.empty() ? 0 : input.te_begins[rank];
  std::vector<std::uint32_t> odd;
  for (const std::uint32_t position : input.odd_entries) {
    const TePlace place = place_in_lists(input, position);
    if (place.rank == rank) odd.push_back(position - static_cast<std::uint32_t>(begin));
  }
  input.te_list = TeList{.entries = {list.begin(), list.end()}};
  input.te_begins.clear();
  input.odd_entries = std::move(odd);
  RankOrder kept = std::move(input.schedule.ranks[rank]);
  input.schedule.ranks.clear();
  input.schedule.ranks.push_back(std::move(kept));
  return input;
}

}  // namespace capo
