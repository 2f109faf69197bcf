// The CUDA engine by itself: captures, graphs that are read back, and errors that are kept.

#include "gpu/engine/cuda_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace capo::gpu {
namespace {

class CudaEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = CudaEngine::make();
    if (!made) GTEST_SKIP() << "no CUDA device here: " << made.error().message;
    engine = *std::move(made);
    engine->have_streams(3);
    memory = engine->allocate(4, "four bytes");
    engine->launch(0, fill(0));
  }
  [[nodiscard]] run::Fill fill(std::uint8_t value) const {
    return {.bytes = 4, .value = value, .to = memory};
  }
  [[nodiscard]] int value() const {
    std::uint8_t byte = 0;
    engine->read(&byte, memory, 1);
    return byte;
  }
  [[nodiscard]] std::string error() const {
    return engine->error() ? engine->error()->message : "none";
  }

  std::unique_ptr<CudaEngine> engine;
  std::byte* memory = nullptr;
};

TEST_F(CudaEngineTest, ALaunchRunsAndACaptureRecords) {
  engine->launch(0, fill(1));
  EXPECT_EQ(value(), 1);
  engine->begin_capture(0);
  engine->launch(0, fill(2));
  const run::GraphId graph = engine->end_capture();
  EXPECT_EQ(value(), 1);
  engine->replay(graph, 0);
  EXPECT_EQ(value(), 2);
  EXPECT_EQ(error(), "none");
}

TEST_F(CudaEngineTest, GraphsAreReadBackWithTheirEdges) {
  engine->begin_capture(0);
  engine->launch(0, fill(1));
  const run::EventId fork = engine->record(0);
  engine->wait(1, fork);
  engine->launch(1, fill(2));
  engine->launch(0, fill(3));
  engine->wait(0, engine->record(1));
  engine->launch(0, fill(4));
  const std::vector<run::GraphNode> nodes = engine->inspect(engine->end_capture());
  ASSERT_EQ(error(), "none");
  ASSERT_EQ(nodes.size(), 4u);
  std::vector<std::size_t> edges;
  for (const run::GraphNode& node : nodes) {
    const auto* call = std::get_if<run::Fill>(&node.call);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->to, memory);
    EXPECT_EQ(call->bytes, 4);
    edges.push_back(node.after.size());
  }
  std::sort(edges.begin(), edges.end());
  EXPECT_EQ(edges, (std::vector<std::size_t>{0, 1, 1, 2}));
}

TEST_F(CudaEngineTest, TooMuchMemoryIsAnErrorThatNamesWhatItWasFor) {
  engine->label("B of chunk 1, microbatch 0");
  EXPECT_EQ(engine->allocate(std::int64_t{1} << 46, "planned buffers"), nullptr);
  EXPECT_NE(error().find("allocate 70368744177664 bytes of planned buffers (B of chunk 1, "
                         "microbatch 0)"),
            std::string::npos)
      << error();
  EXPECT_NE(error().find("cudaErrorMemoryAllocation"), std::string::npos) << error();
  engine->launch(0, fill(9));
  EXPECT_NE(error().find("cudaErrorMemoryAllocation"), std::string::npos) << "the first is kept";
}

TEST_F(CudaEngineTest, AnUnjoinedCaptureIsAnErrorAndLeavesNoStreamInIt) {
  engine->begin_capture(0);
  engine->launch(0, fill(1));
  engine->wait(1, engine->record(0));
  engine->launch(1, fill(2));
  static_cast<void>(engine->end_capture());
  EXPECT_NE(error().find("cudaErrorStreamCaptureUnjoined"), std::string::npos) << error();
  auto again = CudaEngine::make();
  ASSERT_TRUE(again) << "a new engine works in the same process";
}

TEST_F(CudaEngineTest, AReadDuringACaptureInvalidatesItAndEndsIt) {
  engine->label("W of chunk 2, microbatch 1");
  engine->begin_capture(0);
  engine->launch(0, fill(1));
  std::uint8_t byte = 0;
  engine->read(&byte, memory, 1);
  EXPECT_NE(error(), "none");
  EXPECT_NE(error().find("W of chunk 2, microbatch 1"), std::string::npos) << error();
  EXPECT_EQ(engine->end_capture(), 0u);
}

TEST_F(CudaEngineTest, AfterAnErrorNoGraphIsReadBack) {
  engine->begin_capture(0);
  engine->launch(0, fill(1));
  const run::GraphId graph = engine->end_capture();
  EXPECT_EQ(engine->inspect(graph).size(), 1u);
  EXPECT_TRUE(engine->inspect(graph + 1).empty());
  EXPECT_EQ(error(), "none");
  EXPECT_EQ(engine->allocate(std::int64_t{1} << 46, "inputs"), nullptr);
  EXPECT_TRUE(engine->inspect(graph).empty());
}

// On a machine with devices and on one without.
TEST(CudaEngine, OfADeviceThatIsNotThereSaysWhatIsMissing) {
  const auto made = CudaEngine::make(1000);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Environment);
  EXPECT_FALSE(made.error().message.empty());
  EXPECT_FALSE(made.error().help.empty());
}

}  // namespace
}  // namespace capo::gpu
