// The te profile against what TransformerEngine did: every golden order, and every row observed on
// a GPU.

#include "core/frameworks/te/predict.h"
#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/te/list_text.h"
#include "core/rules/check.h"
#include "tests/support/data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace capo::te {
namespace {

using testing_support::layers_of;
using testing_support::read_data;
using testing_support::te_list_of;

Prediction predicted(const nlohmann::json& row, const char* layers, const Options& options) {
  return predict(te_list_of(row.at("order")), layers_of(row.at(layers)),
                 row.at("need_wgrad").get<std::vector<bool>>(), options)
      .value();
}

TEST(TeProfile, AgreesWithEveryGoldenOrderInVerdictKindAndSoundness) {
  std::size_t rows = 0;
  const nlohmann::json data = read_data("te_orders.json");
  for (const auto& row : data) {
    SCOPED_TRACE(row.dump());
    const Prediction prediction = predicted(row, "num_layers_per_chunk", {});
    EXPECT_EQ(prediction.accepts(), row.at("te_accepts").get<bool>());
    EXPECT_EQ(std::string(name_of(prediction.kind)),
              row.at("te_error_kind").is_null() ? "" : row.at("te_error_kind").get<std::string>());

    Input input;
    input.te_list = te_list_of(row.at("order"));
    TeReading reading =
        from_te_list(input.te_list, {.layers = layers_of(row.at("num_layers_per_chunk")),
                                     .need_wgrad = row.at("need_wgrad").get<std::vector<bool>>()});
    input.schedule = std::move(reading.schedule);
    input.odd_entries = std::move(reading.odd_entries);
    EXPECT_EQ(check(input).verdict == Verdict::Accepted, row.at("truly_sound").get<bool>());
    ++rows;
  }
  std::printf("%zu of 96 golden orders agree\n", rows);
  EXPECT_EQ(rows, 96U);
}

// A part of a file of rows that a release of TransformerEngine made on a GPU.
struct Observed {
  const char* file;
  const char* part;
  const Version* version;
  std::size_t rows;
};

class TeObserved : public ::testing::TestWithParam<Observed> {};

TEST_P(TeObserved, EveryRowIsPredicted) {
  const Observed& of = GetParam();
  std::size_t rows = 0;
  const nlohmann::json data = read_data(of.file);
  for (const auto& row : data.at(of.part)) {
    SCOPED_TRACE(row.dump());
    const bool silent = row.at("module") == "grouped_linear";
    const Prediction prediction =
        predicted(row, "layers",
                  {.reuse = row.at("reuse").get<bool>(),
                   .empty_store = silent ? EmptyStore::Silent : EmptyStore::Raises,
                   .version = of.version});
    EXPECT_EQ(prediction.accepts(), row.at("accepted").get<bool>());
    EXPECT_EQ(std::string(name_of(prediction.kind)),
              row.at("kind").is_null() ? "" : row.at("kind").get<std::string>());
    ++rows;
  }
  std::printf("%zu of %zu rows observed on a GPU agree\n", rows, of.rows);
  EXPECT_EQ(rows, of.rows);
}

INSTANTIATE_TEST_SUITE_P(
    Releases, TeObserved,
    ::testing::Values(Observed{"te_gpu_truth.json", "rows", &kVersions.front(), 1374},
                      Observed{"te_gpu_2.19.json", "drawn", &kVersions.front(), 600},
                      Observed{"te_gpu_2.20.json", "rows", &kVersions.back(), 1374},
                      Observed{"te_gpu_2.20.json", "drawn", &kVersions.back(), 600}));

// te-semantics 1.3, row by row: an order that reaches the check, and one where an earlier check
// wins.
struct Row {
  const char* name;
  const char* order;
  const char* kind;
  Step step;
  int entry;  // -1: none
  Layers layers = {};
  std::vector<bool> need_wgrad = {};
  bool reuse = false;
};

class TeChecks : public ::testing::TestWithParam<Row> {};

TEST_P(TeChecks, RaiseWhatTransformerEngineRaises) {
  const Row& row = GetParam();
  const auto list = read_te_list(row.order, {});
  ASSERT_TRUE(list);
  const auto prediction = predict(*list, row.layers, row.need_wgrad, {.reuse = row.reuse});
  ASSERT_TRUE(prediction);
  EXPECT_EQ(name_of(prediction->kind), row.kind) << prediction->reason;
  EXPECT_EQ(prediction->step, row.step) << prediction->reason;
  EXPECT_EQ(prediction->entry ? static_cast<int>(*prediction->entry) : -1, row.entry);
  EXPECT_EQ(prediction->reason.empty(), std::string_view(row.kind).empty());
}

const Layers kNone{.form = Layers::Form::Null};
Layers count(std::int64_t n) {
  return {.form = Layers::Form::Count, .values = {n}};
}
Layers list(std::vector<std::int64_t> n) {
  return {.form = Layers::Form::List, .values = std::move(n)};
}
const std::vector<bool> kOne{true};
const std::vector<bool> kBoth{true, true};

INSTANTIATE_TEST_SUITE_P(
    ParseAndDimensions, TeChecks,
    ::testing::Values(
        Row{"226 NaN", "[1, nan, -1]", "py.ValueError", Step::Parse, 1},
        Row{"226 infinity", "[1, -inf, -1]", "py.OverflowError", Step::Parse, 1},
        Row{"226 NaN before infinity", "[nan, inf]", "py.ValueError", Step::Parse, 0},
        Row{"231 empty", "[]", "py.ValueError", Step::Parse, -1},
        Row{"231 only fractions, 226 wins", "[-1.5, nan]", "py.ValueError", Step::Parse, 1},
        Row{"231 only fractions", "[-1.5]", "py.ValueError", Step::Parse, -1},
        Row{"233 division by a largest entry of 0", "[0, -1]", "py.ZeroDivisionError",
            Step::Dimensions, -1},
        Row{"234 odd total", "[1, 1, -1]", "TE.ValueError", Step::Dimensions, -1},
        Row{"234 before 245", "[1, 1, -1, -1.5]", "TE.ValueError", Step::Dimensions, -1, kNone,
            kOne},
        Row{"234 negative chunks fit, 272 raises", "[-1, -1]", "TE.ValueError", Step::Dimensions,
            -1, list({1})},
        Row{"245 no layers", "[1, -1, -1.5]", "TE.ValueError", Step::Dimensions, -1, kNone, kOne},
        Row{"248 int layers", "[1, -1, -1.5]", "py.TypeError", Step::Dimensions, -1, count(1),
            kOne},
        Row{"248 needs a fraction", "[1, -1]", "", Step::Capture, -1, count(1)},
        Row{"250 two layers", "[1, -1, -1.5]", "TE.ValueError", Step::Dimensions, -1, list({2}),
            kOne},
        Row{"272 too many layers", "[1, -1]", "TE.ValueError", Step::Dimensions, -1, list({1, 1})},
        Row{"272 too few layers", "[1, 2, -2, -1]", "TE.ValueError", Step::Dimensions, -1,
            list({2})},
        Row{"290 float-typed largest", "[1.0, -1]", "py.TypeError", Step::Dimensions, -1,
            list({1})},
        Row{"234 before 290", "[1.0, 1, -1]", "TE.ValueError", Step::Dimensions, -1, list({1})}));

INSTANTIATE_TEST_SUITE_P(
    ListAndWarmUp, TeChecks,
    ::testing::Values(
        Row{"503 half forward", "[1, 1.5, -1, -1.5]", "py.TypeError", Step::List, 1, list({1}),
            kOne},
        Row{"503 float forward after an int of the same size", "[1, 1.0, -1, -1]", "py.TypeError",
            Step::List, 1, list({1})},
        Row{"513 too few forward layers", "[2, 1, -2, -1, 2, -2, -1, -1]", "TE.ValueError",
            Step::List, -1, list({1, 2})},
        Row{"515 two forwards in one graph", "[1, 1, 1, -1, -1, -1, 2, -2]", "TE.RuntimeError",
            Step::List, -1, list({1, 1})},
        Row{"503 before 515", "[1, 1, 1.5, 1, -1, -1, -1, 2, -2]", "py.TypeError", Step::List, 2,
            list({1, 1})},
        Row{"525 forward beyond the last graph", "[2, 2, -2, -2]", "py.IndexError", Step::WarmUp, 1,
            list({1, 1})},
        Row{"663 unknown chunk", "[1, -2]", "py.IndexError", Step::WarmUp, 1, list({1})},
        Row{"663 zero", "[1, 0]", "py.IndexError", Step::WarmUp, 1, list({1})},
        Row{"663 float backward", "[1, -1.0]", "py.TypeError", Step::WarmUp, 1, list({1})},
        Row{"668 backward first", "[-1, 1]", "py.KeyError", Step::WarmUp, 0, list({1})},
        Row{"525 before 668", "[2, 2, -1, -2]", "py.IndexError", Step::WarmUp, 1, list({1, 1})},
        Row{"668 before 525", "[2, -1, 2, -2]", "py.KeyError", Step::WarmUp, 1, list({1, 1})},
        Row{"second backward of a graph", "[1, 1, 2, 2, -1, -1, -1, -2]", "py.KeyError",
            Step::WarmUp, 7, list({1, 1})}));

INSTANTIATE_TEST_SUITE_P(
    Capture, TeChecks,
    ::testing::Values(
        Row{"769 weight gradient missing", "[1, 1, -1, -1.5, -1]", "TE.RuntimeError", Step::Capture,
            4, list({1}), kOne},
        Row{"769 none at all", "[1, -1]", "TE.RuntimeError", Step::Capture, 1, list({1}), kOne},
        Row{"668 before 769", "[-1, 1]", "py.KeyError", Step::WarmUp, 0, list({1}), kOne},
        Row{"769 counts, it does not bind", "[1, 1, -1, -1, -1.5, -1.5]", "torch.RuntimeError",
            Step::Capture, 5, list({1}), kOne},
        Row{"781 quarter", "[1, -1, -1.25]", "TE.ValueError", Step::Capture, 2, list({1}), {false}},
        Row{"769 before 781", "[1, -1, -1.25]", "TE.RuntimeError", Step::Capture, 1, list({1}),
            kOne},
        Row{"774 unknown chunk of a weight gradient",
            "[1, -1, -2.5]",
            "py.IndexError",
            Step::Capture,
            2,
            list({1}),
            {false}},
        Row{"785 before the first backward", "[1, -1.5, -1]", "py.KeyError", Step::Capture, 1,
            list({1}), kOne},
        Row{"781 before 785", "[1, -1.25, -1]", "TE.ValueError", Step::Capture, 1, list({1}), kOne},
        Row{"786 nobody delays",
            "[1, -1, -1.5]",
            "TE.RuntimeError",
            Step::Capture,
            2,
            list({1}),
            {false}},
        Row{"785 before 786", "[1, -1.5, -1]", "py.KeyError", Step::Capture, 1, list({1}), {false}},
        Row{"790 captured twice", "[1, -1, -1.5, -1.5]", "torch.RuntimeError", Step::Capture, 3,
            list({1}), kOne},
        Row{"797 empty store", "[1, 2, -2.5, -2, -1, -1.5]", "store.RuntimeError", Step::Capture, 2,
            list({1, 1}), kBoth},
        Row{"790 before 797", "[1, -1, -1.5, -1.5]", "torch.RuntimeError", Step::Capture, 3,
            list({1}), kOne},
        Row{"-0.5 is the last chunk", "[1, -0.5, -1]", "store.RuntimeError", Step::Capture, 1,
            list({1}), kOne}));

INSTANTIATE_TEST_SUITE_P(
    Reuse, TeChecks,
    ::testing::Values(
        Row{"331 backward without a forward of its chunk",
            "[1, 1, 3, -1, -2, -3]",
            "py.KeyError",
            Step::Reuse,
            4,
            list({1, 1, 1}),
            {},
            true},
        Row{"the same without reuse is accepted", "[1, 1, 3, -1, -2, -3]", "", Step::Capture, -1,
            list({1, 1, 1})},
        Row{"reuse comes before warm-up",
            "[1, -2]",
            "py.KeyError",
            Step::Reuse,
            1,
            list({1}),
            {},
            true},
        Row{"zero is the key -1", "[1, 0]", "py.KeyError", Step::Reuse, 1, list({1}), {}, true},
        Row{"half forward beyond the samples", "[1, 1.5, -1, -1.5]", "py.IndexError", Step::Reuse,
            1, list({1}), kOne, true},
        Row{"dimensions come before reuse",
            "[1, -1, -1]",
            "TE.ValueError",
            Step::Dimensions,
            -1,
            list({1}),
            {},
            true}));

TEST(TeProfile, SaysNothingBeyondItsLimitOfGraphs) {
  const auto list = read_te_list("[1, 1, -1, -1]", {});
  const Layers layers{.form = Layers::Form::Count, .values = {8}};
  EXPECT_TRUE(predict(*list, layers, {}, {.max_graphs = 16}));
  EXPECT_FALSE(predict(*list, layers, {}, {.max_graphs = 15}));
}

}  // namespace
}  // namespace capo::te
