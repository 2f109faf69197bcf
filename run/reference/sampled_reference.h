// A sample of a whole step in float64: some rows of what layers hand on, and some rows and columns
// of the gradients of weights, computed as step_reference.h computes all of them.
//
// A row of a layer's output depends on its own row of the input and on all weights of its group,
// and so does a row of the input's gradient: a row is a layer of one token. A row of a gradient of
// a weight depends on its own column of the incoming gradient and on all rows of its group: some
// columns of what the first product makes are a layer as wide as they are many, of which the
// gradients alone are taken. So both are the reference's own layers, cut down, and exact.
//
//                           rows, of every microbatch            columns, of every weight
//   sampled over            the rows in use, in groups or not    the groups one after another
//   looks at                y = x W^T, dx = dy W, and all        dW = dy^T x: a row of the first
//                           that is computed row by row          weight (of an MLP gate and
//                                                                linear), a column of the second,
//                                                                and elements of their biases
//
// Which ones is drawn by seed and place, one from each of as many equal parts: a sample is the same
// wherever it is taken, and stretches of twice a part are always met. Gradients of norms are sums
// over all rows of what takes all columns: they are compared if all rows are in the sample.
//
// Operands are read where the engine stored them, parameters are drawn again. Roundings on an edge
// are tried the other way row by row, for the first few rows that are beyond their bound. Tested by
// tests/run/reference/sampled_reference_test.cpp and tests/run/steps/sampled_test.cpp.

#pragma once

#include "run/reference/float_sample.h"
#include "run/reference/sampled_parts.h"

#include <cstdint>
#include <vector>

namespace capo::run {

[[nodiscard]] SampledReference sampled_reference(const PlannedStep& step, const StepLayers& layers,
                                                 const std::vector<DrawnTensor>& parameters,
                                                 const StepValues& given, const StoredRows& stored,
                                                 const FloatSample& sample);

/// Multiply-adds that it takes at most, whatever the sizes of groups are; a weight that is drawn
/// counts as one.
[[nodiscard]] double sampled_work(const StepLayers& layers, std::int32_t microbatches,
                                  std::int64_t count);

}  // namespace capo::run
