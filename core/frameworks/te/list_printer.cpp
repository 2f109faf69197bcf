#include "core/frameworks/te/list_printer.h"

#include "core/text/number.h"

namespace capo {

std::string print_te_list(const TeList& list) {
  std::string text = "[";
  for (const TeEntry& entry : list.entries) {
    if (text.size() > 1) text += ", ";
    text += to_text(Number{.value = entry.value, .type = entry.type});
  }
  return text + "]\n";
}

}  // namespace capo
