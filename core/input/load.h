// Reads any text as an Input, after finding out which form it is in.
//
// A form that is not named follows from the file's name (.order, .csv, .json, but for a list in a
// file called .json), or from how the text begins: `{` is JSON, the word `capo` an .order file, a
// cell such as 0F0 a PyTorch table, anything else a TE list. Tested by load_test.cpp.

#pragma once

#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/torch/csv_reader.h"
#include "core/order/input.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <cstddef>
#include <optional>
#include <string_view>

namespace capo {

enum class TextForm { TeList, OrderFile, TorchCsv, Json };

[[nodiscard]] TextForm detect_form(std::string_view name, std::string_view text);

/// The form in which the text of an input is written.
[[nodiscard]] TextForm notation_of(const Input& input);

struct LoadOptions {
  std::optional<TextForm> form;  ///< nullopt: it is detected
  Limits limits;
  TeDeclarations te;
  TorchDeclarations torch;
};

/// A text that was refused, with the source that its span points into.
struct RefusedInput {
  Source source;
  Refusal refusal;
};

[[nodiscard]] Result<Input, RefusedInput> load(Source source, const LoadOptions& options);

/// An input of TE lists with the list of one of its ranks alone. Its text stays whole, so that
/// places in it are those of the file.
[[nodiscard]] Input only_rank(Input input, std::size_t rank);

}  // namespace capo
