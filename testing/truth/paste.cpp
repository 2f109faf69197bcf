#include "testing/truth/paste.h"

#include "core/text/order_printer.h"
#include "testing/model_text.h"

#include <fmt/format.h>

namespace capo::testing {

std::string paste_text(const TruthCase& of, std::string_view device) {
  return fmt::format(
      "cat > case.order <<'END'\n{}END\ncat > case.model <<'END'\n{}END\n"
      "capo run case.order --model case.model --device {} --graphs {} --replays {} --seed {} "
      "--sizes {}{}\n",
      print_order_file(of.input.schedule), model_text(of.declared), device,
      of.graphs == Granularity::PerStep ? "per-step" : "per-action", of.replays, of.seed,
      run::name_of(of.sizes), of.made == Made::Sound ? "" : " --unchecked");
}

}  // namespace capo::testing
