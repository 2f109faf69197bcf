#include "testing/faults/shown.h"

#include "testing/faults/table.h"
#include "testing/shown_order.h"

namespace capo::testing {

std::string shown(const Declared& declared) {
  if (declared.table) return shown_table(table_of(declared.schedule), declared.options);
  return shown_order(declared.schedule, declared.options);
}

}  // namespace capo::testing
