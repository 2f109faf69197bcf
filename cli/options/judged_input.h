// An order with all that it is judged by: the text that was read, the replay beside it, the model
// that was declared, the stages placed. Every command that looks at orders begins here:
//
//   auto judged = judged_input(request);
//   if (!judged) return refuse(judged.error());
//   return write(report_of(judged->input, check(judged->input, judged->check_options()), {}));
//
// The steps have one order, which decides which mistake is told first: the capture is read, then
// the replay, then the declarations, and only then are stages placed and weight gradients fused.
// Each file is read once, so that a pipe or standard input can be any of them. Tested by
// tests/cli/options/judged_input_test.cpp.

#pragma once

#include "cli/options/command_error.h"
#include "cli/options/environment_options.h"
#include "cli/options/input_options.h"
#include "cli/options/project.h"
#include "core/base/result.h"
#include "core/model/model.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace capo::cli {

struct InputRequest;

/// How many weight gradients of a chunk one call may take: part of a plan, and judged with it.
struct FuseFlag {
  std::int32_t most = 1;
  bool is_planned = false;  ///< the command makes a plan if nobody declares one

  CLI::Option* add_to(CLI::App& app);
  /// Throws CLI::ValidationError if weight gradients are to be fused under declarations with which
  /// that has no meaning.
  void refuse_unmeant(const InputRequest& request, const Schedule& schedule,
                      const Model& declared) const;
};

/// The options of a command about the order that it looks at.
struct InputRequest {
  InputOptions input;
  EnvironmentOptions environment;
  std::optional<PlanFlags> plan;  ///< nullopt: the command has no flags about plans
  std::string replay;             ///< a file; empty: what is captured is replayed
  FuseFlag fuse;
  /// Project files that were read; copies of a request share them.
  std::shared_ptr<ProjectFiles> projects = std::make_shared<ProjectFiles>();
};

struct JudgedInput {
  Input input;
  Model model;
  /// The replay holds an entry that is no action, which has no place in a schedule of two texts.
  /// `input` is then the replay by itself, and `model` declares nothing.
  bool replay_alone = false;

  [[nodiscard]] CheckOptions check_options() const;
};

/// Throws CLI::ValidationError if flags contradict the input, the model file or each other.
[[nodiscard]] Result<JudgedInput, CommandError> judged_input(const InputRequest& request);

/// Judges one of several inputs under declarations that were read before.
[[nodiscard]] Result<JudgedInput, CommandError> judged_input(const InputRequest& request,
                                                             const Model& declared);

/// The model file with the flags that stand for members of it, --plan and its like included.
[[nodiscard]] Result<Model, CommandError> declared_model(const InputRequest& request);

/// Places the stages as declared. Returns what does not fit the schedule.
[[nodiscard]] std::optional<Misfit> place(const InputRequest& request, Schedule& schedule,
                                          const Model& declared);

}  // namespace capo::cli
