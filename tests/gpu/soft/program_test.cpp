// What a user sees when CUDA fails: the program on the CUDA runtime in software, its whole
// messages, exit code 5, and outputs that are whole or not there.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

constexpr const char* kOrder = "[1,-1,-1.5]";
// Streams of two ranks, which one capture draws in.
constexpr const char* kTwoRanks =
    "capo 1\nmicrobatches 1\nplacement chain\nrank 0: F1.0 B1.0 W1.0\nrank 1: F1.0 B1.0 W1.0\n";

// Places are those of today's sources; which line is no matter of these tests.
std::string without_lines(const std::string& text) {
  return std::regex_replace(text, std::regex(R"((\.(?:cpp|cu)):\d+)"), "$1:LINE");
}

Outcome run_on_cuda(const std::string& faults, std::vector<std::string> more = {},
                    const std::string& input = {}) {
  std::vector<std::string> arguments{"run", "--device", "cuda"};
  if (input.empty()) {
    arguments.insert(arguments.end(), {"--order", kOrder});
  } else {
    arguments.emplace_back("-");
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  Outcome outcome = run_capo(
      arguments,
      {.input = input, .environment = {"CAPO_SOFT_CUDA=" + faults}, .program = CAPO_ON_SOFT_CUDA});
  outcome.err = without_lines(outcome.err);
  return outcome;
}

void expect_refusal(const Outcome& outcome, const std::string& words) {
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, words);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr const char* kOutOfMemory = "cudaMalloc:18:cudaErrorMemoryAllocation";
constexpr const char* kAssertion = "kernel:30:cudaErrorAssert";
const std::string kFailedKernel =
    "  help: a kernel failed on the device; CUDA says so at some later call, so what is named here "
    "may not be what failed: compute-sanitizer on the same command names the kernel\n";

TEST(CudaFailures, NoneIsARunLikeAnyOther) {
  const Outcome outcome = run_on_cuda("");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(
      outcome.out.starts_with("<order>: accepted\n"
                              "  engine cuda (software CUDA), 3 graphs, 3 replays\n"))
      << outcome.out;
  const Outcome step = run_on_cuda("", {"--graphs", "per-step"}, kTwoRanks);
  EXPECT_EQ(step.exit_code, 0) << step.err;
}

TEST(CudaFailures, OutOfMemory) {
  const std::string why =
      "cudaMalloc(&memory, size) gave cudaErrorMemoryAllocation (out of memory) at "
      "gpu/engine/cuda_engine.cpp:LINE\n"
      "  help: declare smaller shapes with --model, or take this machine's memory with --device "
      "host\n";
  expect_refusal(run_on_cuda(kOutOfMemory),
                 "error: the run of <order> broke off: cannot allocate 1024 bytes of planned "
                 "buffers, pool of rank 0 (setting up): " +
                     why);
  expect_refusal(run_on_cuda("cudaMalloc:21:cudaErrorMemoryAllocation"),
                 "error: the run of <order> broke off: cannot allocate 256 bytes of eager buffers "
                 "(B of chunk 1, microbatch 0 of rank 0): " +
                     why);
}

TEST(CudaFailures, AnInvalidatedCapture) {
  expect_refusal(
      run_on_cuda("cudaStreamEndCapture:2:cudaErrorStreamCaptureInvalidated"),
      "error: the run of <order> broke off: cannot end the capture of graph 1 (B of chunk 1, "
      "microbatch 0 of rank 0): cudaStreamEndCapture(origin, &graph) gave "
      "cudaErrorStreamCaptureInvalidated (operation failed due to a previous error during "
      "capture) at gpu/engine/cuda_engine.cpp:LINE\n");
  expect_refusal(
      run_on_cuda("cudaEventRecord:2:cudaErrorStreamCaptureInvalidated", {"--graphs", "per-step"},
                  kTwoRanks),
      "error: the run of <stdin> broke off: cannot record an event (F of chunk 1, microbatch 0 of "
      "rank 0, captured into graph 0): cudaEventRecord(state_->events[id].get(), "
      "state_->streams[stream].get()) gave cudaErrorStreamCaptureInvalidated (operation failed due "
      "to a previous error during capture) at gpu/engine/cuda_engine.cpp:LINE\n");
}

TEST(CudaFailures, AnUnjoinedCapture) {
  expect_refusal(
      run_on_cuda("cudaStreamEndCapture:1:cudaErrorStreamCaptureUnjoined", {"--graphs", "per-step"},
                  kTwoRanks),
      "error: the run of <stdin> broke off: cannot end the capture of graph 0 (the whole step): "
      "cudaStreamEndCapture(origin, &graph) gave cudaErrorStreamCaptureUnjoined (capturing stream "
      "has unjoined work) at gpu/engine/cuda_engine.cpp:LINE\n");
}

TEST(CudaFailures, AnAssertionOnTheDevice) {
  expect_refusal(run_on_cuda(kAssertion),
                 "error: the run of <order> broke off: cannot wait for the device (some task of a "
                 "replay): cudaDeviceSynchronize() gave cudaErrorAssert (device-side assert "
                 "triggered) at gpu/engine/cuda_engine.cpp:LINE\n" +
                     kFailedKernel);
}

TEST(CudaFailures, AGraphThatCannotBeReplayed) {
  expect_refusal(run_on_cuda("cudaGraphLaunch:2:cudaErrorLaunchFailure"),
                 "error: the run of <order> broke off: cannot replay graph 1 (B of chunk 1, "
                 "microbatch 0 of rank 0): cudaGraphLaunch(state_->graphs[graph].exec.get(), "
                 "state_->streams[stream].get()) gave cudaErrorLaunchFailure (unspecified launch "
                 "failure) at gpu/engine/cuda_engine.cpp:LINE\n" +
                     kFailedKernel);
}

TEST(CudaFailures, AGraphThatCannotBeReadBack) {
  expect_refusal(run_on_cuda("cudaGraphKernelNodeGetParams:1:cudaErrorInvalidValue"),
                 "error: the run of <order> broke off: cannot read graph 0 (F of chunk 1, "
                 "microbatch 0 of rank 0) back: cudaGraphKernelNodeGetParams(node, &params) gave "
                 "cudaErrorInvalidValue (invalid argument) at gpu/engine/read_graph.cpp:LINE\n");
}

TEST(CudaFailures, NoDevice) {
  expect_refusal(run_on_cuda("cudaGetDeviceCount:1:cudaErrorNoDevice"),
                 "error: cannot list the CUDA devices: cudaGetDeviceCount(&count) gave "
                 "cudaErrorNoDevice (no CUDA-capable device is detected) at "
                 "gpu/runtime/device.cu:LINE\n"
                 "  help: check that `nvidia-smi -L` lists a device, that CUDA_VISIBLE_DEVICES "
                 "does not hide it, and that a container was given it\n");
}

TEST(CudaFailures, ADriverThatIsTooOld) {
  const auto version = [](int number) {
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
  };
  expect_refusal(
      run_on_cuda("cudaGetDeviceCount:1:cudaErrorInsufficientDriver"),
      fmt::format("error: cannot list the CUDA devices: cudaGetDeviceCount(&count) gave "
                  "cudaErrorInsufficientDriver (CUDA driver version is insufficient for CUDA "
                  "runtime version) at gpu/runtime/device.cu:LINE\n"
                  "  help: this driver is for CUDA {}, capo was built for CUDA {}: update the "
                  "driver or build capo with an older toolkit\n",
                  version(CUDART_VERSION - 1000), version(CUDART_VERSION)));
}

// What `capo run` says beside its report where nobody asked for an engine, and the host's is taken.
std::string note_of_the_host_engine(const std::string& faults) {
  const Outcome outcome =
      run_capo({"run", "--order", kOrder},
               {.environment = {"CAPO_SOFT_CUDA=" + faults}, .program = CAPO_ON_SOFT_CUDA});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("engine host"), std::string::npos) << outcome.out;
  return without_lines(outcome.err);
}

