// The checks around CUDA calls. Only the last test needs a device.

#include "gpu/runtime/check.h"
#include "core/base/result.h"
#include "gpu/runtime/device.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace capo::gpu {
namespace {

Result<int> choose_no_device() {
  CAPO_CUDA_TRY("choose device -1", cudaSetDevice(-1));
  return 1;
}

Result<int> succeed() {
  CAPO_CUDA_TRY("succeed", cudaSuccess);
  return 1;
}

TEST(Check, TryHandsOnTheErrorThatEndedTheFunction) {
  const auto result = choose_no_device();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Environment);
  const std::string& message = result.error().message;
  EXPECT_TRUE(message.starts_with("cannot choose device -1: cudaSetDevice(-1) gave cudaError"))
      << message;
}

TEST(Check, TryLeavesASuccessAlone) {
  const auto result = succeed();
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, 1);
}

TEST(Check, NoexceptKeepsCallAndPlaceAndThrowsNothing) {
  static_assert(noexcept(CAPO_CUDA_CHECK_NOEXCEPT(cudaErrorNoDevice)));
  static_assert(std::is_trivially_copyable_v<CudaStatus>);
  const CudaStatus status = CAPO_CUDA_CHECK_NOEXCEPT(cudaErrorNoDevice);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code, cudaErrorNoDevice);
  EXPECT_STREQ(status.call, "cudaErrorNoDevice");
  EXPECT_EQ(status.line, __LINE__ - 4);
}

TEST(Check, ErrorQuotesCallNameTextAndPlace) {
  const CudaStatus status{.code = cudaErrorMemoryAllocation,
                          .call = "cudaMalloc(&bytes, size)",
                          .file = "/anywhere/capo/gpu/runtime/arena.cu",
                          .line = 14};
  const Error error = to_error("allocate the arena", status);
  EXPECT_EQ(error.kind, ErrorKind::Environment);
  EXPECT_EQ(error.message,
            "cannot allocate the arena: cudaMalloc(&bytes, size) gave cudaErrorMemoryAllocation "
            "(out of memory) at gpu/runtime/arena.cu:14");
  EXPECT_EQ(
      error.help,
      "declare smaller shapes with --model, or take this machine's memory with --device host");
}

TEST(Check, PlaceIsTheSameWhereverTheTreeLies) {
  CudaStatus status{
      .code = cudaErrorNoDevice, .call = "f()", .file = "/a/gpu/b/gpu/x.cu", .line = 1};
  EXPECT_NE(to_error("try", status).message.find(" at gpu/x.cu:1"), std::string::npos);
  status.file = "/a/tests/gpu/x_test.cpp";
  EXPECT_NE(to_error("try", status).message.find(" at tests/gpu/x_test.cpp:1"), std::string::npos);
  status.file = "elsewhere.cu";
  EXPECT_NE(to_error("try", status).message.find(" at elsewhere.cu:1"), std::string::npos);
}

TEST(Check, HelpSaysWhatAMachineWithoutDriverOrDeviceLacks) {
  CudaStatus status{.code = cudaErrorNoDevice, .call = "f()", .file = "x.cu", .line = 1};
  EXPECT_NE(to_error("try", status).help.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  status.code = cudaErrorInsufficientDriver;
  EXPECT_NE(to_error("try", status).help.find("driver"), std::string::npos);
}

TEST(Check, HelpSaysThatAFailedKernelMayBeAnother) {
  CudaStatus status{.code = cudaErrorAssert, .call = "f()", .file = "x.cu", .line = 1};
  EXPECT_NE(to_error("try", status).help.find("compute-sanitizer"), std::string::npos);
  status.code = cudaErrorInvalidValue;
  EXPECT_EQ(to_error("try", status).help, "");
}

TEST(Check, AFailureIsNotBlamedOnTheNextCall) {
  if (const auto devices = list_devices(); !devices) {
    GTEST_SKIP() << "no CUDA device here: " << devices.error().message;
  }
  ASSERT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice) << "this call would leave no trace";
  const CudaStatus status = CAPO_CUDA_CHECK_NOEXCEPT(cudaSetDevice(-1));
  EXPECT_EQ(status.code, cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

}  // namespace
}  // namespace capo::gpu
