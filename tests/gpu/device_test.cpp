// The devices of the machine that runs the tests, whichever these are.

#include "gpu/runtime/device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace capo::gpu {
namespace {

TEST(Device, ListsWhatIsThereInOrder) {
  const auto devices = list_devices();
  if (!devices) GTEST_SKIP() << "no CUDA device here: " << devices.error().message;
  ASSERT_FALSE(devices->empty());
  for (std::size_t i = 0; i < devices->size(); ++i) {
    const Device& device = (*devices)[i];
    SCOPED_TRACE("device " + std::to_string(i) + ": " + device.name);
    EXPECT_EQ(device.ordinal, static_cast<int>(i));
    EXPECT_FALSE(device.name.empty());
    EXPECT_GE(device.capability, (ComputeCapability{.major = 5, .minor = 0}));
    EXPECT_GT(device.bytes, std::uint64_t{1} << 28);
    EXPECT_GT(device.multiprocessors, 0);
    EXPECT_GE(device.driver.major, device.runtime.major) << "older drivers refuse the runtime";
    EXPECT_EQ(device.driver, devices->front().driver);
    EXPECT_EQ(device.runtime, devices->front().runtime);
  }
}

TEST(Device, AskingTwiceGivesTheSame) {
  const auto first = list_devices();
  if (!first) GTEST_SKIP() << "no CUDA device here: " << first.error().message;
  const auto second = list_devices();
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
}

// Runs on every machine.
TEST(Device, ThereIsAListOrAnErrorThatNamesTheCallAndTheCure) {
  const auto devices = list_devices();
  if (devices) {
    EXPECT_FALSE(devices->empty());
    return;
  }
  const Error& error = devices.error();
  EXPECT_EQ(error.kind, ErrorKind::Environment);
  EXPECT_TRUE(error.message.starts_with(
      "cannot list the CUDA devices: cudaGetDeviceCount(&count) gave cudaError"))
      << error.message;
  EXPECT_NE(error.message.find(" at gpu/runtime/device.cu:"), std::string::npos) << error.message;
  EXPECT_FALSE(error.help.empty()) << error.message;
}

}  // namespace
}  // namespace capo::gpu
