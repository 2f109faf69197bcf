// The request of `capo convert`, and the steps that its two ways share: an order rewritten in
// another form (convert.cpp), and a table lowered as torch lowers it (convert_torch.cpp).
//
// Tested by tests/cli/convert_test.cpp.

#pragma once

#include "cli/options/judged_input.h"
#include "core/convert/written.h"
#include "core/frameworks/torch/version.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace capo::cli {

/// The flags of torch's passes. Those that are not given have torch's defaults.
struct TorchFlags {
  std::string version;  ///< "torch@2.15", or empty
  std::string
      defer_recv;  ///< "torch", "safe", or empty: receives stand where they are posted first
  bool defer_reduce_wait = false;
  std::optional<std::int64_t> max_sends;
  std::optional<std::int64_t> max_active;
  std::string lookahead;  ///< "full", "auto", numbers with commas, or empty

  [[nodiscard]] bool any_policy() const {
    return !defer_recv.empty() || defer_reduce_wait || max_sends || max_active ||
           !lookahead.empty();
  }
  [[nodiscard]] bool any() const { return !version.empty() || any_policy(); }
};

struct ConvertRequest : InputRequest {
  std::optional<TextForm> to;
  std::string output = "-";
  std::int32_t rank = -1;  ///< -1: all
  bool lossy = false;
  bool lower = false;
  TorchFlags torch;

  /// Whether transfers are those of torch's own passes if the orders state none of Megatron's
  /// calls.
  [[nodiscard]] bool lowers_for_torch() const {
    return lower && !environment.p2p && (to == TextForm::TorchCsv || torch.any());
  }
};

/// The schedule of one rank. The stages of the others are not known to it: a table is not told how
/// many there are, and a list is not told how its own chunks stand among them.
[[nodiscard]] Schedule only_rank(Schedule schedule, std::size_t rank, TextForm form);

/// An entry that is no action is no part of the schedule, so no form but its own can say it.
[[nodiscard]] std::optional<Inexpressible> no_action(const Input& input);

[[nodiscard]] std::size_t chosen_rank(const ConvertRequest& request, std::size_t ranks);

/// Tells why an input cannot be written in the form that is asked for. Returns the exit code.
[[nodiscard]] int refuse_form(const Input& input, const ConvertRequest& request,
                              const Inexpressible& why);

void add_torch_flags(CLI::App& app, TorchFlags& flags);

/// The version that tables are lowered for; torch 2.11 has no policies.
[[nodiscard]] const torch::Version& asked_version(const TorchFlags& flags);

/// Tells what torch raises at a text that capo refuses to read, if it is a table with a cell that
/// torch refuses too. Returns the exit code.
[[nodiscard]] std::optional<int> refuse_cell_as_torch(const CommandError& error,
                                                      const ConvertRequest& request,
                                                      const torch::Version& version);

/// Writes the table that torch's passes make.
[[nodiscard]] int convert_for_torch(const ConvertRequest& request, const JudgedInput& judged,
                                    const torch::Version& version);

}  // namespace capo::cli
