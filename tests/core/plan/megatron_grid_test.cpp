// Megatron's layer orders with delayed weight gradients, planned as TransformerEngine would: where
// all chunks of a rank have as many layers, no static input is taken before its weight gradient has
// read it; where they have not, the capture order itself does it in many configurations.
//
//   PP 2, VP 2, 4 microbatches, group 2, rank 0, layers [4, 1]: the first of them
//
// Two grids with published counts: a natural one, and one that was fitted to the counts, the
// definition being lost. Every layer reads its input itself; orders are those that capture makes.

#include "core/frameworks/megatron/orders.h"
#include "core/frameworks/te/from_te_list.h"
#include "tests/core/plan/planned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace capo {
namespace {

using testing_support::PlannedStep;
using Split = std::vector<std::int64_t>;

struct Configuration {
  std::int64_t pipeline = 1;
  std::optional<std::int64_t> virtual_stages;
  std::int64_t microbatches = 1;
  std::int64_t group = 1;
  std::int64_t rank = 0;
  Split layers;

  friend bool operator==(const Configuration&, const Configuration&) = default;

  [[nodiscard]] bool even() const { return std::set(layers.begin(), layers.end()).size() == 1; }
};

Schedule captured(const Configuration& of) {
  megatron::Request request{.rank = of.rank,
                            .layers_per_chunk = of.layers,
                            .weight_gradients = megatron::WeightGradients::Delayed};
  request.configuration = {.pipeline = of.pipeline,
                           .virtual_stages = of.virtual_stages,
                           .microbatches = of.microbatches,
                           .group_size = of.group,
                           .ep_overlap = true};
  const auto generated = megatron::orders_of(request).value();
  return from_te_list(generated.orders.front(), {}).schedule;
}

// The layer, from 1, of the weight gradient that is hurt first; nothing if none is.
std::optional<std::int32_t> first_hurt(const Configuration& of) {
  const PlannedStep step(captured(of), {}, {.aliases = Aliases{.input = true}});
  const auto hazards = step.hazards(PlanKind::Te);
  if (hazards.empty()) return std::nullopt;
  EXPECT_EQ(hazards.front().victim.kind, BufferKind::StaticInput);
  EXPECT_EQ(hazards.front().reader.kind, Kind::BackwardWeight);
  return hazards.front().victim.chunk;
}

struct Count {
  std::size_t even = 0;
  std::size_t even_hurt = 0;
  std::size_t uneven = 0;
  std::size_t uneven_hurt = 0;
  std::optional<Configuration> first;
  std::int32_t first_layer = 0;

  void add(const Configuration& configuration) {
    const auto hurt = first_hurt(configuration);
    ++(configuration.even() ? even : uneven);
    if (!hurt) return;
    ++(configuration.even() ? even_hurt : uneven_hurt);
    if (first) return;
    first = configuration;
    first_layer = *hurt;
  }
  void print(const char* grid) const {
    std::printf("%s: %zu of %zu uneven configurations hazardous, %zu of %zu even ones\n", grid,
                uneven_hurt, uneven, even_hurt, even);
  }
};

// Calls visit with every list of `chunks` numbers from 1 to `most`.
void for_each_split(std::size_t chunks, std::int64_t most,
                    const std::function<void(const Split&)>& visit) {
  Split split(chunks, 1);
  while (true) {
    visit(split);
    std::size_t at = chunks;
    while (at > 0 && split[at - 1] == most) split[--at] = 1;
    if (at == 0) return;
    ++split[at - 1];
  }
}

TEST(MegatronGrid, OfOneToThreeLayersAChunkIsHurtAsOftenAsPublished) {
  Count count;
  for (const std::int64_t pipeline : {2, 4}) {
    for (const std::int64_t chunks : {2, 3}) {
      for (const std::int64_t microbatches : {pipeline, 2 * pipeline}) {
        for (std::int64_t rank = 0; rank < pipeline; ++rank) {
          for_each_split(static_cast<std::size_t>(chunks), 3, [&](const Split& layers) {
            count.add({pipeline, chunks, microbatches, pipeline, rank, layers});
          });
        }
      }
    }
  }
  count.print("one to three layers a chunk");
  EXPECT_EQ(count.uneven_hurt, 92U);
  EXPECT_EQ(count.uneven, 360U);
  EXPECT_EQ(count.even_hurt, 0U);
  EXPECT_EQ(count.even, 72U);
}

// Four even ones, and three that go on in turns.
std::vector<Split> splits(std::size_t chunks) {
  std::vector<Split> all;
  for (const std::int64_t layers : {1, 2, 3, 4}) all.emplace_back(chunks, layers);
  for (const auto& [odd, even] : {std::pair{1, 2}, std::pair{4, 1}, std::pair{2, 1}}) {
    Split& split = all.emplace_back();
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      split.push_back(chunk % 2 == 0 ? odd : even);
  }
  return all;
}

TEST(MegatronGrid, OfGroupsBeyondTheirRanksIsHurtAsOftenAsPublished) {
  Count count;
  // Without a pipeline a group has no effect: those microbatches that groups of one to four make.
  for (const std::int64_t microbatches : {1, 2, 3, 4, 6, 8, 9, 12}) {
    for (const Split& layers : splits(1)) {
      count.add({1, std::nullopt, microbatches, 1, 0, layers});
    }
  }
  for (std::int64_t pipeline = 2; pipeline <= 6; ++pipeline) {
    for (const std::int64_t chunks : {2, 3, 4}) {
      for (std::int64_t group = pipeline; group < pipeline + 4; ++group) {
        for (const std::int64_t groups : {1, 2, 3}) {
          for (std::int64_t rank = 0; rank < pipeline; ++rank) {
            for (const Split& layers : splits(static_cast<std::size_t>(chunks))) {
              count.add({pipeline, chunks, groups * group, group, rank, layers});
            }
          }
        }
      }
    }
  }
  count.print("groups beyond their ranks");
  EXPECT_EQ(count.uneven_hurt, 882U);
  EXPECT_EQ(count.uneven, 2'160U);
  EXPECT_EQ(count.even_hurt, 0U);
  EXPECT_EQ(count.even, 2'936U);
  EXPECT_EQ(count.first, (Configuration{2, 2, 4, 2, 0, {4, 1}}));
  EXPECT_EQ(count.first_layer, 5);
}

}  // namespace
}  // namespace capo
