// The CUDA runtime in software: that it fails where it is told to, and that captures keep CUDA's
// rules, so that what other tests see of the engine is worth something.

#include "tests/gpu/soft/soft_cuda.h"
#include "gpu/kernels/kernels.h"
#include "tests/gpu/soft/errors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace capo::soft_cuda {
namespace {

class SoftCuda : public ::testing::Test {
 protected:
  SoftCuda() { start(); }
  ~SoftCuda() override { begin(); }

  // Two streams, an event and four bytes; faults count from here.
  void start(std::vector<Fault> faults = {}) {
    begin(std::move(faults));
    EXPECT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  }
  [[nodiscard]] int fill(cudaStream_t stream, std::uint8_t value) const {
    return gpu::launch(run::Fill{.bytes = 4, .value = value, .to = memory}, stream).code;
  }
  [[nodiscard]] int value() const {
    std::uint8_t byte = 0;
    EXPECT_EQ(cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost), cudaSuccess);
    return byte;
  }
  [[nodiscard]] cudaError_t begin_capture() const {
    return cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal);
  }
  [[nodiscard]] cudaError_t end_capture() {
    const cudaError_t error = cudaStreamEndCapture(first, &graph);
    EXPECT_EQ(live().captures, 0u);
    EXPECT_EQ(graph != nullptr, error == cudaSuccess);
    return error;
  }

  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
};

