// torch's passes, those of 2.15 and of 2.11, against tables that torch made.

#include "core/frameworks/torch/passes.h"

#include "core/convert/for_torch.h"
#include "core/frameworks/torch/csv_printer.h"
#include "core/frameworks/torch/predict.h"
#include "core/input/load.h"
#include "core/rules/check.h"
#include "tests/support/data.h"
#include "tests/support/sha256.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace capo {
namespace {

using nlohmann::json;
using testing_support::read_data;

const torch::Version& k2_11 = torch::kVersions.at(0);
const torch::Version& k2_15 = torch::kVersions.at(1);

std::string joined(const json& rows) {
  std::string text;
  for (const auto& row : rows) text += row.get<std::string>() + "\n";
  return text;
}

torch::Rows rows_of(const json& rows, const torch::Version& version) {
  const auto split = split_torch_csv(joined(rows), {});
  EXPECT_TRUE(split);
  auto read = read_for_torch(*split, version);
  EXPECT_TRUE(read);
  return *std::move(read);
}

// "defer_pp_recv,max_outstanding_sends=1", as the vectors name a policy.
torch::Policy policy_named(const std::string& name) {
  torch::Policy policy;
  std::stringstream in(name);
  for (std::string word; std::getline(in, word, ',');) {
    const std::string value = word.substr(std::min(word.find('=') + 1, word.size()));
    if (word == "defer_pp_recv") policy.defer_pp_recv = true;
    if (word == "defer_reduce_grad_wait") policy.defer_reduce_grad_wait = true;
    if (word.starts_with("max_outstanding")) policy.max_outstanding_sends = std::stol(value);
    if (word.starts_with("max_active")) policy.max_active_stages = std::stol(value);
    if (word == "unshard_lookahead=auto") policy.unshard_lookahead = torch::Lookahead::Auto;
  }
  return policy;
}

// A policy as an object of torch's arguments.
torch::Policy policy_of(const json& arguments) {
  torch::Policy policy;
  policy.defer_pp_recv = arguments.value("defer_pp_recv", false);
  policy.defer_reduce_grad_wait = arguments.value("defer_reduce_grad_wait", false);
  policy.max_active_stages = arguments.value("max_active_stages", policy.max_active_stages);
  if (arguments.contains("max_outstanding_sends"))
    policy.max_outstanding_sends = arguments.at("max_outstanding_sends").get<std::int64_t>();
  if (!arguments.contains("unshard_lookahead")) return policy;
  const json& ahead = arguments.at("unshard_lookahead");
  if (ahead.is_array()) {
    policy.unshard_lookahead = ahead.get<std::vector<std::int64_t>>();
  } else {
    policy.unshard_lookahead = torch::Lookahead::Auto;
  }
  return policy;
}

// The rows, or what is raised.
std::string lowered(const json& rows, const ForTorch& wanted) {
  const auto text = lower_for_torch(rows_of(rows, *wanted.version), wanted);
  return text ? *text : text.error().text;
}

// One policy's rows of torch's vectors; a table that is too long to keep is a digest.
std::string stored(const json& row, const json& of_policy) {
  if (of_policy.is_object()) return of_policy.at("error").get<std::string>();
  if (of_policy.is_string()) return of_policy.get<std::string>();
  std::string text;
  for (const auto& line : of_policy)
    text += row.at("lines").at(line.get<std::size_t>()).get<std::string>() + "\n";
  return text;
}

ForTorch wanted_of(const json& row, const torch::Policy& policy) {
  return {.version = &k2_15,
          .policy = policy,
          .stages = row.at("P").get<std::int64_t>() * row.at("V").get<std::int64_t>(),
          .microbatches = row.at("M").get<std::int64_t>()};
}

TEST(TorchPasses, WriteEveryTableOfTorch215) {
  const json data = read_data("torch215_lowered.json");
  std::size_t tables = 0;
  std::size_t refused = 0;
  for (const auto& row : data.at("rows")) {
    for (const auto& [policy, table] : row.at("lowered").items()) {
      SCOPED_TRACE(row.at("id").get<std::string>() + " " + policy);
      const std::string text = lowered(row.at("compute"), wanted_of(row, policy_named(policy)));
      EXPECT_EQ(table.is_string() ? testing_support::sha256(text) : text, stored(row, table));
      refused += table.is_object() ? 1 : 0;
      ++tables;
    }
  }
  std::printf("%zu tables are lowered as torch 2.15 does, %zu of them refused\n", tables, refused);
  EXPECT_EQ(tables, 704U);
  EXPECT_EQ(refused, 32U);
}

TEST(TorchPasses, WriteWhatTorch215DoesOfRandomAndDamagedTables) {
  const json data = read_data("torch215_lowered.json");
  std::size_t refused = 0;
  for (const auto& row : data.at("more")) {
    SCOPED_TRACE(row.dump());
    const ForTorch wanted{.version = &k2_15,
                          .policy = policy_of(row.at("policy")),
                          .communicates = row.at("format") == "compute_comms",
                          .stages = row.at("stages").get<std::int64_t>(),
                          .microbatches = row.at("microbatches").get<std::int64_t>()};
    const bool raises = row.contains("error");
    EXPECT_EQ(lowered(row.at("rows"), wanted),
              raises ? row.at("error").get<std::string>() : joined(row.at("lowered")));
    refused += raises ? 1 : 0;
  }
  std::printf("%zu random tables, %zu of them refused\n", data.at("more").size(), refused);
  EXPECT_GT(data.at("more").size(), 140U);
  EXPECT_GT(refused, 100U);
}

TEST(TorchPasses, WriteEveryTableOfTorch211) {
  const json data = read_data("torch_schedules.json");
  std::size_t tables = 0;
  for (const auto& row : data.at("rows")) {
    if (!row.contains("runtime") || row.at("cls") == "GPipe" || row.at("cls") == "1F1B") continue;
    SCOPED_TRACE(row.at("id").get<std::string>());
    ForTorch wanted = wanted_of(row, {});
    wanted.version = &k2_11;
    EXPECT_EQ(lowered(row.at("order"), wanted), joined(row.at("runtime")));
    ++tables;
  }
  std::printf("%zu tables are lowered as torch 2.11 does\n", tables);
  EXPECT_GT(tables, 10U);
}

TEST(TorchPasses, GiveTablesThatAreReadAndWrittenBackAndAcceptedAgain) {
  const json data = read_data("torch215_lowered.json");
  std::size_t tables = 0;
  for (const auto& row : data.at("rows")) {
    if (row.at("P").get<int>() * row.at("M").get<int>() > 64) continue;
    for (const std::string policy : {"default", "max_outstanding_sends=1", "defer_reduce_grad_wait",
                                     "unshard_lookahead=auto"}) {
      SCOPED_TRACE(row.at("id").get<std::string>() + " " + policy);
      ForTorch wanted = wanted_of(row, policy_named(policy));
      const std::string text = lowered(row.at("compute"), wanted);
      const auto input = load(Source{.name = "lowered.csv", .text = text}, {});
      ASSERT_TRUE(input) << input.error().refusal.finding.message;
      EXPECT_EQ(print_torch_csv(input->schedule).value(), text);
      EXPECT_TRUE(input->cell_faults.empty());
      const CheckResult result = check(*input);
      EXPECT_EQ(result.verdict, Verdict::Accepted)
          << (result.diagnostics.kept().empty() ? "" : result.diagnostics.kept()[0].message);
      ++tables;
    }
  }
  std::printf("%zu lowered tables are read and written back\n", tables);
  EXPECT_GT(tables, 100U);
}

TEST(TorchPasses, CountEveryRanksActivationSlots) {
  const json data = read_data("torch215_lowered.json");
  std::size_t ranks = 0;
  for (const auto& row : data.at("rows")) {
    const torch::Rows rows = rows_of(row.at("compute"), k2_15);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      EXPECT_EQ(torch::activation_slots(rows[r], row.at("M").get<std::int64_t>()),
                row.at("slots").at(r).get<std::int64_t>())
          << row.at("id") << " rank " << r;
      ++ranks;
    }
  }
  std::printf("%zu ranks have as many slots as torch gives them\n", ranks);
  EXPECT_GT(ranks, 300U);
}

