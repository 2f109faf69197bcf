// How many layers each chunk has, in the form in which TransformerEngine was or would be told.
//
// TE tells `None`, an int and a list apart (te-semantics: a delayed weight gradient accepts the
// list only), so capo keeps the form and not just the numbers.

#pragma once

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

}  // namespace capo
