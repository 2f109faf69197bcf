#include "cli/commands/commands.h"
#include "cli/options/exit_code.h"
#include "cli/options/files.h"
#include "core/base/assert.h"
#include "core/base/embedded_text.h"
#include "core/base/nearest.h"
#include "core/frameworks/te/contract.h"
#include "core/rules/rule.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace capo::cli {

namespace {

// The one topic beside the rules, which several of them are about.
constexpr std::string_view kContract = "contract";

int explain(const std::string& name) {
  if (name.empty()) throw CLI::RequiredError("the id or name of a rule; `capo rules` lists them");
  if (name == kContract) return exit_code_after(write_stdout(gradients::contract_page()));
  const Rule* rule = find_rule(name);
  if (rule == nullptr) {
    std::vector<std::string_view> known{kContract};
    for (const Rule& row : catalogue()) {
      known.push_back(row.id);
      known.push_back(row.name);
    }
    print_error({.kind = ErrorKind::Unreadable,
                 .message = fmt::format("there is no rule or topic `{}`", name),
                 .help = did_you_mean(name, known,
                                      "`capo rules` lists them; the one topic is `contract`")});
    return kUsage;
  }
  for (const EmbeddedText& essay : embedded_essays()) {
    if (essay.name == rule->id) return exit_code_after(write_stdout(essay.text));
  }
  CAPO_ASSERT(false, "every rule has an essay; a test holds the catalogue to it");
  return kInternal;
}

}  // namespace

Run add_explain(CLI::App& command) {
  command.footer("Example: capo explain S15");
  auto name = std::make_shared<std::string>();
  command.add_option("RULE", *name, "A rule's id or name, or `contract`");
  return [name] { return explain(*name); };
}

}  // namespace capo::cli
