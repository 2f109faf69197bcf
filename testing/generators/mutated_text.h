// Texts that are nearly in one of the languages: what a reader must refuse or understand, never
// crash on.
//
// Distribution: a text of each of six kinds, equally likely: a TE list (arbitrary_numbers.h), an
// .order file and its JSON (arbitrary_schedule.h), a PyTorch table (arbitrary_table.h), and JSON
// around a TE list or a table; then 0 to 4 times, each of these equally likely: a byte becomes any,
// 1 to 8 bytes go, a word of the languages or a number at a limit is put in, a copy of 1 to 16
// bytes is put in anywhere, or the rest is cut off. All numbers and places are equally likely, the
// end of the text, where there is nothing to change, among them.
//
// Shrinking: pieces of the text go, the largest first.

#pragma once

#include "core/input/load.h"
#include "testing/generators/dice.h"

#include <iosfwd>
#include <string>

namespace capo::testing {

struct MutatedText {
  TextForm form = TextForm::TeList;  ///< says how the text was read before it was changed
  std::string text;
};

[[nodiscard]] rc::Gen<MutatedText> mutated_text();

void showValue(const MutatedText& text, std::ostream& out);

}  // namespace capo::testing
