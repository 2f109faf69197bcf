// Certificates as a program reads them: which buffers take memory over from which, and paths that
// lead along edges from the one to the other. tests/schema/certificate_test.py holds many of them
// against tools/check_certificate.py and the schema.

#include "core/rules/certificate.h"

#include "core/rules/context.h"
#include "core/rules/plan_view.h"
#include "tests/support/check_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

json certificate_of_text(const std::string& text, CheckOptions options,
                         PlanKind kind = PlanKind::Safe) {
  const Input input = testing_support::check_text(text).input;
  options.plan.kind = kind;
  const Context context(input, options);
  EXPECT_EQ(check(context).verdict, Verdict::Accepted);
  return json::parse(certificate_of(context.plan_view()));
}

Module linear(std::int64_t hidden) {
  return {.kind = ModuleKind::Linear,
          .dtype = DataType::Bf16,
          .shape = {.tokens = 64, .hidden = hidden, .ffn = 64}};
}

// Who takes a byte over from whom, if each buffer in turn is written over its whole range.
Pairs taken_over_byte_by_byte(const json& buffers) {
  std::map<std::size_t, std::size_t> owner;  // by byte
  Pairs pairs;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    const std::size_t begin = buffers[k].at("offset");
    const std::size_t end = begin + buffers[k].at("bytes").get<std::size_t>();
    for (std::size_t byte = begin; byte < end; ++byte) {
      const auto [held, free] = owner.try_emplace(byte, k);
      if (!free) pairs.emplace(held->second, k);
      held->second = k;
    }
  }
  return pairs;
}

Pairs shared_in(const json& certificate) {
  Pairs pairs;
  for (const json& pair : certificate.at("shared"))
    pairs.emplace(pair.at("before"), pair.at("after"));
  EXPECT_EQ(pairs.size(), certificate.at("shared").size()) << "each pair stands once";
  return pairs;
}

// Buffers of two sizes lie across each other, so that one of them is taken over in parts.
TEST(Certificate, HasEachPairOfWhichOneTakesMemoryOverFromTheOther) {
  const json certificate =
      certificate_of_text("[1, 2, 1, 2, -2, -1, 1, 2, -2, -1, -2, -1]",
                          {.modules = {.list = {linear(64), linear(96)}, .layers = {{{0}, {1}}}}});
  const json& buffers = certificate.at("buffers");
  const Pairs shared = shared_in(certificate);
  EXPECT_EQ(shared, taken_over_byte_by_byte(buffers));
  EXPECT_TRUE(std::any_of(shared.begin(), shared.end(), [&](const auto& pair) {
    return buffers[pair.first].at("offset") < buffers[pair.second].at("offset");
  })) << "a taker begins within the one that loses memory";
}

// Slots of TransformerEngine's lie in regions of their own.
TEST(Certificate, OfTransformerEnginesPlanNamesItsRegions) {
  const json certificate =
      certificate_of_text("[1, 1, -1, -1, 1, -1]",
                          {.modules = {.list = {linear(64)}, .layers = {{{0}}}}}, PlanKind::Te);
  EXPECT_EQ(certificate.at("plan"), "te");
  EXPECT_TRUE(certificate.at("bytes").contains("0 inputs"));
  EXPECT_TRUE(certificate.at("bytes").contains("0 gradients"));
  EXPECT_EQ(shared_in(certificate).empty(), false);
}

