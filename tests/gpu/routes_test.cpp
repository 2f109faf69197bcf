// A router's choice, its sorting, the combination of experts and the gradient of the logits on the
// device, against the host's. Whole numbers have to be the host's: which groups are chosen is
// decided by stored numbers, ties included.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

using run::RouteShape;

// Fewer groups than a warp has lanes, as many, some more, and the most that are served; one choice,
// some and all; more choices than a block that sorts has threads.
const std::vector<RouteShape> kShapes{
    {.rows = 1, .groups = 1, .top_k = 1},    {.rows = 9, .groups = 3, .top_k = 3},
    {.rows = 70, .groups = 32, .top_k = 5},  {.rows = 33, .groups = 40, .top_k = 2},
    {.rows = 700, .groups = 8, .top_k = 2},  {.rows = 17, .groups = 256, .top_k = 8},
    {.rows = 5, .groups = 1024, .top_k = 9}, {.rows = 0, .groups = 4, .top_k = 2},
};
constexpr std::int64_t kColumns = 37;

// The host has made what a later call reads. Logits are multiples of a quarter, so that many tie.
struct Problem {
  Problem(DataType the_type, const RouteShape& the_shape) : type(the_type), shape(the_shape) {
    const std::int64_t count = std::max<std::int64_t>(shape.choices(), 1);
    const std::int64_t rows = std::max<std::int64_t>(shape.rows, 1);
    Tensor logit_values = at_random(type, rows * shape.groups, 1);
    for (std::int64_t i = 0; i < logit_values.count(); i += 2) {
      logit_values.set(i, std::round(logit_values.value(i) * 8) / 4);
    }
    Sizes group_values(static_cast<std::size_t>(count), -1);
    Sizes place_values = group_values;
    Sizes source_values = group_values;
    Sizes size_values(static_cast<std::size_t>(shape.groups), -1);
    Tensor shares = at_random(DataType::Fp32, count, 2);
    Tensor sorted_shares = at_random(DataType::Fp32, count, 3);
    const auto floats = [](Tensor& tensor) { return static_cast<float*>(tensor.data()); };
    run::host::execute(run::Route{.type = type,
                                  .shape = shape,
                                  .logits = logit_values.data(),
                                  .groups = group_values.data(),
                                  .probabilities = floats(shares)});
    run::host::execute(run::SortRoutes{.shape = shape,
                                       .groups = group_values.data(),
                                       .probabilities = floats(shares),
                                       .sizes = size_values.data(),
                                       .places = place_values.data(),
                                       .sources = source_values.data(),
                                       .sorted_probabilities = floats(sorted_shares)});
    logits = twins.add(logit_values);
    groups = twins.add_numbers(group_values);
    places = twins.add_numbers(place_values);
    probabilities = twins.add(shares);
    incoming = twins.add(at_random(DataType::Fp32, count, 4));
    x = twins.add(at_random(type, count * kColumns, 5));
    y = twins.add(at_random(type, rows * kColumns, 6));
    dlogits = twins.add(at_random(type, rows * shape.groups, 7));
    made = twins.add_numbers(Sizes(static_cast<std::size_t>(3 * count), -7));
    made_sizes = twins.add_numbers(Sizes(static_cast<std::size_t>(shape.groups), -7));
    made_floats = twins.add(at_random(DataType::Fp32, count, 8));
  }

  DataType type;
  RouteShape shape;
  Twins twins;
  Slot logits, groups, places, probabilities, incoming, x, y, dlogits, made, made_sizes,
      made_floats;
};

template <typename Test>
void for_each_problem(Test test) {
  for (const DataType type : kTypes) {
    for (const RouteShape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << shape.rows << " rows, " << shape.groups << " groups, "
                                      << shape.top_k << " choices");
      Problem problem(type, shape);
      test(problem);
    }
  }
}

using Routes = Kernels;

TEST_F(Routes, AChoiceIsTheHosts) {
  for_each_problem([](Problem& p) {
    p.twins.expect_same(
        [&](const Memory& m) {
          return run::Route{.type = p.type,
                            .shape = p.shape,
                            .logits = m.at(p.logits),
                            .groups = m.as<std::int64_t>(p.made),
                            .probabilities = m.as<float>(p.made_floats)};
        },
        {first_of(p.made_floats, p.shape.choices())});
  });
}

// Numbers that are moved are the host's to the bit as well.
TEST_F(Routes, ASortingIsTheHosts) {
  for_each_problem([](Problem& p) {
    p.twins.expect_same(
        [&](const Memory& m) {
          auto* to = m.as<std::int64_t>(p.made);
          return run::SortRoutes{.shape = p.shape,
                                 .groups = m.as<std::int64_t>(p.groups),
                                 .probabilities = m.as<float>(p.probabilities),
                                 .sizes = m.as<std::int64_t>(p.made_sizes),
                                 .places = to,
                                 .sources = to + p.shape.choices(),
                                 .sorted_probabilities = m.as<float>(p.made_floats)};
        },
        {});
  });
}

TEST_F(Routes, CombineOverwritesOrAdds) {
  for (const Write write : {Write::Overwrite, Write::Add}) {
    for_each_problem([write](Problem& p) {
      p.twins.expect_same(
          [&](const Memory& m) {
            return run::Combine{.type = p.type,
                                .write = write,
                                .shape = p.shape,
                                .columns = kColumns,
                                .places = m.as<std::int64_t>(p.places),
                                .x = m.at(p.x),
                                .y = m.at(p.y)};
          },
          {first_of(p.y, p.shape.rows * kColumns)});
    });
  }
}

TEST_F(Routes, GradientAlsoInPlace) {
  for_each_problem([](Problem& p) {
    for (const Slot& to : {p.dlogits, p.logits}) {
      p.twins.expect_same(
          [&](const Memory& m) {
            return run::RouteGradient{.type = p.type,
                                      .shape = p.shape,
                                      .logits = m.at(p.logits),
                                      .groups = m.as<std::int64_t>(p.groups),
                                      .places = m.as<std::int64_t>(p.places),
                                      .dprobabilities = m.as<float>(p.incoming),
                                      .dlogits = m.at(to)};
          },
          {first_of(to, p.shape.rows * p.shape.groups)});
    }
  });
}

TEST_F(Routes, MoreGroupsThanAreServedOrFewerThanChoicesAreRefused) {
  const auto status_of = [](const RouteShape& shape) {
    return launch(run::Route{.type = DataType::Fp32, .shape = shape}, nullptr);
  };
  EXPECT_TRUE(status_of({.rows = 0, .groups = 1024, .top_k = 1024}).ok());
  EXPECT_FALSE(status_of({.rows = 0, .groups = 1025, .top_k = 1}).ok());
  EXPECT_FALSE(status_of({.rows = 0, .groups = 4, .top_k = 5}).ok());
}

}  // namespace
}  // namespace capo::gpu
