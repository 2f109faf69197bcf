// Faults of declared modules and reductions: none where TransformerEngine keeps everything nor in
// the nearest neighbours of the faults, none of its own under capo's plan, and no errors without a
// plan. That each is reported is in faults_test.cpp.

#include "testing/edits/transfers.h"
#include "testing/faults/faults.h"
#include "testing/faults/modules.h"
#include "testing/generators/sound_declared.h"
#include "testing/laws/reported.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace capo::testing {
namespace {

RC_GTEST_PROP(ModuleFaults, AreNotSeenWhereThereAreNone, ()) {
  const Declared sound = *sound_declared();
  const Checked verdict = checked(sound);
  RC_ASSERT(verdict.of(Family::Gradients).empty());
  RC_ASSERT(verdict.of(Family::Capture).empty());
}

// One of the faults, applied to something sound; nothing where it has nothing to break.
std::optional<Broken<Declared>> any_broken() {
  const Declared sound = *sound_declared();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  const std::span<const ModuleFault> faults = module_faults();
  return faults[choice % faults.size()].apply(sound, choice / faults.size());
}

// Under capo's plan only the order itself can be at fault.
RC_GTEST_PROP(ModuleFaults, OfTransformerEngineAreNoneUnderCaposPlan, ()) {
  auto broken = any_broken();
  if (!broken || (broken->rule >= "G13" && broken->rule <= "G17")) return;
  broken->subject.options.plan.kind = PlanKind::Safe;
  const Checked verdict = checked(broken->subject);
  if (broken->rule == "C01") {  // capo's own split path bakes sizes in just the same
    RC_ASSERT(!verdict.accepted());
    return;
  }
  RC_ASSERT(verdict.of(Family::Gradients).empty());
  RC_ASSERT(verdict.of(Family::Capture).empty());
}

// A plan that nobody declared is no ground for an error. What ops.BasicLinear overwrites is lost
// besides, whoever captures it; and who delays only some weight gradients, or all of them, is
// warned of no plan.
RC_GTEST_PROP(ModuleFaults, OfTransformerEngineLeaveTheVerdictAloneWithoutAPlan, ()) {
  auto broken = any_broken();
  if (!broken || broken->rule == "G05" || broken->rule == "G06" || broken->rule >= "G12") return;
  if (broken->rule == "C08" || broken->rule == "C11") return;
  broken->subject.options.plan.kind.reset();
  const Checked verdict = checked(broken->subject);
  RC_ASSERT(verdict.accepted());
  const Family family = broken->rule.front() == 'G' ? Family::Gradients : Family::Capture;
  RC_ASSERT(!verdict.of(family).empty());
}

bool is_of_modules(std::string_view rule) {
  return (rule.front() == 'C' && rule < "C08") ||
         (rule.front() == 'G' && rule < "G12" && rule != "G06");
}

// The chunk has two layers, of which the second is at fault.
RC_GTEST_PROP(ModuleFaults, AreReportedBehindASoundLayer, ()) {
  const Declared sound = *sound_declared();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (const ModuleFault& fault : module_faults()) {
    auto broken = fault.apply(sound, choice);
    if (!broken || !is_of_modules(broken->rule)) continue;
    auto& layers = broken->subject.options.modules.layers;
    for (std::size_t r = 0; r < layers.size(); ++r) {
      broken->subject.schedule.ranks[r].layers = {};
      for (std::size_t c = 0; c < layers[r].size(); ++c) {
        const std::int32_t before = sound.options.modules.layers[r][c].front();
        if (layers[r][c].front() != before) layers[r][c] = {before, layers[r][c].front()};
      }
    }
    if (!reports(checked(broken->subject), *broken)) RC_FAIL(std::string(fault.name));
  }
}

// A near miss is a module that lacks one thing to be at fault, in a chunk that delays its weight
// gradient or not.
struct NearMiss {
  Delayed of;
  std::int32_t microbatches;  ///< the most that the step may have
  void (*make)(Module&);
};

constexpr std::int32_t kAny = 1000;
constexpr std::array kNearMisses{
    NearMiss{Delayed::Yes, kAny,
             [](Module& module) {  // G02: B makes the bias gradient
               module.kind = ModuleKind::GroupedLinear;
               module.splits = Splits::Device;
               module.flags.bias = true;
             }},
    NearMiss{Delayed::Yes, kAny,
             [](Module& module) {  // G02: and of a module that quantizes
               module.recipe = Recipe::Block;
               module.flags.bias = true;
             }},
    NearMiss{Delayed::Yes, kAny,
             [](Module& module) {  // C12: an MLP behind a norm without one
               module.kind = ModuleKind::LayerNormMlp;
               module.recipe = Recipe::Current;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C15: some device has the product
               module.kind = ModuleKind::GroupedLinear;
               module.splits = Splits::Device;
               module.recipe = Recipe::Block;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C13: nothing is quantized
               module.weight_cache = WeightCache::Python;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C13: nothing changes the weight
               module.kind = ModuleKind::GroupedLinearOp;
               module.splits = Splits::Device;
               module.recipe = Recipe::Mxfp8;
               module.weight_cache = WeightCache::Python;
               module.flags.frozen_weight = true;
             }},
    NearMiss{Delayed::Yes, kAny,
             [](Module& module) {  // G04: an empty queue is none of its concern
               module.kind = ModuleKind::GroupedLinear;
               module.splits = Splits::Device;
               module.flags.frozen_weight = true;
             }},
    NearMiss{Delayed::No, kAny,
             [](Module& module) {  // G05: nothing is written
               module.kind = ModuleKind::BasicLinearOp;
               module.flags.overwrite_main_grad = true;
               module.flags.frozen_weight = true;
             }},
    NearMiss{Delayed::Yes, kAny,
             [](Module& module) {  // G09: one bucket has one order
               module.kind = ModuleKind::TransformerLayer;
               module.flags.wgrad_hooks = true;
             }},
    NearMiss{Delayed::No, 1,
             [](Module& module) {  // G10: nobody comes to overwrite it
               module.flags.fuse_wgrad_accumulation = false;
               module.flags.clone_param_grads = false;
             }},
    NearMiss{Delayed::Yes, 1,
             [](Module& module) {  // G12: likewise
               module.flags.overwrite_main_grad = true;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C01: fp32 has no groups here
               module.dtype = DataType::Fp32;
             }},
    NearMiss{Delayed::No, kAny,
             [](Module& module) {  // C04: nothing is queued
               module.calls = 3;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C05: as many as there may be
               module.kind = ModuleKind::GroupedLinear;
               module.splits = Splits::Device;
               module.shape.groups = 64;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C05: one weight
               module.kind = ModuleKind::GroupedLinear;
               module.splits = Splits::Device;
               module.shape.groups = 65;
               module.flags.single_weight = true;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C05: nobody says that the sizes are on the device
               module.kind = ModuleKind::GroupedLinear;
               module.shape.groups = 65;
             }},
    NearMiss{Delayed::No, kAny,
             [](Module& module) {  // C06: nobody wants a gradient
               module.flags.frozen_weight = true;
               module.flags.input_requires_grad = false;
             }},
    NearMiss{Delayed::Either, kAny,
             [](Module& module) {  // C06: the norm's
               module.kind = ModuleKind::LayerNormLinear;
               module.flags.input_requires_grad = false;
             }},
    NearMiss{Delayed::No, kAny,
             [](Module& module) {  // C06: the bias's
               module.flags.bias = true;
               module.flags.input_requires_grad = false;
             }},
};

RC_GTEST_PROP(ModuleFaults, AreNotSeenInTheirNearestNeighbours, ()) {
  const Declared sound = *sound_declared();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  for (std::size_t i = 0; i < kNearMisses.size(); ++i) {
    const NearMiss& near = kNearMisses[i];
    if (*sound.schedule.microbatches > near.microbatches) continue;
    const auto declared = with_module(sound, choice, {.of = near.of}, near.make);
    if (!declared) continue;
    const Checked verdict = checked(declared->subject);
    if (verdict.of(Family::Gradients).empty() && verdict.of(Family::Capture).empty()) continue;
    RC_FAIL(fmt::format("near miss {}: [{}]", i, verdict.findings()));
  }
}

std::optional<Broken<Declared>> broken_as(std::string_view rule, const Declared& sound,
                                          std::size_t choice) {
  for (const ModuleFault& fault : module_faults()) {
    if (fault.rules.front() == rule) return fault.apply(sound, choice);
  }
  return std::nullopt;
}

// A reduction that comes too early stays at fault if another comes in time, and the other is not
// one too many.
RC_GTEST_PROP(ModuleFaults, OfAReductionAreNotMendedByALaterOne, ()) {
  Declared broken = *sound_declared();
  const auto choice = *rc::gen::inRange<std::size_t>(0, 10'000);
  const auto in_time = chosen(reductions(broken.schedule), choice);
  if (!in_time) return;
  Entry early = broken.schedule.ranks[in_time->rank].order[in_time->at];
  early.group = Group::Alone;
  const Position place = put_before(
      broken.schedule, last_gradient(broken.schedule, in_time->rank, early.chunk), early);
  const Checked verdict = checked(broken);
  RC_ASSERT(reports(verdict, "G13", fault_place(broken.schedule, place)));
  RC_ASSERT(verdict.of(Family::Gradients).size() == 1U);
}

// A chunk whose weights are frozen has nothing to reduce.
RC_GTEST_PROP(ModuleFaults, OfAMissingReductionAreNoneOfFrozenChunks, ()) {
  const Declared sound = *sound_declared();
  auto broken = broken_as("G14", sound, *rc::gen::inRange<std::size_t>(0, 10'000));
  if (!broken) return;
  ModuleTable& modules = broken->subject.options.modules;
  for (auto& layers : modules.layers[static_cast<std::size_t>(broken->place->rank)])
    layers = {static_cast<std::int32_t>(modules.list.size())};
  modules.list.push_back(
      {.name = "frozen", .kind = ModuleKind::GroupedLinear, .flags = {.frozen_weight = true}});
  RC_ASSERT(!reports(checked(broken->subject), *broken));
}

}  // namespace
}  // namespace capo::testing