// Under Megatron's local graphs a layer reads what the one before made, and what leaves a chunk is
// made in the pool and copied out.
TEST(Certificate, OfLocalGraphsNamesWhoseTensorsAreOneAndWhatIsCopied) {
  const json certificate = certificate_of_text(
      "capo 1\nlayers 2\nrank 0: F1.0 B1.0 F1.1 B1.1\n",
      {.modules = {.list = {linear(64)}, .layers = {{{0}}}}}, PlanKind::McoreLocal);
  std::size_t also = 0;
  std::size_t made = 0;
  for (const json& buffer : certificate.at("buffers")) {
    also += buffer.contains("also") ? 1 : 0;
    made += buffer.contains("made") ? 1 : 0;
    if (buffer.contains("also")) {
      const std::string kind = buffer.at("also")[0].at("kind");
      EXPECT_EQ(kind, buffer.at("kind") == "output" ? "static input" : "grad output");
    }
    if (buffer.contains("made")) {
      EXPECT_EQ(buffer.at("region"), "pool");
      EXPECT_EQ(buffer.at("uses").size(), 1U);
    }
  }
  EXPECT_EQ(also, 4U) << "an output and a grad input of each microbatch";
  EXPECT_EQ(made, 4U);
  EXPECT_FALSE(shared_in(certificate).empty());
}

using Vertices = std::vector<std::size_t>;

// The steps that a certificate allows: along an edge, or on along a stream.
struct Ways {
  explicit Ways(const json& certificate) {
    for (const json& stream : certificate.at("streams")) {
      for (std::size_t k = 0; k < stream.size(); ++k)
        at[stream[k]] = {&stream - &certificate.at("streams")[0], k};
    }
    for (const json& edge : certificate.at("edges")) edges.emplace(edge[0], edge[1]);
  }

  [[nodiscard]] bool hops(std::size_t from, std::size_t to) const {
    return on_a_stream(from) && on_a_stream(to) && at.at(from).first == at.at(to).first &&
           at.at(from).second < at.at(to).second;
  }
  [[nodiscard]] bool on_a_stream(std::size_t vertex) const { return at.contains(vertex); }
  [[nodiscard]] bool is_way(const Vertices& path) const {
    for (std::size_t k = 1; k < path.size(); ++k) {
      if (!hops(path[k - 1], path[k]) && !edges.contains({path[k - 1], path[k]})) return false;
    }
    return true;
  }

  std::map<std::size_t, std::pair<std::ptrdiff_t, std::size_t>> at;  // stream and position
  Pairs edges;
};

// Ranks that gather parameters before each backward: what one of them has received the other knows
// by that alone.
TEST(Certificate, HasPathsThroughTheVerticesOfCollectives) {
  const std::string order =
      "unshard1 F1.0 F1.1 F1.2 B1.0 reshard1 unshard1 B1.1 reshard1 unshard1 B1.2 reshard1\n";
  const json certificate = certificate_of_text(
      "capo 1\nplacement chain\nrank 0: " + order + "rank 1: " + order,
      {.environment = {.assume_defaults = true},
       .groups = {{.name = "fsdp", .members = {0, 1}, .actions = {Kind::Unshard}}},
       .modules = {.list = {linear(64)}, .layers = {{{0}}}}});
  const Ways ways(certificate);
  std::size_t through_collectives = 0;
  for (const json& pair : certificate.at("shared")) {
    const json& loser = certificate.at("buffers")[pair.at("before").get<std::size_t>()];
    const json& taker = certificate.at("buffers")[pair.at("after").get<std::size_t>()];
    const std::size_t end = taker.at("uses")[0][0];
    Pairs proved;  // by a path from a vertex
    for (const json& path : pair.at("paths")) {
      const auto vertices = path.get<Vertices>();
      EXPECT_TRUE(ways.is_way(vertices)) << path;
      proved.emplace(vertices.front(), vertices.back());
      through_collectives += std::any_of(vertices.begin(), vertices.end(), [&](std::size_t vertex) {
        return !ways.on_a_stream(vertex);
      });
    }
    for (const json& use : loser.at("uses")) {
      const auto over = use[3].get<Vertices>();
      EXPECT_TRUE(use[0] == end ||
                  std::any_of(over.begin(), over.end(),
                              [&](std::size_t vertex) {
                                return ways.hops(vertex, end) || proved.contains({vertex, end});
                              }))
          << use << " is over before " << end;
    }
  }
  EXPECT_GT(through_collectives, 0U);
}

}  // namespace
}  // namespace capo
