#include "testing/generators/sound_module.h"

#include "core/frameworks/te/contract.h"
#include "core/model/module_kinds.h"
#include "tests/testing/sample.h"
#include "tests/testing/share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace capo::testing {
namespace {

std::vector<Module> modules(Delay delay, std::size_t count) {
  const auto draw = [delay](Dice& dice) { return draw_sound_module(dice, delay, "m"); };
  return sample(generator(draw, [](const Module&) { return std::vector<Module>(); }), count);
}

std::vector<Module> grouped(Delay delay, std::size_t count) {
  std::vector<Module> all = modules(delay, count);
  std::erase_if(all, [](const Module& module) { return !is_grouped(*module.kind); });
  return all;
}

// `flag` is drawn where `may`, with these odds, and else as it is left out.
template <typename May>
void expect_share(const std::vector<Module>& modules, bool ModuleFlags::*flag, double odds,
                  May may) {
  std::vector<bool> drawn;
  for (const Module& module : modules) {
    const bool turned = module.flags.*flag != ModuleFlags{}.*flag;
    if (may(module)) {
      drawn.push_back(turned);
    } else {
      EXPECT_FALSE(turned);
    }
  }
  EXPECT_TRUE(is_share(count_of(drawn, [](bool turned) { return turned; }), drawn.size(), odds));
}

bool always(const Module&) {
  return true;
}
bool grows_main_grad(const Module& module) {
  return module.flags.grad_added_to_main_grad;
}
bool operation(const Module& module) {
  return gradients::is_operation(*module.kind);
}

TEST(SoundModule, IsOfEveryKind) {
  const auto kind = [](const Module& module) { return *module.kind; };
  std::vector kinds{
      ModuleKind::Linear,           ModuleKind::GroupedLinear, ModuleKind::LayerNormLinear,
      ModuleKind::LayerNormMlp,     ModuleKind::GroupedMlp,    ModuleKind::Attention,
      ModuleKind::TransformerLayer, ModuleKind::MoeLayer,      ModuleKind::GroupedLinearOp};
  EXPECT_TRUE(are_even(parts(modules(Delay::Always, 3000), kind), kinds));
  kinds.push_back(ModuleKind::BasicLinearOp);
  EXPECT_TRUE(are_even(parts(modules(Delay::Never, 3000), kind), kinds));
}

TEST(SoundModule, IsOfEveryTypeButThatAGroupedOneHasNoFp32) {
  std::size_t grouped = 0;
  std::size_t plain = 0;
  std::array<std::size_t, 5> of_grouped{};
  std::array<std::size_t, 5> of_plain{};
  // No type but a recipe that quantizes, five of the six, is bf16.
  constexpr double kQuantizedAlone = 1.0 / 3 * 1 / 3 * 5 / 6;
  for (const Module& module : modules(Delay::Never, 6000)) {
    const std::size_t type = module.dtype ? static_cast<std::size_t>(*module.dtype) : 4;
    ++(is_grouped(*module.kind) ? grouped : plain);
    ++(is_grouped(*module.kind) ? of_grouped : of_plain)[type];
  }
  for (const DataType type : {DataType::Bf16, DataType::Fp16, DataType::Fp32}) {
    const auto at = static_cast<std::size_t>(type);
    const bool bf16 = type == DataType::Bf16;
    EXPECT_TRUE(is_share(of_plain[at], plain, 2.0 / 9 + (bf16 ? kQuantizedAlone : 0)));
    if (type == DataType::Fp32) continue;
    EXPECT_TRUE(is_share(of_grouped[at], grouped, bf16 ? 4.0 / 9 + kQuantizedAlone : 2.0 / 9));
  }
  EXPECT_EQ(of_grouped[static_cast<std::size_t>(DataType::Fp32)], 0u);
  EXPECT_TRUE(is_share(of_plain[4], plain, 1.0 / 3 - kQuantizedAlone));
  EXPECT_TRUE(is_share(of_grouped[4], grouped, 1.0 / 3 - kQuantizedAlone));
}

TEST(SoundModule, HasItsFlagsAsOftenAsItClaims) {
  for (const Delay delay : {Delay::Never, Delay::Always}) {
    const bool delays = delay == Delay::Always;
    const auto all = modules(delay, 6000);
    expect_share(all, &ModuleFlags::shared_weight, 1.0 / 4, always);
    expect_share(all, &ModuleFlags::save_original_input, 1.0 / 4, always);
    expect_share(all, &ModuleFlags::gathered_input, 1.0 / 4, always);
    expect_share(all, &ModuleFlags::grad_added_to_main_grad, 1.0 / 2,
                 [](const Module& module) { return module.flags.fuse_wgrad_accumulation; });
    expect_share(all, &ModuleFlags::zero_out_wgrad, 1.0 / 4, grows_main_grad);
    expect_share(all, &ModuleFlags::input_requires_grad, 1.0 / 2, grows_main_grad);
    expect_share(all, &ModuleFlags::bias, 1.0 / 2,
                 [&](const Module& module) { return !delays || operation(module); });
    expect_share(all, &ModuleFlags::single_weight, 1.0 / 2,
                 [](const Module& module) { return is_grouped(*module.kind); });
    expect_share(all, &ModuleFlags::clone_param_grads, 1.0 / 2, [](const Module& module) {
      const bool norm = has_norm(*module.kind) || is_made_of_modules(*module.kind);
      return grows_main_grad(module) ||
             (module.flags.fuse_wgrad_accumulation && !module.flags.bias && !norm);
    });
    for (const Module& module : all) EXPECT_EQ(module.flags.delay_wgrad, delays);
  }
  expect_share(modules(Delay::Never, 1000), &ModuleFlags::fuse_wgrad_accumulation, 1.0 / 2, always);
  expect_share(modules(Delay::Always, 1000), &ModuleFlags::wgrad_hooks, 1.0 / 2,
               [](const Module& module) { return !operation(module); });
  for (const Module& module : modules(Delay::Always, 1000))
    EXPECT_TRUE(module.flags.fuse_wgrad_accumulation);
  for (const Module& module : modules(Delay::Never, 1000)) EXPECT_FALSE(module.flags.wgrad_hooks);
}

TEST(SoundModule, CountsItsBucketsAndCalls) {
  auto all = modules(Delay::Never, 1000);
  EXPECT_TRUE(are_even(parts(all, [](const Module& module) { return module.calls; }),
                       numbers<std::int64_t>(1, 2)));
  for (const Module& module : modules(Delay::Always, 100)) EXPECT_EQ(module.calls, 1);
  std::erase_if(all, [](const Module& module) {
    return is_made_of_modules(*module.kind) && module.grad_buckets == 1;
  });
  EXPECT_TRUE(are_even(parts(all, [](const Module& module) { return module.grad_buckets; }),
                       numbers<std::int64_t>(1, 3)));
}

// 1 to 64 groups: the lower half of them as often as the upper.
TEST(SoundModule, HasAShapeWhereItIsGrouped) {
  const auto all = grouped(Delay::Never, 6000);
  EXPECT_TRUE(are_even(parts(all, [](const Module& module) { return *module.shape.hidden; }),
                       numbers<std::int64_t>(1, 8)));
  EXPECT_TRUE(are_even(parts(all, [](const Module& module) { return *module.shape.ffn; }),
                       numbers<std::int64_t>(1, 8)));
  const auto groups = parts(all, [](const Module& module) { return *module.shape.groups; });
  EXPECT_EQ(*std::min_element(groups.begin(), groups.end()), 1);
  EXPECT_EQ(*std::max_element(groups.begin(), groups.end()), 64);
  EXPECT_TRUE(is_share(count_of(groups, [](std::int64_t count) { return count <= 32; }),
                       groups.size(), 1.0 / 2));
  EXPECT_TRUE(are_even(parts(all, [](const Module& module) { return *module.splits; }),
                       {Splits::Device, Splits::Input}));
  for (const Module& module : modules(Delay::Never, 300)) {
    EXPECT_EQ(module.shape != ModuleShape{}, is_grouped(*module.kind));
  }
}

TEST(SoundModule, HasAContiguousMainGradWithASingleWeight) {
  std::vector<std::size_t> dimensions;
  for (const Module& module : grouped(Delay::Never, 3000)) {
    EXPECT_EQ(module.main_grad.has_value(), module.flags.single_weight);
    if (!module.main_grad) continue;
    EXPECT_EQ(module.main_grad->strides.back(), 1);
    if (module.kind == ModuleKind::GroupedMlp) {
      EXPECT_EQ(module.main_grad->shape.size(), 3u);
    } else {
      dimensions.push_back(module.main_grad->shape.size());
    }
  }
  EXPECT_TRUE(are_even(dimensions, {1, 3}));
}

}  // namespace
}  // namespace capo::testing
