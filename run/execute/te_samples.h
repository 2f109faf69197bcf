// What TransformerEngine's sharing of sample tensors does to a graph beside its memory.
//
// A graph that takes over another's static input is captured with that one's sample: where that
// needed no gradient, its backward hands none back (B05). A graph that shares another's incoming
// gradients finds its own at another place of the tuple, and reads zeros (B06). Facts about
// TransformerEngine's plan, so that a run of it shows them; under capo's own plan there is neither.
//
// Tested through tests/cli/run_corpus_test.cpp.

#pragma once

#include "core/rules/verify.h"

#include <cstdint>
#include <set>

namespace capo::run {

struct TeSamples {
  /// By the buffer of the static input: its backward computes no gradient of it.
  std::set<BufferId> without_gradient;
  /// By the buffer of the incoming gradient: it holds zeros.
  std::set<BufferId> zeros;
};

[[nodiscard]] TeSamples te_samples(const PlannedStep& step);

}  // namespace capo::run
