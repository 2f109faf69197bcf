// Words for what the graphs of a run launch, by which tests of a module kind list its calls.

#pragma once

#include "tests/run/labelled_engine.h"
#include "tests/run/running.h"

#include <string>
#include <utility>
#include <vector>

namespace capo::run {

inline const char* kind_word(const GroupedProduct& product) {
  if (product.kind == GroupedProduct::Kind::Forward) return "y";
  return product.kind == GroupedProduct::Kind::InputGradient ? "dx" : "dw";
}

/// The words of each graph's calls, in the order of capture; calls without a word are left out.
/// `expect_right` looks at the run's report.
template <typename Word, typename ExpectRight>
std::vector<std::string> launched_words(const VerifiedPlan& plan, Word word,
                                        ExpectRight expect_right) {
  std::vector<std::string> graphs;
  LabelledEngine engine(test_engine());
  RunOptions options{.replays = 1};
  options.inspect = [&](const Inspection& at) {
    graphs.clear();
    for (const Stepper::Captured& captured : at.graphs) {
      std::string words;
      for (const CapturedLaunch& launch : engine.launches(captured.graph)) {
        const std::string one = word(launch.call);
        if (!one.empty()) words += (words.empty() ? "" : " ") + one;
      }
      graphs.push_back(std::move(words));
    }
  };
  expect_right(report_on(engine, plan, options));
  return graphs;
}

}  // namespace capo::run
