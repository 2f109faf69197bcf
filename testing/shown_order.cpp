#include "testing/shown_order.h"

#include "core/text/order_text.h"
#include "testing/model_text.h"

namespace capo::testing {

std::string shown_order(const Schedule& schedule, const CheckOptions& declared) {
  const std::string model = model_text(declared);
  const bool silent = model == model_text(CheckOptions{});
  return (silent ? "" : "# declared: capo check - --model FILE, of\n# " + model) +
         print_order_file(schedule);
}

}  // namespace capo::testing