TEST(CudaFailures, AutoTakesTheHostInSilenceWhereThereIsNoDriver) {
  EXPECT_EQ(note_of_the_host_engine("cudaDriverGetVersion:1:cudaErrorUnknown"), "");
}

TEST(CudaFailures, AutoSaysWhyItTakesTheHostWhereThereIsADriver) {
  EXPECT_EQ(note_of_the_host_engine("cudaGetDeviceCount:1:cudaErrorNoDevice"),
            "note: the host engine is taken: cannot list the CUDA devices: "
            "cudaGetDeviceCount(&count) gave cudaErrorNoDevice (no CUDA-capable device is "
            "detected) at gpu/runtime/device.cu:LINE\n");
  EXPECT_EQ(note_of_the_host_engine("cudaGetDeviceCount:1:cudaErrorInsufficientDriver"),
            "note: the host engine is taken: cannot list the CUDA devices: "
            "cudaGetDeviceCount(&count) gave cudaErrorInsufficientDriver (CUDA driver version is "
            "insufficient for CUDA runtime version) at gpu/runtime/device.cu:LINE\n");
}

// --- outputs -------------------------------------------------------------------------------------

TEST(CudaFailures, LeaveNoTimelineAndTouchNoOldOne) {
  for (const char* faults : {kOutOfMemory, kAssertion, "cudaGraphLaunch:2:cudaErrorLaunchFailure",
                             "cudaGetDeviceCount:1:cudaErrorNoDevice"}) {
    SCOPED_TRACE(faults);
    const ScratchFolder folder;
    const auto path = folder.path() / "timeline.json";
    EXPECT_EQ(run_on_cuda(faults, {"-o", path}).exit_code, 5);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    std::ofstream(path) << "of another run";
    EXPECT_EQ(run_on_cuda(faults, {"-o", path}).exit_code, 5);
    EXPECT_EQ(text_of(path), "of another run");
    EXPECT_EQ(run_on_cuda("", {"-o", path}).exit_code, 0);
    EXPECT_TRUE(json::parse(text_of(path)).contains("traceEvents"));
  }
}

