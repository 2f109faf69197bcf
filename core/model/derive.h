// derive() gives the modules of a model the sizes that follow from its configuration.
//
//   {"configuration": {...}, "modules": {"moe": {"kind": "grouped-mlp"}}}
//     ->  "moe" has a shape, a type, a recipe, and bytes of all it keeps
//
// A module's own declarations stay and win; a module with a shape of its own takes nothing but its
// type and its recipe. A kind that is one product has sizes that a configuration does not tell, and
// takes these as well. Modules that quantize have tensors of bf16 between them unless they or the
// configuration say otherwise. Derived bytes stand beside declared ones (Module::derived), since a
// run, which keeps other tensors, goes by what is declared. Tested by derive_test.cpp.

#pragma once

#include "core/model/model.h"

namespace capo {

/// Applied twice it changes nothing. A configuration has no fault (fault_of()).
void derive(Model& model);

}  // namespace capo
