// What is drawn in red: the witness of a finding.
//
// A witness names entries of orders, a picture has tasks. An entry may be several, as where its
// layers are taken apart, and a transfer that was added is found by the entry that it was added
// for. Tested by draw_test.cpp.

#pragma once

#include "core/draw/dot.h"
#include "core/rules/context.h"
#include "core/rules/wiring.h"

namespace capo {

/// The finding's witness in a graph of the wiring: a circle of waits with all that lies between,
/// two ends that should not meet, or tasks alone.
[[nodiscard]] Marks marks_of(const Context& context, const Wiring& wiring, const TaskGraph& graph,
                             const Diagnostic& finding);

}  // namespace capo