TEST(CudaFailures, AreWholeInJson) {
  for (const char* faults : {kOutOfMemory, kAssertion}) {
    SCOPED_TRACE(faults);
    const Outcome words = run_on_cuda(faults);
    const Outcome outcome = run_on_cuda(faults, {"--format", "json"});
    EXPECT_EQ(outcome.exit_code, 5);
    EXPECT_EQ(outcome.err, "");
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report["engine"], "cuda");
    EXPECT_EQ(report["verdict"], "accepted");
    EXPECT_EQ(report["bit_equal"], nullptr);
    const std::string told = without_lines(report["reason"]);
    EXPECT_NE(words.err.find(": " + told + "\n"), std::string::npos) << told;
    EXPECT_NE(words.err.find("  help: " + report["help"].get<std::string>() + "\n"),
              std::string::npos);
  }
  const Outcome none = run_on_cuda("cudaGetDeviceCount:1:cudaErrorNoDevice", {"--format", "json"});
  EXPECT_EQ(none.exit_code, 5);
  EXPECT_EQ(none.out, "") << "nothing is known of a run that no engine began";
}

// Wherever it breaks off, a run prints a whole report or none.
TEST(CudaFailures, AtAnyCallLeaveOutputsWholeOrAbsent) {
  std::size_t failed = 0;
  for (int call = 1; call < 400; call += 13) {
    const std::string faults = fmt::format("any:{}:cudaErrorUnknown", call);
    SCOPED_TRACE(faults);
    const Outcome outcome = run_on_cuda(faults, {"--replays", "1"});
    EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 5) << outcome.exit_code;
    EXPECT_EQ(outcome.out.empty(), outcome.exit_code == 5);
    EXPECT_EQ(outcome.err.empty(), outcome.exit_code == 0);
    if (outcome.exit_code == 5) ++failed;
  }
  EXPECT_GT(failed, 10u);
}

}  // namespace
}  // namespace capo