TEST(TorchPasses, CountNoSlotsWhereTorchRaises) {
  const auto slots = [](const char* row) {
    return torch::activation_slots(rows_of(json::array({row}), k2_15).front(), 2);
  };
  EXPECT_EQ(slots("0F0,0F1,0B0,0B1"), 2);
  EXPECT_EQ(slots("0F0,(0F1;0B0)OVERLAP_F_B,0B1"), 2);
  EXPECT_EQ(slots("0F0,0B0,0F1,0B1"), 1);
  EXPECT_EQ(slots("0F0,0I0,0F1,0W0,0B1"), 2);
  EXPECT_EQ(slots("0F0,0B0,0F1"), std::nullopt);
  EXPECT_EQ(slots("0F0,0F0,0B0,0F1,0B1"), std::nullopt);
  EXPECT_EQ(slots("0F0,0W0,0F1,0B1"), std::nullopt);
  EXPECT_EQ(slots("0B0,0F0,0F1,0B1"), std::nullopt);
  EXPECT_EQ(slots("0F0,0B0,0F2,0B2"), std::nullopt);
}

TEST(TorchPasses, ReadTheCellsOf215AsItDoes) {
  const json data = read_data("torch215_lowered.json");
  for (const auto& row : data.at("parse")) {
    SCOPED_TRACE(row.dump());
    const TorchCell cell = read_as_torch(row.at(0).get<std::string>(), k2_15);
    if (row.at(1).is_null()) {
      EXPECT_EQ(cell.form, TorchCell::Form::Idle);
    } else if (row.at(1).is_object()) {
      EXPECT_EQ(cell.error, row.at(1).at("error").get<std::string>());
    } else {
      EXPECT_EQ(cell.repr, row.at(1).get<std::string>());
    }
  }
  EXPECT_EQ(data.at("parse").size(), 31U);
}

TEST(TorchPasses, OfAnOlderVersionKnowNoWaits) {
  EXPECT_EQ(read_as_torch("0WAIT_SEND_F0", k2_11).repr, "0W");
  EXPECT_EQ(read_as_torch("0WAIT_SEND_F0", k2_15).repr, "0WAIT_SEND_F0");
}

}  // namespace
}  // namespace capo
