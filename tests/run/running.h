// A step typed as text, run on the engine of the program (test_engine.h): what the tests of whole
// runs have in common.
//
//   run_verified(typed("[1, -1, -1.5]"), every_layer(small(ModuleKind::Linear)), {})
//
// Whatever a test did not mean to go wrong throws, with the words of whoever refused: a text that
// cannot be read, a plan that is not admitted, a run that breaks off. Modules are small, so that
// hundreds of runs take seconds; undeclared sizes are filled in as `capo run` does.

#pragma once

#include "core/frameworks/te/contract.h"
#include "core/input/load.h"
#include "core/rules/verify.h"
#include "core/text/model_reader.h"
#include "run/run.h"
#include "run/setup/complete_model.h"
#include "tests/run/test_engine.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capo::run {

/// Every kind that capo runs: those of the contract's columns, TE's basic operation, attention, a
/// layer of experts, and a transformer layer.
inline constexpr std::array kRunKinds{ModuleKind::Linear,          ModuleKind::LayerNormLinear,
                                      ModuleKind::LayerNormMlp,    ModuleKind::GroupedLinear,
                                      ModuleKind::GroupedLinearOp, ModuleKind::GroupedMlp,
                                      ModuleKind::BasicLinearOp,   ModuleKind::Attention,
                                      ModuleKind::MoeLayer,        ModuleKind::TransformerLayer};

inline constexpr std::array kGranularities{Granularity::PerAction, Granularity::PerStep};

/// An input in any form; throws where it is refused.
inline Input typed(std::string text, const LoadOptions& options = {}) {
  auto input = load(Source{.name = "<test>", .text = std::move(text)}, options);
  if (!input) throw std::invalid_argument(input.error().refusal.finding.message);
  return *std::move(input);
}

/// A module of 8 rows and 16 columns, whose gradients are fused as in every run that people do; an
/// attention has two sequences, and two heads for each of two kv heads, and a router chooses two of
/// three groups.
inline Module small(ModuleKind kind) {
  Module module{.name = std::string(name_of(kind)), .kind = kind, .dtype = DataType::Bf16};
  module.shape = {.tokens = 8, .hidden = 16};
  if (is_attention(kind) || has_two_halves(kind)) {
    module.shape.heads = 4;
    module.shape.kv_heads = 2;
    module.shape.head_dim = 4;
    module.shape.sequence = 4;
  }
  if (!is_attention(kind)) module.shape.ffn = 16;
  if (has_router(kind)) {
    module.shape.groups = 3;
    module.shape.top_k = 2;
  }
  if (is_grouped(kind)) {
    module.shape.groups = 3;
    module.splits = Splits::Device;
  }
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.grad_added_to_main_grad = true;
  return module;
}

/// A transformer layer whose second half is a router with its experts.
inline Module small_with_experts() {
  Module module = small(ModuleKind::TransformerLayer);
  module.name += " of experts";
  module.shape.groups = 3;
  module.shape.top_k = 2;
  return module;
}

/// The flags of a mode; `delay_wgrad` is what the order says.
inline Module configured(ModuleKind kind, gradients::GradientMode mode) {
  using enum gradients::GradientMode;
  Module module = small(kind);
  module.flags.fuse_wgrad_accumulation = mode != Vanilla && mode != Delay;
  module.flags.grad_added_to_main_grad = mode == FuseAttr || mode == DelayFuseAttr;
  return module;
}

inline bool delays(gradients::GradientMode mode) {
  using enum gradients::GradientMode;
  return mode == Delay || mode == DelayFuse || mode == DelayFuseAttr;
}

inline CheckOptions every_layer(Module module, PlanKind plan = PlanKind::Safe) {
  CheckOptions options;
  options.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
  options.plan.kind = plan;
  return options;
}

/// The groups of a model file in which these ranks reduce together: "[0, 1]".
inline std::vector<CollectiveGroup> groups_of_file(const std::string& members) {
  auto model =
      read_model(R"({"schema": 1, "groups": [{"name": "dp", "actions": ["reduce"], "members": )" +
                     members + "}]}",
                 Limits{});
  if (!model) throw std::invalid_argument(model.error().finding.message);
  return std::move(model->groups);
}

/// With every undeclared size, and each module of its own use.
inline CheckOptions completed(const Input& input, const CheckOptions& declared) {
  return complete_model(declared, input.schedule).options;
}

/// "it is not accepted: G01 G12".
inline std::string words_of(const NotVerified& why) {
  std::string words = why.reason + ":";
  for (const Diagnostic& finding : why.result.diagnostics.kept()) (words += ' ') += finding.rule;
  return words;
}

inline VerifiedPlan verified(Input input, const CheckOptions& declared) {
  const CheckOptions options = completed(input, declared);
  auto plan = verify(std::move(input), options);
  if (const auto* why = std::get_if<NotVerified>(&plan))
    throw std::invalid_argument(words_of(*why));
  return std::get<VerifiedPlan>(std::move(plan));
}

inline UncheckedPlan admitted(Input input, const CheckOptions& declared) {
  const CheckOptions options = completed(input, declared);
  auto plan = admit_unchecked(std::move(input), options);
  if (const auto* why = std::get_if<NotVerified>(&plan))
    throw std::invalid_argument(words_of(*why));
  return std::get<UncheckedPlan>(std::move(plan));
}

/// The report of a run, or its failure.
inline Result<RunReport, RunFailure> attempt_on(Engine& engine, const VerifiedPlan& plan,
                                                const RunOptions& options) {
  return run(engine, plan, options);
}
inline Result<RunReport, RunFailure> attempt_on(Engine& engine, const UncheckedPlan& plan,
                                                const RunOptions& options) {
  return run_unchecked(engine, plan, options);
}

/// Runs on an engine of its own.
template <typename AnyPlan>
Result<RunReport, RunFailure> attempt(const AnyPlan& plan, const RunOptions& options) {
  return attempt_on(*test_engine(), plan, options);
}

template <typename AnyPlan>
RunReport report_on(Engine& engine, const AnyPlan& plan, const RunOptions& options) {
  auto report = attempt_on(engine, plan, options);
  if (!report) throw std::runtime_error(report.error().message);
  return *std::move(report);
}

template <typename AnyPlan>
RunReport report_of(const AnyPlan& plan, const RunOptions& options) {
  return report_on(*test_engine(), plan, options);
}

inline RunReport run_verified(Input input, const CheckOptions& declared,
                              const RunOptions& options) {
  return report_of(verified(std::move(input), declared), options);
}
inline RunReport run_admitted(Input input, const CheckOptions& declared,
                              const RunOptions& options) {
  return report_of(admitted(std::move(input), declared), options);
}

/// The rules that are broken, each once, in their order: what `capo check` says of the same.
inline std::vector<std::string_view> rules_broken(const Input& input,
                                                  const CheckOptions& declared) {
  std::vector<std::string_view> rules;
  const CheckResult result = check(input, completed(input, declared));
  for (const Diagnostic& finding : result.diagnostics.kept()) {
    if (finding.severity != Severity::Error) continue;
    if (rules.empty() || rules.back() != finding.rule) rules.push_back(finding.rule);
  }
  return rules;
}

/// The parameter of that name's end, "layer 0 of chunk 1 of rank 0: weight".
inline const TensorReport& parameter(const RunReport& report, std::string_view name) {
  for (const TensorReport& tensor : report.parameters) {
    if (tensor.name.ends_with(name)) return tensor;
  }
  throw std::out_of_range("no such parameter: " + std::string(name));
}

}  // namespace capo::run
