// Laws that hold for every order that Megatron makes, over a grid of configurations and not only
// over the rows that were recorded.

#include "core/frameworks/megatron/chunk_order.h"
#include "core/frameworks/megatron/orders.h"
#include "core/rules/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

namespace capo::megatron {
namespace {

std::string name_of(const Request& request) {
  const mcore::Configuration& c = request.configuration;
  std::string text =
      fmt::format("PP {} VP {} M {} G {}{}{}", c.pipeline, c.virtual_stages.value_or(0),
                  c.microbatches, c.group_size.value_or(0), c.ep_overlap ? " overlap" : "",
                  request.weight_gradients == WeightGradients::Delayed ? " W" : "");
  for (const std::int64_t layers : request.layers_per_chunk) text += fmt::format(" {}", layers);
  return text;
}

Request request_of(std::int64_t pp, std::int64_t vp, std::int64_t m, std::int64_t g, bool overlap) {
  Request request{
      .configuration = {.pipeline = pp, .microbatches = m, .group_size = g, .ep_overlap = overlap}};
  if (vp > 0) request.configuration.virtual_stages = vp;
  if (!overlap) return request;
  constexpr std::array<std::int64_t, 4> kUneven{2, 1, 3, 1};
  const bool even = (pp + m) % 2 == 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(std::max<std::int64_t>(vp, 1)); ++c) {
    request.layers_per_chunk.push_back(even ? 2 : kUneven.at(c));
  }
  if ((m + g) % 3 != 0) request.weight_gradients = WeightGradients::Delayed;
  return request;
}

// Every configuration of the grid: PP 1 to 6, VP none or 1 to 4, M 1 to 12, group sizes 1 to one
// beyond M, with the overlap and without; what Megatron's functions refuse is left out. Gives how
// many there were.
std::size_t for_every_request(const std::function<void(const Request&)>& look) {
  std::size_t requests = 0;
  for (std::int64_t pp = 1; pp <= 6; ++pp) {
    for (std::int64_t vp = 0; vp <= 4; ++vp) {
      for (std::int64_t m = 1; m <= 12; ++m) {
        for (std::int64_t g = 1; g <= (vp == 0 ? 1 : m + 1); ++g) {
          for (const bool overlap : {false, true}) {
            if (pp == 1 && vp > 1 && !overlap) continue;
            const Request request = request_of(pp, vp, m, g, overlap);
            SCOPED_TRACE(name_of(request));
            look(request);
            ++requests;
            if (::testing::Test::HasFailure()) return requests;
          }
        }
      }
    }
  }
  return requests;
}

bool accepted(const Request& request) {
  return !mcore::refusal(request.configuration);
}

// Without a pipeline and with virtual stages the two tables do not belong together.
bool in_order(const Request& request) {
  return request.configuration.pipeline > 1 || chunks_of(request.configuration) == 1;
}

struct Counts {
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;
  std::int64_t weights = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

// How often each chunk occurs in each kind; and whether at any point it had more backwards than
// forwards, or more weight gradients than backwards.
std::map<std::int64_t, Counts> count(const TeList& list, bool& ahead) {
  std::map<std::int64_t, Counts> counts;
  for (const TeEntry& entry : list.entries) {
    const auto chunk = static_cast<std::int64_t>(std::abs(entry.value));
    Counts& of_chunk = counts[chunk];
    ++(entry.value > 0                   ? of_chunk.forwards
       : entry.type == NumberType::Float ? of_chunk.weights
                                         : of_chunk.backwards);
    ahead |= of_chunk.backwards > of_chunk.forwards || of_chunk.weights > of_chunk.backwards;
  }
  return counts;
}

TEST(MegatronLaws, EveryChunkRunsEveryMicrobatchOnceAndNothingRunsAheadOfWhatFeedsIt) {
  std::size_t orders = 0;
  const std::size_t requests = for_every_request([&](const Request& request) {
    const Generated made = orders_of(request).value();
    const bool delayed = request.weight_gradients == WeightGradients::Delayed;
    const Counts wanted{made.microbatches, made.microbatches, delayed ? made.microbatches : 0};
    for (const TeList& list : made.orders) {
      bool ahead = false;
      for (const auto& [chunk, counts] : count(list, ahead)) EXPECT_EQ(counts, wanted) << chunk;
      EXPECT_FALSE(ahead && in_order(request));
      ++orders;
    }
    EXPECT_FALSE(nonsense_in(made) && in_order(request));
  });
  std::printf("%zu requests, %zu orders\n", requests, orders);
  EXPECT_GT(requests, 4000U);
}

// Two facts that other rules of capo stand on: no other backward between a backward and its weight
// gradient, and no more forwards in flight than the warm-up and one.
TEST(MegatronLaws, AWeightGradientIsTheNextBackwardTypeEntryAfterItsBackward) {
  std::size_t orders = 0;
  for_every_request([&](const Request& request) {
    if (!in_order(request) || request.weight_gradients == WeightGradients::InBackward) return;
    const Generated made = orders_of(request).value();
    for (const TeList& list : made.orders) {
      EXPECT_EQ(mcore::first_loose_weight(list, std::vector<bool>(16, true)), std::nullopt);
      ++orders;
    }
  });
  std::printf("%zu orders with delayed weight gradients\n", orders);
  EXPECT_GT(orders, 5000U);
}

TEST(MegatronLaws, AtMostTheWarmUpAndOneForwardWaitForTheirBackward) {
  for_every_request([&](const Request& request) {
    if (request.by_layer()) return;
    const Generated made = orders_of(request).value();
    mcore::Configuration captured = request.configuration;
    captured.microbatches = made.microbatches;
    for (std::size_t r = 0; r < made.orders.size(); ++r) {
      const ForwardCounts counts =
          forward_counts(captured, static_cast<std::int64_t>(r), OverlapFlag::Untold).value();
      std::int64_t waiting = 0;
      std::int64_t most = 0;
      for (const TeEntry& entry : made.orders[r].entries) {
        waiting += entry.value > 0 ? 1 : -1;
        most = std::max(most, waiting);
      }
      EXPECT_EQ(most, counts.all_in_warmup ? counts.total : counts.warmup + 1) << r;
      EXPECT_EQ(counts.remaining, counts.total - counts.warmup);
    }
  });
}

// The first layer that a forward runs and the first that a backward runs, as entries of the chunk.
std::vector<double> chunks_begun(const TeList& list, const std::vector<std::int64_t>& layers) {
  std::map<double, double> chunk_of;
  std::int64_t before = 0;
  for (std::size_t c = 0; c < layers.size(); ++c) {
    chunk_of[static_cast<double>(before + 1)] = static_cast<double>(c + 1);
    before += layers[c];
    chunk_of[static_cast<double>(-before)] = -static_cast<double>(c + 1);
  }
  std::vector<double> chunks;
  for (const TeEntry& entry : list.entries) {
    const auto found = chunk_of.find(entry.value);
    if (found != chunk_of.end()) chunks.push_back(found->second);
  }
  return chunks;
}

// Capture takes one forward less before the first backward and expands; the runtime takes it and
// runs chunk by chunk. Both begin every chunk in the same order.
TEST(MegatronLaws, WhatIsCapturedByLayerBeginsItsChunksAsTheRuntimeRunsThem) {
  std::size_t orders = 0;
  for_every_request([&](const Request& request) {
    if (!request.by_layer() || !accepted(request)) return;
    const Generated captured = orders_of(request).value();
    Request execution = request;
    execution.which = Which::Runtime;
    const Generated executed = orders_of(execution).value();
    ASSERT_EQ(captured.orders.size(), executed.orders.size());
    for (std::size_t r = 0; r < captured.orders.size(); ++r) {
      std::vector<double> runtime;
      for (const TeEntry& entry : executed.orders[r].entries) runtime.push_back(entry.value);
      EXPECT_EQ(chunks_begun(captured.orders[r], request.layers_per_chunk), runtime) << r;
      ++orders;
    }
  });
  std::printf("%zu orders agree\n", orders);
  EXPECT_GT(orders, 1000U);
}

TEST(MegatronLaws, OfAllRanksEachOrderIsTheOneOfThatRankAlone) {
  for_every_request([&](Request request) {
    if (request.configuration.microbatches % 4 != 0) return;
    const Generated all = orders_of(request).value();
    ASSERT_EQ(all.orders.size(), static_cast<std::size_t>(request.configuration.pipeline));
    for (std::size_t r = 0; r < all.orders.size(); ++r) {
      request.rank = static_cast<std::int64_t>(r);
      const Generated one = orders_of(request).value();
      ASSERT_EQ(one.orders.size(), 1U);
      EXPECT_TRUE(std::equal(all.orders[r].entries.begin(), all.orders[r].entries.end(),
                             one.orders[0].entries.begin(), one.orders[0].entries.end(),
                             [](const TeEntry& a, const TeEntry& b) {
                               return a.value == b.value && a.type == b.type;
                             }));
    }
  });
}

// capo's own verdict, on every configuration that Megatron's runtime runs.
TEST(MegatronLaws, CapoAcceptsTheScheduleOfEveryConfigurationThatMegatronAccepts) {
  std::size_t schedules = 0;
  for_every_request([&](const Request& request) {
    if (!accepted(request)) return;
    Input input{.form = Form::OrderFile, .schedule = schedule_of(orders_of(request).value())};
    EXPECT_EQ(check(input).verdict, Verdict::Accepted);
    ++schedules;
  });
  std::printf("%zu schedules are accepted\n", schedules);
  EXPECT_GT(schedules, 500U);
}

}  // namespace
}  // namespace capo::megatron
