// Models of every kind that a model.json can say and its reader gives back unchanged, sound or not.
// What speaks of ranks and chunks speaks of one placement.
//
//   {"schema": 1, "modules": {"m0": {"kind": "linear"}}, "layers": [[["m0"]]], "topology": "chain"}
//
// Distribution: of several values each is equally likely, and what is said to be declared is in one
// of two models. A placement as in topology.h is drawn; its topology is declared. So are, each by
// itself, the communicators, the kind of send and Megatron's calls; the weight stream, the overlap
// of expert parallelism and each of its slots are on in one of four. Three in four have 1 to 3
// modules, m0 and so on, each as in sound_module.h, delayed or not with even chances, then each
// flag turned over once in 16; outputs are at 0 to 2, and each size of bytes, 0 to 1000, and each
// cost, 0 to 20, is declared in one of four. Their layers are given for every layer, for every
// chunk, for the chunks of every rank, or for the chunks of each rank of the placement: 1 to 3
// layers a chunk, each any of the modules. Ranks are dealt out to two groups, of which one without
// ranks is left out, and in one of two models both; a group performs each collective in one of two,
// and reduces where it would none; each has a stream of its own in one of four. Declared are, each
// by itself, latency (0 to 5), bandwidth (1 to 4) and bytes (0 to 8) of transfers, the kind of
// plan, and the aliases, each operand in one of two; in one of four each the budget (1 to 1000) and
// the chunks of the model (1 to 3, of 1 to 3 layers).
//
// Shrinking: away goes the topology, the environment, the modules, the groups, the cost of
// transfers or the plan; all but one module, a group, and everything about a module. Tested by
// arbitrary_model_test.cpp.

#pragma once

#include "core/model/model.h"
#include "testing/generators/dice.h"

#include <iosfwd>

namespace capo {

/// Prints a model.json to paste for rapidcheck.
void showValue(const Model& model, std::ostream& out);

namespace testing {

[[nodiscard]] Model draw_arbitrary_model(Dice& dice);
[[nodiscard]] rc::Gen<Model> arbitrary_model();

}  // namespace testing
}  // namespace capo
