#include "testing/laws/texts.h"

#include "core/input/load.h"
#include "core/text/json_printer.h"
#include "core/text/order_text.h"
#include "testing/representable.h"

#include <string>

namespace capo::testing::laws {

namespace {

using Print = std::string (*)(const Schedule&);

Breach reads_back(const Schedule& schedule, TextForm form, Print print) {
  if (const auto reason = unrepresentable(schedule)) return std::string(*reason);
  const std::string text = print(schedule);
  const auto again = load(Source{.name = "<printed>", .text = text}, {.form = form});
  if (!again) return again.error().refusal.finding.message + " in\n" + text;
  if (!same_meaning(schedule, again->schedule)) return "it reads as another schedule:\n" + text;
  const std::string second = print(again->schedule);
  if (second != text) return "it prints as\n" + text + "and, read again, as\n" + second;
  return std::nullopt;
}

}  // namespace

Breach order_text_reads_back(const Schedule& schedule) {
  return reads_back(schedule, TextForm::OrderFile, print_order_file);
}

Breach json_reads_back(const Schedule& schedule) {
  return reads_back(schedule, TextForm::Json, print_json);
}

}  // namespace capo::testing::laws
