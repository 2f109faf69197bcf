// The corpora and the examples, judged without what says how ranks communicate: the verdict of
// every order of several ranks is the worst, and its errors are all, of those that declaring each
// value gives. tests/schedules/undeclared_test.cpp has the same of generated schedules.

#include "tests/support/corpus_orders.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::testing_support {
namespace {

using nlohmann::json;
using Flags = std::vector<std::string>;

// Flags of an order that speak of its plan and of how its ranks communicate are left out.
CorpusOrder undeclared(CorpusOrder order) {
  constexpr std::array<std::string_view, 4> kLeftOut{"--comm", "--transfers", "--plan", "--assume"};
  Flags kept;
  for (std::size_t at = 0; at < order.flags.size(); ++at) {
    const bool out = std::count(kLeftOut.begin(), kLeftOut.end(), order.flags[at]) > 0;
    if (out) {
      ++at;  // its value goes as well
    } else {
      kept.push_back(order.flags[at]);
    }
  }
  order.flags = std::move(kept);
  return order;
}

json report_under(const CorpusOrder& order, const std::string& plan, Flags flags = {}) {
  flags.insert(flags.end(), {"--plan", plan, "--format", "json", "--max-findings", "100000"});
  // A model file may declare another plan.
  if (std::count(order.flags.begin(), order.flags.end(), "--model") > 0) {
    flags.emplace_back("--override");
  }
  return json::parse(order.check(flags).out, nullptr, false);
}

// The messages of errors, each with its rule.
std::set<std::string> errors_of(const json& report) {
  std::set<std::string> errors;
  for (const json& finding : report.at("diagnostics")) {
    if (finding.at("severity") != "error") continue;
    errors.insert(finding.at("rule").get<std::string>() + " " +
                  finding.at("message").get<std::string>());
  }
  return errors;
}

// Each way to declare what a report calls undeclared, in flags.
std::vector<Flags> declarations(const json& report) {
  std::vector<Flags> all{{}};
  for (const json& fact : report.at("undeclared")) {
    std::vector<Flags> longer;
    for (const Flags& flags : all) {
      for (const json& value : fact.at("values")) {
        longer.push_back(flags);
        longer.back().push_back(fact.at("key") == "communicators" ? "--comm" : "--transfers");
        longer.back().push_back(value.at("value"));
      }
    }
    all = std::move(longer);
  }
  return all;
}

struct Seen {
  std::size_t judged = 0;  // orders of several ranks, each under two plans
  std::size_t rejected = 0;
  std::size_t parted = 0;  // those that some value accepts and another rejects
};

void compare(const CorpusOrder& order, const json& report, const std::string& plan, Seen& seen) {
  std::set<std::string> errors;
  std::set<std::string> verdicts;
  std::map<std::string, std::set<std::string>> by_value;
  for (const Flags& flags : declarations(report)) {
    const json under = report_under(order, plan, flags);
    ASSERT_TRUE(under.is_object());
    EXPECT_TRUE(under.at("undeclared").empty());
    errors.merge(errors_of(under));
    verdicts.insert(under.at("verdict"));
    for (std::size_t at = 1; at < flags.size(); at += 2) {
      by_value[flags[at]].insert(under.at("verdict"));
    }
  }
  const auto worst = [](const std::set<std::string>& of) {
    return of.contains("rejected") ? std::string("rejected") : *of.begin();
  };
  EXPECT_EQ(report.at("verdict"), worst(verdicts));
  EXPECT_EQ(errors_of(report), errors);
  for (const json& fact : report.at("undeclared")) {
    for (const json& value : fact.at("values")) {
      EXPECT_EQ(value.at("verdict"), worst(by_value[value.at("value")])) << value;
    }
  }
  ++seen.judged;
  seen.rejected += report.at("verdict") == "rejected" ? 1 : 0;
  seen.parted += verdicts.size() > 1 ? 1 : 0;
}

bool is_undeclared(const json& report) {
  return report.is_object() && !report.at("undeclared").empty();
}

TEST(UndeclaredOrders, OfTheCorporaAreJudgedAsTheWorstOfTheirDeclaredVerdicts) {
  const ScratchFolder folder;
  Seen seen;
  for (const CorpusOrder& each : corpus_orders(folder)) {
    const CorpusOrder order = undeclared(each);
    if (order.form() == "te") continue;  // a list is of one rank
    for (const std::string plan : {"te", "safe"}) {
      SCOPED_TRACE(order.file.string() + " under plan " + plan);
      const json report = report_under(order, plan);
      if (!is_undeclared(report)) break;
      compare(order, report, plan, seen);
    }
    if (HasFailure()) return;
  }
  std::printf("%zu judged, %zu rejected, %zu of them accepted under some value\n", seen.judged,
              seen.rejected, seen.parted);
  EXPECT_GE(seen.judged, 450U);
  EXPECT_GE(seen.rejected, 250U);
  EXPECT_GE(seen.parted, 40U);
}

}  // namespace
}  // namespace capo::testing_support