TEST_F(SoftCuda, LaunchesRunAndCapturedOnesRunWhenTheirGraphDoes) {
  EXPECT_EQ(fill(first, 1), cudaSuccess);
  EXPECT_EQ(value(), 1);
  ASSERT_EQ(begin_capture(), cudaSuccess);
  EXPECT_EQ(fill(first, 2), cudaSuccess);
  ASSERT_EQ(end_capture(), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(value(), 1);
  EXPECT_EQ(cudaGraphLaunch(exec, second), cudaSuccess);
  EXPECT_EQ(value(), 2);
}

TEST_F(SoftCuda, TheCallThatIsNamedFailsAndNoOther) {
  start({{.function = "cudaEventRecord", .call = 2, .error = cudaErrorUnknown}});
  EXPECT_EQ(first_failed(), "");
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first), cudaErrorUnknown);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(first_failed(), "cudaEventRecord");
  EXPECT_EQ(calls().at("cudaEventRecord"), 3u);
  EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(SoftCuda, AnyCountsCallsOfAllFunctions) {
  begin({{.function = "any", .call = 2, .error = cudaErrorUnknown}});
  void* bytes = nullptr;
  EXPECT_EQ(cudaMalloc(&bytes, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(bytes), cudaErrorUnknown);
  EXPECT_EQ(live().memory, 1u) << "what fails does nothing";
  EXPECT_EQ(cudaFree(bytes), cudaSuccess);
  EXPECT_EQ(live(), Live{});
}

TEST_F(SoftCuda, AStickyErrorComesBackFromEveryCall) {
  start({{.function = "cudaEventRecord", .call = 1, .error = cudaErrorLaunchFailure}});
  EXPECT_EQ(cudaEventRecord(event, first), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(fill(first, 1), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(first_failed(), "cudaEventRecord");
}

TEST_F(SoftCuda, AKernelThatFailsIsToldByTheNextCallThatWaits) {
  start({{.function = "kernel", .call = 2, .error = cudaErrorAssert}});
  EXPECT_EQ(fill(first, 1), cudaSuccess);
  EXPECT_EQ(value(), 1);
  EXPECT_EQ(fill(first, 2), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_EQ(first_failed(), "cudaDeviceSynchronize");
  EXPECT_EQ(cudaEventRecord(event, first), cudaErrorAssert);
}

TEST_F(SoftCuda, ThereIsAnEndToMemory) {
  void* bytes = nullptr;
  EXPECT_EQ(cudaMalloc(&bytes, (std::size_t{64} << 30) - 3), cudaErrorMemoryAllocation);
  EXPECT_EQ(bytes, nullptr);
}

TEST_F(SoftCuda, OnlyItsOwnMemoryIsRead) {
  std::uint64_t here = 0;
  EXPECT_EQ(cudaMemcpy(&here, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&here, memory, 5, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(&here, &here, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
}

// --- captures ------------------------------------------------------------------------------------

TEST_F(SoftCuda, WhatWaitsForTheDeviceInvalidatesACapture) {
  for (const bool synchronise : {false, true}) {
    ASSERT_EQ(begin_capture(), cudaSuccess);
    void* bytes = nullptr;
    EXPECT_EQ(synchronise ? cudaDeviceSynchronize() : cudaMalloc(&bytes, 4),
              cudaErrorStreamCaptureUnsupported);
    EXPECT_EQ(fill(first, 1), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaEventRecord(event, first), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
  }
}

TEST_F(SoftCuda, WorkOfAStreamThatWasDrawnInIsJoined) {
  for (const bool join : {false, true}) {
    ASSERT_EQ(begin_capture(), cudaSuccess);
    EXPECT_EQ(fill(first, 1), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaSuccess);
    EXPECT_EQ(fill(second, 2), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, second), cudaSuccess);
    if (join) {
      EXPECT_EQ(cudaStreamWaitEvent(first, event, 0), cudaSuccess);
    }
    EXPECT_EQ(end_capture(), join ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    EXPECT_EQ(fill(second, 3), cudaSuccess);
    EXPECT_EQ(value(), 3) << "the stream is out of the capture";
  }
}

TEST_F(SoftCuda, ACaptureWaitsForNothingOutside) {
  EXPECT_EQ(cudaEventRecord(event, second), cudaSuccess);
  ASSERT_EQ(begin_capture(), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(first, event, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SoftCuda, AnEventOfACaptureThatIsOverIsOfNoUse) {
  ASSERT_EQ(begin_capture(), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(end_capture(), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaErrorCapturedEvent);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorCapturedEvent);
}

TEST_F(SoftCuda, TwoCapturesStayApart) {
  ASSERT_EQ(begin_capture(), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal),
            cudaErrorIllegalState);
  EXPECT_EQ(cudaEventRecord(event, first), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(second, event, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(cudaStreamEndCapture(second, &graph), cudaSuccess);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(SoftCuda, AnEndThatIsToldToFailEndsTheCapture) {
  start({{.function = "cudaStreamEndCapture", .call = 1, .error = cudaErrorStreamCaptureUnjoined}});
  ASSERT_EQ(begin_capture(), cudaSuccess);
  EXPECT_EQ(end_capture(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(end_capture(), cudaErrorIllegalState);
}

// --- faults as text ------------------------------------------------------------------------------

TEST_F(SoftCuda, FaultsAreReadFromText) {
  const auto faults =
      parse_faults("cudaMalloc:3:cudaErrorMemoryAllocation,kernel:1:cudaErrorAssert");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].function, "cudaMalloc");
  EXPECT_EQ(faults[0].call, 3u);
  EXPECT_EQ(faults[0].error, cudaErrorMemoryAllocation);
  EXPECT_EQ(faults[1].error, cudaErrorAssert);
  EXPECT_TRUE(parse_faults("").empty());
  for (const char* wrong : {"cudaMalloc", "cudaMalloc:3", "cudaMalloc:x:cudaErrorAssert",
                            "cudaMalloc:3:cudaErrorNone", "cudaMalloc::cudaErrorAssert"}) {
    EXPECT_THROW(static_cast<void>(parse_faults(wrong)), std::invalid_argument) << wrong;
  }
}

TEST_F(SoftCuda, EveryErrorHasItsName) {
  for (const NamedError& named : named_errors()) {
    EXPECT_EQ(error_named(named.name), named.error);
    EXPECT_STREQ(cudaGetErrorName(named.error), named.name);
    EXPECT_STREQ(cudaGetErrorString(named.error), named.text);
  }
  EXPECT_STREQ(cudaGetErrorName(cudaErrorTimeout), "unrecognized error code");
}

}  // namespace
}  // namespace capo::soft_cuda
