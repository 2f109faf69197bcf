// The engine that tests of whole runs (steps/) take. It is chosen where a program is linked: the
// same objects go into one that runs them on the host's, and into one that runs them on a CUDA
// device.
//
//   capo_run_tests, capo_cli_tests   tests/run/host_test_engine.cpp
//   capo_gpu_step_tests              tests/gpu/cuda_test_engine.cpp
//
// If the second finds no device, every test of it is skipped, and says what is missing.

#pragma once

#include "run/engine/engine.h"

#include <cstddef>
#include <memory>
#include <string_view>

namespace capo::run {

/// A new one for each run, as programs make it.
[[nodiscard]] std::unique_ptr<Engine> test_engine();

/// Its name for `capo run --device`.
[[nodiscard]] std::string_view test_device();

/// The engine runs the first of many cases that are alike, and every nth from there on. It is 1
/// on the host; more on a device, where memory of its own for each run takes most of the time.
[[nodiscard]] std::size_t every_nth();

/// Counts cases that are alike, and says which of them are run. What has to be complete (kinds of
/// modules, granularities, cells of the contract, names of schedules) is not sampled.
class Sample {
 public:
  [[nodiscard]] bool takes_next() { return met_++ % every_nth() == 0; }

 private:
  std::size_t met_ = 0;
};

/// How many of so many are run.
[[nodiscard]] inline std::size_t sampled(std::size_t cases) {
  return (cases + every_nth() - 1) / every_nth();
}

}  // namespace capo::run
