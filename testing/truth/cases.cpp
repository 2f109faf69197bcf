#include <capo/testing/truth/cases.h>

#include <capo/core/generate/published/catalogue.h>
#include <capo/core/model/module_kinds.h>
#include <capo/core/text/load.h>
#include <capo/run/setup/complete_model.h>
#include <capo/testing/generators/sound_order.h>
#include <capo/testing/generators/te_capturable_order.h>

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

namespace capo::testing {

namespace {

constexpr std::array kKinds{ModuleKind::Linear,          ModuleKind::GroupedLinear,
                            ModuleKind::LayerNormLinear, ModuleKind::LayerNormMlp,
                            ModuleKind::GroupedMlp,      ModuleKind::GroupedLinearOp,
                            ModuleKind::BasicLinearOp};
// Those of which a weight gradient reads a buffer that TransformerEngine shares.
constexpr std::array kAliasing{ModuleKind::Linear, ModuleKind::GroupedLinear,
                               ModuleKind::LayerNormLinear};

Module module_of(ModuleKind kind, Dice& dice) {
  Module module{.name = std::string(name_of(kind)),
                .kind = kind,
                .dtype = dice.one_in(4) ? DataType::Fp16 : DataType::Bf16};
  const std::int32_t width = 8 * dice.between(1, 4);
  module.shape = {.tokens = 8 * dice.between(1, 4), .hidden = width, .ffn = width};
  if (is_grouped(kind)) {
    module.shape.groups = dice.between(1, 8);
    module.splits = Splits::Device;
    module.flags.single_weight = dice.one_in(2);
  }
  module.flags.bias = dice.one_in(3);
  module.flags.fuse_wgrad_accumulation = true;
  module.flags.grad_added_to_main_grad = dice.one_in(2);
  return module;
}

std::optional<Schedule> published_schedule(Dice& dice, std::string& words) {
  const auto entries = published::entries();
  const auto& entry = entries[dice.below(entries.size())];
  published::Request request{.name = std::string(entry.name),
                             .ranks = dice.between(1, 4),
                             .microbatches = 2 * dice.between(1, 4)};
  auto schedule = published::schedule_named(request);
  if (!schedule) {
    request.memory_limit = 2 * request.ranks;
    schedule = published::schedule_named(request);
  }
  if (!schedule) return std::nullopt;
  words = fmt::format("{} of {} ranks, {} microbatches", entry.name, request.ranks,
                      request.microbatches);
  return *std::move(schedule);
}

}  // namespace

TruthCase truth_case(std::uint64_t seed, std::uint64_t number) {
  Dice dice(rc::Random(seed * 1'000'003 + number));
  TruthCase made;
  made.unchecked = number % 2 == 1;
  made.graphs = dice.one_in(2) ? Granularity::PerStep : Granularity::PerAction;
  const ModuleKind kind =
      made.unchecked ? kAliasing[dice.below(kAliasing.size())] : kKinds[dice.below(kKinds.size())];
  Module module = module_of(kind, dice);
  if (made.unchecked) module.flags.bias = false;  // G02 is another matter
  made.module = fmt::format("{} {}", module.name, name_of(*module.dtype));

  std::optional<Schedule> schedule;
  if (!made.unchecked && dice.one_in(2)) schedule = published_schedule(dice, made.words);
  if (schedule) {
    made.input = {.form = Form::OrderFile, .schedule = *std::move(schedule)};
  } else {
    const TeOrder order = made.unchecked ? draw_te_capturable_order(dice) : draw_sound_order(dice);
    made.words = order.text();
    made.input =
        load(Source{.name = "<case>", .text = made.words}, {.te = order.declarations()}).value();
  }
  CheckOptions declared;
  declared.modules = {.list = {std::move(module)}, .layers = {{{0}}}};
  declared.plan.kind = made.unchecked ? PlanKind::Te : PlanKind::Safe;
  made.options = run::complete_model(declared, made.input.schedule).options;
  return made;
}

}  // namespace capo::testing
