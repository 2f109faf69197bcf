// A shown order reads back, declarations and all.

#include "testing/shown_order.h"

#include "core/input/load.h"
#include "core/text/model_reader.h"
#include "testing/generators/communication.h"
#include "testing/generators/sound_declared.h"
#include "testing/generators/sound_planned.h"
#include "tests/testing/sample.h"

#include <gtest/gtest.h>

#include <string>

namespace capo::testing {
namespace {

Schedule read_back(const std::string& shown) {
  const auto read = load({.name = "-", .text = shown}, {});
  EXPECT_TRUE(read) << shown;
  return read ? read->schedule : Schedule{};
}

// Reads the declarations in the comments; without comments nothing is declared.
Model declared_in(const std::string& shown) {
  const std::string head = "# declared: capo check - --model FILE, of\n# ";
  const std::size_t at = shown.find(head);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + head.size();
  const auto read = read_model(shown.substr(begin, shown.find('\n', begin) - begin), Limits{});
  EXPECT_TRUE(read) << shown;
  return read ? *read : Model{};
}

void expect_declared(const std::string& shown, const CheckOptions& options) {
  const Model model = declared_in(shown);
  EXPECT_EQ(model.environment, options.environment) << shown;
  EXPECT_EQ(model.groups, options.groups) << shown;
  EXPECT_EQ(model.plan, options.plan) << shown;
  EXPECT_EQ(model.modules.list, options.modules.list) << shown;
  if (!options.modules.list.empty()) {
    EXPECT_EQ(model.modules.layers, options.modules.layers) << shown;
  }
}

TEST(ShownOrder, IsTheOrderAloneWhereNothingIsDeclared) {
  const Schedule schedule = read_back("capo 1\nrank 0: F1 B1\n");
  EXPECT_TRUE(shown_order(schedule).starts_with("capo 1\n")) << shown_order(schedule);
}

TEST(ShownOrder, HasDeclarationsInCommentsAboveIt) {
  const Schedule schedule = read_back("capo 1\nrank 0: F1 B1\n");
  const std::string shown = shown_order(schedule, {.environment = {.weight_stream = true}});
  EXPECT_TRUE(
      shown.starts_with("# declared: capo check - --model FILE, of\n"
                        "# {\"schema\":1,\"weight_stream\":true}\ncapo 1\n"))
      << shown;
}

TEST(ShownOrder, OfDeclaredModulesReadsBack) {
  for (const auto& gen : {sound_declared(), sound_planned()}) {
    for (const Declared& one : sample(gen, 100)) {
      const std::string shown = rc::toString(one);
      EXPECT_TRUE(same_meaning(read_back(shown), one.schedule)) << shown;
      expect_declared(shown, one.options);
    }
  }
}

TEST(ShownOrder, OfCommunicationReadsBack) {
  for (const Communication& one : sample(sound_communication(), 200)) {
    const std::string shown = rc::toString(one);
    EXPECT_TRUE(same_meaning(read_back(shown), one.schedule)) << shown;
    expect_declared(shown, {.environment = one.environment, .groups = one.groups});
  }
}

}  // namespace
}  // namespace capo::testing
