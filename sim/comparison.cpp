#include "core/base/plural.h"
#include "core/timeline/table.h"
#include "sim/report.h"
#include "sim/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace capo {

namespace {

/// A figure of a comparison.
struct Figure {
  const char* name;
  const char* short_name;  ///< where an order is a line
  double (*value)(const Simulation&);
  std::string (*print)(const Simulation&, double);
  bool relative = true;  ///< it is told how far a figure is from the first order's
};

std::string number(const Simulation& /*of*/, double value) {
  return figure(value);
}

std::string share(const Simulation& /*of*/, double value) {
  return percent(value);
}

constexpr Figure kFigures[] = {
    {"makespan", "makespan", [](const Simulation& s) { return s.makespan(); }, time_in_words},
    {"span", "span", [](const Simulation& s) { return s.span(); }, time_in_words},
    {"bubble of makespan", "bubble",
     [](const Simulation& s) { return s.bubble_rate_of_makespan(); }, share, false},
    {"bubble of span", "of span", [](const Simulation& s) { return s.bubble_rate(); }, share,
     false},
    {"exposed comm, all ranks", "exposed", [](const Simulation& s) { return s.exposed(); },
     time_in_words},
    {"peak memory", "peak", [](const Simulation& s) { return s.peak(); }, number},
    {"microbatches in flight", "in flight",
     [](const Simulation& s) { return static_cast<double>(s.microbatches_in_flight()); }, number},
    {"makespan at least", "at least", [](const Simulation& s) { return s.bounds().makespan.value; },
     time_in_words, false},
    {"tasks", "tasks",
     [](const Simulation& s) { return static_cast<double>(s.graph().tasks.size()); }, number},
};

std::string cell_of(const Figure& figure, const Simulation& here, const Simulation& first) {
  const double value = figure.value(here);
  const double of_first = figure.value(first);
  std::string cell = figure.print(here, value);
  if (figure.relative && value != of_first && of_first != 0) {
    cell += fmt::format(" ({:+.2f} %)", (value / of_first - 1) * 100);
  }
  return cell;
}

std::string name_of(const Named& order) {
  return order.name + (order.simulation->replayed() ? ", as replayed" : "");
}

using Rows = std::vector<std::vector<std::string>>;

// Choices stand behind the figures of orders.
struct Chosen {
  std::vector<Choosable> orders;
  std::vector<bool> best;
  std::string limit;  ///< "within 8"; empty: there is none

