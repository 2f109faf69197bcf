// The request of `capo optimise`, and the problem that it states: the counts and the placement, the
// times, the memory, and an order to begin with. What is asked for and cannot be is refused here,
// before anything is searched.
//
// Tested by tests/cli/optimise_test.cpp.

#pragma once

#include "cli/commands/optimised.h"
#include "cli/options/command_error.h"
#include "core/base/result.h"
#include "core/text/limits.h"
#include "optimise/problem.h"
#include "optimise/search.h"
#include "sim/simulation.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace capo::cli {

enum class SearchedPlacement { Loop, V, Bidirectional, Free };

struct OptimiseRequest {
  std::int32_t ranks = 0;
  std::int32_t microbatches = 0;
  std::optional<std::int32_t> chunks;
  SearchedPlacement placement = SearchedPlacement::Loop;
  std::string model;
  std::vector<std::string> costs;
  CostPer cost_per = CostPer::Rank;
  std::string memory;
  std::string recompute;  ///< "choose": which chunks do is searched
  std::optional<double> memory_limit;
  std::int32_t fuse_w = 1;
  optimise::Objective objective = optimise::Objective::Makespan;
  Recipient recipient = Recipient::Anybody;
  std::optional<OptimiseFormat> format;
  std::string time = "10s";
  std::uint64_t moves = 100'000'000;
  std::uint64_t seed = 1;
  std::uint32_t exhaustive = 150;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::string from;
  std::string output;
  std::string bound_out;
  Limits limits;

  [[nodiscard]] bool free() const { return placement == SearchedPlacement::Free; }
  [[nodiscard]] bool chooses() const { return recompute == "choose"; }
};

void add_optimise_options(CLI::App& command, OptimiseRequest& request);

/// A start of the search, and its placement.
struct FromFile {
  optimise::Frame frame;
  optimise::Start start;
};

/// The orders that are asked for, which there are.
struct AskedOrders {
  optimise::Problem problem;  ///< of any placement or choice of chunks the one looked at first
  SimulationOptions options;  ///< that it was made of
  std::optional<FromFile> given;
};

/// Returns the exit code if it has told why there are no such orders. Throws CLI::ValidationError
/// for flags that contradict each other or a file.
[[nodiscard]] std::variant<AskedOrders, int> asked_orders(const OptimiseRequest& request);

/// How long to search, of "90", "1.5s", "2m" or "500ms". Throws CLI::ValidationError.
[[nodiscard]] double seconds_of(const std::string& time);

/// Returns the exit code.
[[nodiscard]] int no_such_order(const std::string& why);

/// The form of what is printed: whom it is for has one of its own.
[[nodiscard]] OptimiseFormat format_of(const OptimiseRequest& request);

}  // namespace capo::cli
