// capo as a library of a program that speaks German: numbers are read and printed as in the C
// locale, byte for byte.
//
//   setlocale(LC_ALL, "de_DE.UTF-8")      printf("%.1f", 2.5) prints 2,5; capo prints 2.5
//
// The program `capo` never sets a locale, so only a host that embeds the library can. The test
// skips if the system has no German and localedef cannot make it.

#include "core/base/error.h"
#include "core/input/load.h"
#include "core/report/report.h"
#include "core/rules/check.h"
#include "core/text/json_printer.h"
#include "core/text/model_printer.h"
#include "core/text/model_reader.h"
#include "core/text/number.h"
#include "core/text/order_text.h"
#include "schedules/catalogue.h"
#include "sim/report.h"
#include "sim/simulation.h"
#include "testing/model_text.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <map>
#include <string>
#include <utility>

namespace capo::testing {
namespace {

constexpr const char* kGerman = "de_DE.UTF-8";

// Looks for German on the system, then in the build folder, where localedef may make it.
bool speak_german() {
  if (std::setlocale(LC_ALL, kGerman) == nullptr) {
    const std::string folder = CAPO_LOCALE_FOLDER;
    const std::string made = folder + "/" + kGerman;
    const std::string command = "localedef -i de_DE -f UTF-8 '" + made + "' >/dev/null 2>&1";
    if (std::system(("test -d '" + made + "' || " + command).c_str()) != 0) return false;
    if (setenv("LOCPATH", folder.c_str(), 1) != 0) return false;
    if (std::setlocale(LC_ALL, kGerman) == nullptr) return false;
  }
  std::locale::global(std::locale(kGerman));
  return true;
}

Input loaded(const char* text) {
  auto input = load(Source{.name = "order", .text = text}, {});
  EXPECT_TRUE(input.has_value()) << text;
  return std::move(*input);
}

constexpr const char* kModel = R"({"schema": 1,
  "modules": {"linear": {"kind": "linear", "dtype": "bf16",
                         "cost": {"forward": 310.5, "backward": 320, "weight": 290.25}}},
  "layers": "linear",
  "transfer": {"latency": 4.5, "bandwidth": 45000.75, "bytes": 16777216}
})";

// The texts that capo makes of numbers with fractions and of numbers with thousands, by what makes
// them.
std::map<std::string, std::string> texts() {
  std::map<std::string, std::string> made;
  made["number"] =
      to_text(read_number("-1.5").value()) + to_text(read_number("1234567.25").value());
  made["system"] = error_text(ENOSPC);

  const Input list = loaded("[1, 1, -1, -1.5, -1, -1.5]");
  made["order file"] = print_order_file(list.schedule);
  made["json"] = print_json(list.schedule);
  const Input json = loaded(R"({"order": [1, 1, -1, -1.5, -1, -1.5]})");
  made["read from json"] = print_order_file(json.schedule);
  const Input floats = loaded(R"({"order": [1.0, -1.0, -1.25]})");
  const Report refused = report_of(floats, check(floats, {}), {});
  made["report"] = to_text(refused);
  made["json report"] = to_json(refused, JsonLayout::Indented);

  const auto model = read_model(kModel, {});
  EXPECT_TRUE(model.has_value());
  made["model"] = model_text(*model);
  made["costs"] = with_costs(kModel, {.modules = {{"linear", {.forward = 1234.5}}}});

  const auto schedule =
      schedules::schedule_named({.name = "1f1b", .ranks = 4, .microbatches = 2000});
  EXPECT_TRUE(schedule.has_value());
  const Input input{.form = Form::OrderFile, .schedule = *schedule};
  SimulationOptions options;
  options.costs.set({.key = CostSetting::Key::Forward, .value = 1.25});
  options.costs.set({.key = CostSetting::Key::Latency, .value = 0.5});
  const auto simulation = simulation_of(input, options);
  EXPECT_TRUE(simulation.has_value());
  made["simulation"] = text_report(**simulation);
  made["json simulation"] = json_report(**simulation, {});
  return made;
}

TEST(Locale, GermanChangesNoByteThatTheLibraryPrintsOrReads) {
  const auto expected = texts();
  EXPECT_EQ(expected.at("number"), "-1.51234567.25");
  if (!speak_german())
    GTEST_SKIP() << "the system has no locale " << kGerman << " and cannot make it";
  char german[8];
  std::snprintf(german, sizeof german, "%.1f", 2.5);
  ASSERT_STREQ(german, "2,5");
  for (const auto& [name, text] : texts()) EXPECT_EQ(text, expected.at(name)) << name;
}

}  // namespace
}  // namespace capo::testing
