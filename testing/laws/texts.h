// Laws of texts: what is printed reads back as what it was, and prints again as the same bytes.
//
// They hold of any schedule, sound or not. A schedule that .order text and JSON cannot express
// breaks the law with the reason that representable.h gives. Tested by
// tests/testing/laws/texts_test.cpp; that capo keeps it is a property in tests/properties/.

#pragma once

#include "core/order/schedule.h"
#include "testing/laws/law.h"

namespace capo::testing::laws {

[[nodiscard]] Breach order_text_reads_back(const Schedule& schedule);
[[nodiscard]] Breach json_reads_back(const Schedule& schedule);

}  // namespace capo::testing::laws
