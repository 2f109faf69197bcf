#include "testing/truth/paste.h"

#include "core/rules/undeclared.h"
#include "core/text/order_text.h"
#include "testing/model_text.h"

#include <fmt/format.h>

namespace capo::testing {

namespace {

// The flags of a run whose ranks communicate as was drawn, where nobody declared how.
std::string values_of(const TruthCase& of) {
  const Environment& environment = of.declared.environment;
  if (!has_undeclared(of.input.schedule, environment)) return "";
  return (environment.communicators ? "" : fmt::format(" --comm {}", name_of(of.layout))) +
         (environment.transfers ? "" : fmt::format(" --transfers {}", name_of(of.mode)));
}

}  // namespace

std::string paste_text(const TruthCase& of, std::string_view device) {
  return fmt::format(
      "cat > case.order <<'END'\n{}END\ncat > case.model <<'END'\n{}END\n"
      "capo run case.order --model case.model --device {} --graphs {} --replays {} --seed {} "
      "--sizes {}{}{}{}\n",
      print_order_file(of.input.schedule), model_text(of.declared), device,
      of.graphs == Granularity::PerStep ? "per-step" : "per-action", of.replays, of.seed,
      run::name_of(of.sizes), values_of(of),
      of.replicas == 1 ? "" : fmt::format(" --replicas {}", of.replicas),
      of.made == Made::Sound ? "" : " --unchecked");
}

}  // namespace capo::testing
