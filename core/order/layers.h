// The number of layers of each chunk, in the form in which a framework was or would be told.
//
// A framework tells Python's `None`, an int and a list apart (with delayed weight gradients it may
// accept the list only), so capo keeps the form and not just the numbers.

#pragma once

#include "core/base/index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo {

struct Layers {
  enum class Form {
    Unstated,  ///< nothing was said: one layer a chunk, handed to the framework as a list
    Null,      ///< Python's None
    Count,     ///< one int for all chunks
    List,      ///< one int per chunk
  };

  Form form = Form::Unstated;
  std::vector<std::int64_t> values;  ///< one under Count, any number under List, otherwise none

  friend bool operator==(const Layers&, const Layers&) = default;
};

/// Whether `layers` give each of so many chunks one layer, which is what unstated layers mean.
[[nodiscard]] inline bool says_nothing_new(const Layers& layers, std::int32_t chunks) {
  if (layers.form == Layers::Form::Unstated) return true;
  return layers.form == Layers::Form::List && layers.values.size() == as_index(chunks) &&
         std::all_of(layers.values.begin(), layers.values.end(),
                     [](std::int64_t count) { return count == 1; });
}

}  // namespace capo
