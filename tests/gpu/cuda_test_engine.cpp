// The first CUDA device. Where there is none the whole program skips its tests, each by its name,
// and says why.

#include "gpu/engine/cuda_engine.h"
#include "tests/run/test_engine.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace capo::run {

namespace {

class DeviceThere final : public ::testing::Environment {
 public:
  void SetUp() override {
    const auto made = gpu::CudaEngine::make();
    if (!made) GTEST_SKIP() << "no CUDA device here: " << made.error().message;
  }
};

// GoogleTest owns it.
[[maybe_unused]] const auto* const kDeviceThere =
    ::testing::AddGlobalTestEnvironment(new DeviceThere);

}  // namespace

std::unique_ptr<Engine> test_engine() {
  auto made = gpu::CudaEngine::make();
  if (!made) throw std::runtime_error(made.error().message);
  return *std::move(made);
}

std::string_view test_device() {
  return "cuda";
}

std::size_t every_nth() {
  return 5;
}

}  // namespace capo::run
