// The profile accepts orders that TransformerEngine can capture, and refuses sound orders that it
// cannot as PyTorch's double capture.

#include "core/frameworks/te/predict.h"
#include "testing/generators/sound_order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace capo::testing {
namespace {

te::Prediction predicted(const TeOrder& order, bool reuse) {
  return te::predict(order.list, order.layers, order.delays, {.reuse = reuse}).value();
}

RC_GTEST_PROP(TeProfile, AcceptsWhatTeCanCapture, (bool reuse)) {
  const te::Prediction prediction = predicted(*te_capturable_order(), reuse);
  if (!prediction.accepts()) RC_FAIL(prediction.reason);
}

RC_GTEST_PROP(TeProfile, RefusesTwoOutstandingWeightGradients, (bool reuse)) {
  RC_ASSERT(te::name_of(predicted(*te_uncapturable_order(), reuse).kind) == "torch.RuntimeError");
}

// The two generators together are all sound orders: nothing between them is left out.
RC_GTEST_PROP(TeProfile, AcceptsASoundOrderExactlyWhereNoTwoAreOutstanding, (bool reuse)) {
  const TeOrder order = *sound_order();
  RC_ASSERT(predicted(order, reuse).accepts() == !two_outstanding(order));
}

RC_GTEST_PROP(TeProfile, TakesUnstatedLayersForAListOfOnes, ()) {
  const TeOrder order = *sound_order();
  const Layers ones{.form = Layers::Form::List,
                    .values = std::vector<std::int64_t>(order.delays.size(), 1)};
  const auto stated = te::predict(order.list, ones, order.delays).value();
  const auto unstated = te::predict(order.list, Layers{}, order.delays).value();
  RC_ASSERT(stated.kind == unstated.kind);
  RC_ASSERT(stated.entry == unstated.entry);
}

}  // namespace
}  // namespace capo::testing
