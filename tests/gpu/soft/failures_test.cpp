// Every call of CUDA that a run makes, failing in turn: the run ends with an error that names the
// call, what was tried, and the task, graph or phase; no stream stays in capture, nothing leaks but
// what a destructor could not give back, and a new engine in the same process runs through.
//
// The step has two ranks, so that streams wait for each other, and W apart, once in a graph for
// each action and once in one graph. The engine, the driver and the wrappers of kernels are the
// real ones; the runtime is soft_cuda.h.

#include "gpu/engine/cuda_engine.h"
#include "tests/gpu/soft/soft_cuda.h"
#include "tests/run/running.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace capo::gpu {
namespace {

using soft_cuda::Fault;

constexpr const char* kStep =
    "capo 1\nmicrobatches 1\nplacement chain\nrank 0: F1.0 B1.0 W1.0\nrank 1: F1.0 B1.0 W1.0\n";

const VerifiedPlan& plan() {
  static const VerifiedPlan plan =
      run::verified(run::typed(kStep), run::every_layer(run::small(ModuleKind::Linear)));
  return plan;
}

// What came of a step on an engine of its own.
struct Ending {
  std::optional<Error> error;  ///< of making the engine, or of the run
  bool engine_made = false;
  std::string failed_before_end;  ///< the function, if one had failed when the run ended
  std::size_t captures = 0;       ///< open at that time
};

Ending run_step(Granularity graphs) {
  Ending ending;
  auto engine = CudaEngine::make();
  ending.engine_made = engine.has_value();
  if (!engine) {
    ending.error = engine.error();
  } else {
    const auto report = run::run(**engine, plan(), {.graphs = graphs, .replays = 1});
    if (!report) {
      EXPECT_EQ(report.error().kind, run::RunFailure::Kind::Broken);
      EXPECT_TRUE((*engine)->error());
      ending.error = (*engine)->error();
      if (ending.error) {
        EXPECT_EQ(report.error().message, ending.error->message);
      }
    } else {
      EXPECT_TRUE(report->bit_equal);
      EXPECT_TRUE(report->within_bounds);
    }
  }
  ending.failed_before_end = soft_cuda::first_failed();
  ending.captures = soft_cuda::live().captures;
  return ending;
}

// A task, a graph of it, or the phase.
bool names_a_place(std::string_view message) {
  constexpr std::array<std::string_view, 13> kPlaces{"(setting up)",
                                                     "(inputs of the capture)",
                                                     "(inputs of replay 1)",
                                                     "(eager execution)",
                                                     "(some task of eager execution)",
                                                     "(some task of a replay)",
                                                     "(times of a replay)",
                                                     "(replay 1)",
                                                     "(the whole step",
                                                     "(comparison of ",
                                                     " of chunk 1, microbatch 0 of rank ",
                                                     "(an input's gradient of rank 0",
                                                     "transfer"};
  return std::any_of(kPlaces.begin(), kPlaces.end(),
                     [&](std::string_view place) { return message.find(place) != message.npos; });
}

void expect_words(const Ending& ending, std::string_view error_name) {
  ASSERT_TRUE(ending.error) << ending.failed_before_end << " failed and nobody heard of it";
  const std::string& message = ending.error->message;
  EXPECT_EQ(ending.error->kind, ErrorKind::Environment);
  EXPECT_TRUE(message.starts_with("cannot ")) << message;
  EXPECT_NE(message.find(": " + ending.failed_before_end + "("), message.npos) << message;
  EXPECT_NE(message.find(") gave " + std::string(error_name) + " ("), message.npos) << message;
  EXPECT_NE(message.find(" at gpu/"), message.npos) << message;
  EXPECT_TRUE(!ending.engine_made || names_a_place(message)) << message;
}

std::size_t handles(const soft_cuda::Live& live) {
  return live.memory + live.streams + live.events + live.graphs + live.execs;
}

std::map<std::string, std::uint64_t> calls_of_a_run(Granularity graphs) {
  soft_cuda::begin();
  const Ending ending = run_step(graphs);
  EXPECT_FALSE(ending.error) << ending.error->message;
  EXPECT_EQ(soft_cuda::live(), soft_cuda::Live{});
  return soft_cuda::calls();
}

class Failures : public ::testing::TestWithParam<Granularity> {
 protected:
  ~Failures() override { soft_cuda::begin(); }
};

TEST_P(Failures, OfEveryCallAreErrorsThatSayWhere) {
  std::uint64_t failures = 0;
  std::uint64_t silent = 0;
  const auto all = calls_of_a_run(GetParam());
  for (const auto& [function, calls] : all) {
    for (std::uint64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(function + ", call " + std::to_string(call));
      soft_cuda::begin({{.function = function, .call = call, .error = cudaErrorUnknown}});
      const Ending ending = run_step(GetParam());
      EXPECT_EQ(ending.captures, 0u);
      ASSERT_EQ(soft_cuda::first_failed(), function);
      const bool in_destructor = ending.failed_before_end.empty();
      in_destructor ? ++silent : ++failures;
      if (in_destructor) {
        EXPECT_FALSE(ending.error);
        EXPECT_LE(handles(soft_cuda::live()), 1u);
      } else {
        expect_words(ending, "cudaErrorUnknown");
        EXPECT_EQ(soft_cuda::live(), soft_cuda::Live{});
      }
      if (call == 1) {
        EXPECT_FALSE(run_step(GetParam()).error);
      }
      if (HasFailure()) return;
    }
  }
  std::printf("%zu functions, %llu failures told, %llu in destructors\n", all.size(),
              static_cast<unsigned long long>(failures), static_cast<unsigned long long>(silent));
  EXPECT_GE(all.size(), 20u);
  EXPECT_GT(failures, 300u);
}

TEST_P(Failures, ThatBreakTheContextKeepTheFirstError) {
  std::uint64_t all = 0;
  for (const auto& [function, calls] : calls_of_a_run(GetParam())) all += calls;
  for (std::uint64_t call = 1; call <= all; ++call) {
    SCOPED_TRACE("call " + std::to_string(call));
    soft_cuda::begin({{.function = "any", .call = call, .error = cudaErrorAssert}});
    const Ending ending = run_step(GetParam());
    if (ending.failed_before_end.empty()) continue;  // in a destructor
    expect_words(ending, "cudaErrorAssert");
    if (HasFailure()) return;
  }
}

TEST_P(Failures, OfKernelsAreToldWhereTheDeviceIsWaitedFor) {
  std::uint64_t told = 0;
  for (std::uint64_t kernel = 1;; ++kernel) {
    SCOPED_TRACE("kernel " + std::to_string(kernel));
    soft_cuda::begin({{.function = "kernel", .call = kernel, .error = cudaErrorAssert}});
    const Ending ending = run_step(GetParam());
    if (ending.failed_before_end.empty()) break;
    ++told;
    EXPECT_EQ(ending.captures, 0u);
    expect_words(ending, "cudaErrorAssert");
    EXPECT_NE(ending.error->help.find("a kernel failed on the device"), std::string::npos);
    if (HasFailure()) return;
  }
  EXPECT_GT(told, 50u);
}

INSTANTIATE_TEST_SUITE_P(, Failures,
                         ::testing::Values(Granularity::PerAction, Granularity::PerStep),
                         [](const auto& param) {
                           return param.param == Granularity::PerAction ? "PerAction" : "PerStep";
                         });

}  // namespace
}  // namespace capo::gpu
