// The consult functions ask the profiles how each of these programs would answer an input.
//
// TE and Megatron capture one rank's list at a time, so a schedule of several ranks is put to them
// rank by rank, and accepted if every list is. An order that their notation cannot say is not put
// at all. Tested by consult_test.cpp.

#pragma once

#include "core/frameworks/megatron/mcore.h"
#include "core/frameworks/te/predict.h"
#include "core/order/input.h"
#include "core/profiles/opinion.h"

#include <optional>

namespace capo {

struct ConsultOptions {
  te::Options te;
  std::optional<mcore::Configuration> megatron;
};

[[nodiscard]] Opinion consult_te(const Input& input, const ConsultOptions& options);
[[nodiscard]] Opinion consult_mcore(const Input& input, const ConsultOptions& options);
[[nodiscard]] Opinion consult_torch(const Input& input);

}  // namespace capo
