// How much memory runs take on every published schedule: what is allocated is what was planned, and
// capo's own plan takes little more than eager execution does at its peak.
//
// Eager execution frees everything at its last reader, and what is sent once the send is known to
// be over: a plan that has to hold in every order in which streams may run needs hardly more.

#include "tests/run/labelled_engine.h"
#include "tests/run/published.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::run {
namespace {

constexpr std::array kKinds{ModuleKind::Linear, ModuleKind::LayerNormMlp, ModuleKind::GroupedMlp,
                            ModuleKind::Attention, ModuleKind::TransformerLayer};

struct Named {
  std::string words;
  std::string name;
  Schedule schedule;
};

// Every name there is, small, as far as there is such a schedule and the engine's sample takes it.
std::vector<Named> published_schedules() {
  std::vector<Named> all;
  for (const std::string& name : published_names()) {
    Sample sample;  // of each name at least one
    for (const std::int32_t ranks : {1, 2, 4}) {
      for (const std::int32_t microbatches : {2, 4, 6}) {
        for (const std::optional<std::int32_t> chunks :
             {std::optional<std::int32_t>{}, std::optional<std::int32_t>{2}}) {
          auto schedule = published(
              {.name = name, .ranks = ranks, .microbatches = microbatches, .chunks = chunks});
          if (!schedule || !sample.takes_next()) continue;
          std::string words = fmt::format("{} p={} m={}", name, ranks, microbatches);
          if (chunks) words += fmt::format(" v={}", *chunks);
          all.push_back({std::move(words), name, *std::move(schedule)});
        }
      }
    }
  }
  return all;
}

Input input_of(const Schedule& schedule) {
  return {.form = Form::OrderFile, .schedule = schedule};
}

void expect_right(const RunReport& report) {
  EXPECT_TRUE(report.bit_equal);
  EXPECT_TRUE(report.within_bounds);
  EXPECT_EQ(report.bytes.allocated, report.bytes.planned);
  EXPECT_GT(report.bytes.planned, 0);
}

// The counts of one kind of module over all schedules.
struct Tally {
  double worst = 0;
  std::string where;
  std::set<std::string> names;

  void take(const Named& each, const RunBytes& bytes) {
    names.insert(each.name);
    const double ratio = static_cast<double>(bytes.planned) / static_cast<double>(bytes.eager_peak);
    EXPECT_LE(ratio, 1.05) << bytes.planned << " of " << bytes.eager_peak;
    if (ratio <= worst) return;
    worst = ratio;
    where = each.words;
  }
};

TEST(Bytes, OfCaposPlanAreAllocatedAsPlannedAndCloseToEagerExecution) {
  const std::vector<Named> all = published_schedules();
  for (const ModuleKind kind : kKinds) {
    Tally tally;
    for (const Named& each : all) {
      SCOPED_TRACE(fmt::format("{} {}", each.words, capo::name_of(kind)));
      const VerifiedPlan plan = verified(input_of(each.schedule), every_layer(small(kind)));
      for (const Granularity graphs : kGranularities) {
        const RunReport report = report_of(plan, {.graphs = graphs, .replays = 1});
        expect_right(report);
        tally.take(each, report.bytes);
      }
    }
    std::printf("%s: %zu schedules of %zu names, at most %.3f times eager execution's peak (%s)\n",
                std::string(capo::name_of(kind)).c_str(), all.size(), tally.names.size(),
                tally.worst, tally.where.c_str());
    EXPECT_EQ(tally.names.size(), published_names().size());
  }
}

// TransformerEngine's plan may have victims: they are run all the same, and take what was planned.
TEST(Bytes, OfTransformerEnginesPlanAreAllocatedAsPlanned) {
  for (const ModuleKind kind : kKinds) {
    for (const Named& each : published_schedules()) {
      SCOPED_TRACE(fmt::format("{} {}", each.words, capo::name_of(kind)));
      const RunReport report = run_admitted(input_of(each.schedule),
                                            every_layer(small(kind), PlanKind::Te), {.replays = 1});
      EXPECT_EQ(report.bytes.allocated, report.bytes.planned);
      EXPECT_GT(report.bytes.planned, 0);
    }
  }
}

// A weight gradient also needs the bytes that it takes while it runs beside others.
TEST(Bytes, OfModulesThatCopyAreAllocatedAsPlanned) {
  Module copying = small(ModuleKind::Linear);
  copying.flags.gathered_input = true;
  copying.flags.gathered_grad_output = true;
  for (const char* order :
       {"[1, -1, -1.5]", "[1, 1, -1, -1.5, -1, -1.5]", "[1, 2, -2, -2.5, -1, -1.5]",
        "capo 1\nmicrobatches 2\nplacement chain\nrank 0: F1.0 F1.1 B1.0 W1.0 B1.1 W1.1\n"
        "rank 1: F1.0 B1.0 F1.1 B1.1 W1.0 W1.1\n"}) {
    SCOPED_TRACE(order);
    for (const Granularity graphs : kGranularities) {
      expect_right(run_verified(typed(order), every_layer(copying), {.graphs = graphs}));
    }
    const RunReport te = run_admitted(typed(order), every_layer(copying, PlanKind::Te), {});
    EXPECT_EQ(te.bytes.allocated, te.bytes.planned);
  }
}

// Counts the bytes that are allocated for something.
class Counting final : public LabelledEngine {
 public:
  using LabelledEngine::LabelledEngine;
  [[nodiscard]] std::byte* allocate(std::int64_t bytes, std::string_view what) override {
    bytes_[std::string(what)] += bytes;
    return LabelledEngine::allocate(bytes, what);
  }
  [[nodiscard]] std::int64_t of(const std::string& what) const {
    const auto found = bytes_.find(what);
    return found == bytes_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, std::int64_t> bytes_;
};

// A run keeps what layers read for somebody who compares with it, which takes as much as two
// buffers of each layer and microbatch.
TEST(Bytes, OfWhatLayersReadAreTakenIfSomebodyCompares) {
  constexpr const char* kOrder = "capo 1\nmicrobatches 2\nrank 0: F1.0 F1.1 B1.0 B1.1\n";
  constexpr std::int64_t kBytes = std::int64_t{2} * 8 * 16 * 2;
  const CheckOptions options = completed(typed(kOrder), every_layer(small(ModuleKind::Linear)));
  const auto kept = [&](bool unchecked, Float64 float64) {
    Counting engine(test_engine());
    const RunOptions how{.replays = 1, .float64 = float64};
    const auto report = unchecked ? run_unchecked(engine, admitted(typed(kOrder), options), how)
                                  : run(engine, verified(typed(kOrder), options), how);
    EXPECT_TRUE(report && report->bit_equal);
    EXPECT_EQ(engine.of("expected inputs"), engine.of("expected gradients"));
    return engine.of("expected inputs");
  };
  EXPECT_EQ(kept(false, Float64::LeftOut), 0);
  EXPECT_EQ(kept(false, Float64::FirstReplay), kBytes);
  EXPECT_EQ(kept(true, Float64::LeftOut), kBytes);
}

}  // namespace
}  // namespace capo::run
