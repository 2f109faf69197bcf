// The contract's cells as tests of whole runs ask for them: orders of a mode in which nothing but
// the gradient can go wrong, and what a report says of it.

#pragma once

#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace capo::run {

using Rules = std::vector<std::string_view>;

inline bool fuses(gradients::GradientMode mode) {
  return mode != gradients::GradientMode::Vanilla && mode != gradients::GradientMode::Delay;
}

/// Without hazards, so that what is wrong is the gradient's alone.
inline std::string plain_order(gradients::GradientMode mode) {
  return delays(mode) ? "[1, -1, -1.5, 1, -1, -1.5]" : "[1, -1, 1, -1]";
}

inline void expect_right(const RunReport& report) {
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds) << report.worst_relative_error;
  for (const TensorReport& tensor : report.parameters) {
    EXPECT_FALSE(tensor.difference.has_value()) << tensor.name;
  }
}

/// The flag of a module under delay_fuse_attr is set at B, ahead of what W writes: a reader in
/// between takes its word for it.
inline void expect_flag_ahead_of_its_gradient(const Module& module) {
  const auto broken = [&](const std::string& actions) {
    return rules_broken(typed("capo 1\nmicrobatches 1\nrank 0: " + actions + "\n"),
                        every_layer(module, PlanKind::Te));
  };
  EXPECT_EQ(broken("F1.0 B1.0 reduce1 W1.0"), Rules{"G13"});
  EXPECT_EQ(broken("F1.0 B1.0 W1.0 reduce1"), Rules{});
}

/// Whether the weight is that of a product, and not of a norm.
inline bool is_weight(const TensorReport& tensor) {
  return tensor.name.ends_with("weight") && !tensor.name.ends_with("norm weight");
}

}  // namespace capo::run
