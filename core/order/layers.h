// How many layers each chunk has, in the form in which TransformerEngine was or would be told.
//
// TE tells `None`, an int and a list apart (te-semantics: a delayed weight gradient accepts the
// list only), so capo keeps the form and not just the numbers.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

struct Layers {
  enum class Form {
    Unstated,  ///< nothing was said: one layer a chunk, told to TE as a list
    Null,      ///< Python's None
    Count,     ///< one int for all chunks
    List,      ///< one int per chunk
  };

  Form form = Form::Unstated;
  std::vector<std::int64_t> values;  ///< Count: one; List: any number; else none

  friend bool operator==(const Layers&, const Layers&) = default;
};

/// Whether so many chunks have the layers that they are taken to have where nothing is said.
[[nodiscard]] inline bool says_nothing_new(const Layers& layers, std::int32_t chunks) {
  if (layers.form == Layers::Form::Unstated) return true;
  return layers.form == Layers::Form::List &&
         layers.values.size() == static_cast<std::size_t>(chunks) &&
         std::all_of(layers.values.begin(), layers.values.end(),
                     [](std::int64_t count) { return count == 1; });
}

}  // namespace capo