  Chosen(const std::vector<Named>& simulations, const CompareOptions& options)
      : orders(choosable(simulations, options.memory_limit)),
        best(capo::best(orders, options.sort)) {
    if (options.memory_limit) limit = fmt::format("within {}", figure(*options.memory_limit));
  }
};

// A line for each figure, a column for each order.
Rows side_by_side(const std::vector<Named>& simulations, const Chosen& chosen, SortBy sort) {
  Rows rows{{""}};
  const auto add = [&](std::string name, auto cell) {
    auto& row = rows.emplace_back(1, std::move(name));
    for (std::size_t i = 0; i < simulations.size(); ++i) row.push_back(cell(i));
  };
  for (const Named& each : simulations) rows.front().push_back(name_of(each));
  for (const Figure& each : kFigures) {
    add(each.name, [&](std::size_t i) {
      return cell_of(each, *simulations[i].simulation, *simulations.front().simulation);
    });
  }
  if (!chosen.limit.empty()) {
    add(chosen.limit,
        [&](std::size_t i) { return std::string(chosen.orders[i].fits ? "yes" : "no"); });
  }
  const SortBy by = sort == SortBy::Given ? SortBy::Makespan : sort;
  add(fmt::format("best by {}", name_of(by)),
      [&](std::size_t i) { return std::string(chosen.best[i] ? "best" : ""); });
  return rows;
}

// A line for each order, a column for each figure, of which only the makespan is told relatively.
Rows one_below_the_other(const std::vector<Named>& simulations, const Chosen& chosen) {
  Rows rows{{""}};
  for (const Figure& each : kFigures) rows.front().emplace_back(each.short_name);
  if (!chosen.limit.empty()) rows.front().push_back(chosen.limit);
  for (std::size_t i = 0; i < simulations.size(); ++i) {
    const Simulation& here = *simulations[i].simulation;
    auto& row = rows.emplace_back(1, name_of(simulations[i]));
    for (const Figure& each : kFigures) {
      row.push_back(&each == &kFigures[0] ? cell_of(each, here, *simulations.front().simulation)
                                          : each.print(here, each.value(here)));
    }
    if (!chosen.limit.empty()) row.emplace_back(chosen.orders[i].fits ? "yes" : "no");
    if (chosen.best[i]) row.emplace_back("best");
  }
  return rows;
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

std::string fitting_table(const std::vector<Named>& simulations, const CompareOptions& options) {
  const Chosen chosen(simulations, options);
  const std::string text = table(side_by_side(simulations, chosen, options.sort));
  if (longest_line(text) <= options.width) return text;
  return table(one_below_the_other(simulations, chosen));
}

std::int32_t most_chunks(const Simulation& simulation) {
  std::int32_t most = 0;
  for (const RankOrder& rank : simulation.subject().schedule.ranks) {
    most = std::max(most, rank.chunks);
  }
  return most;
}

// A time of --cost is read in two ways if ranks of one order have more chunks than those of
// another.
std::string meaning_of_costs(const std::vector<Named>& simulations) {
  std::set<std::int32_t> chunks;
  for (const Named& each : simulations) chunks.insert(most_chunks(*each.simulation));
  const Costs& costs = simulations.front().simulation->costs();
  if (chunks.size() < 2 || costs.in_microseconds) return "";
  std::vector<std::string> counts;
  for (const std::int32_t count : chunks) counts.push_back(std::to_string(count));
  return fmt::format(
      "\nThese orders have {} chunks a rank. Costs are of one microbatch {}\n",
      listed(std::vector<std::string_view>(counts.begin(), counts.end())),
      costs.per == CostPer::Rank
          ? "on one rank, whose chunks\nshare them, so that all orders have the same work; with "
            "--cost-per chunk they are of one chunk."
          : "in one chunk, so that orders\nwith more chunks have more work; with --cost-per rank "
            "all "
            "have the same.");
}

// All orders have the times of one model. Times in seconds say so, as a report of one order does.
std::string origins(const std::vector<Named>& simulations) {
  if (simulations.empty() || !simulations.front().simulation->costs().in_microseconds) return "";
  const Simulation& first = *simulations.front().simulation;
  const std::string section = origins_in_words(first);
  return section.empty() ? fmt::format("\nTimes are in {}.\n", unit_of_time(first)) : section;
}

}  // namespace

std::vector<Named> listed(const std::vector<Named>& simulations, const CompareOptions& options) {
  std::vector<Named> out;
  for (const std::size_t i : sorted(choosable(simulations, options.memory_limit), options.sort)) {
    out.push_back(simulations[i]);
  }
  return out;
}

std::vector<Choosable> choosable(const std::vector<Named>& simulations,
                                 std::optional<double> memory_limit) {
  constexpr double kRounding = 1e-9;
  std::vector<Choosable> orders;
  for (const Named& each : simulations) {
    const Simulation& s = *each.simulation;
    orders.push_back({.makespan = s.makespan(),
                      .span = s.span(),
                      .bubble = s.bubble_rate_of_makespan(),
                      .peak = s.peak(),
                      .fits = !memory_limit || s.peak() <= *memory_limit * (1 + kRounding)});
  }
  return orders;
}

std::string text_comparison(const std::vector<Named>& simulations, const CompareOptions& options) {
  const std::vector<Named> orders = listed(simulations, options);
  return fitting_table(orders, options) + meaning_of_costs(orders) + origins(orders);
}

}  // namespace capo
