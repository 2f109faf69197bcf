#include "sim/device_costs.h"

#include "core/model/inventory.h"
#include "core/text/number.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace capo {

namespace {

constexpr std::array<DeviceFigures, 3> kDevices{{
    {.name = "h100",
     .source = "H100 SXM: NVIDIA H100 data sheet, dense; NVLink 900 GB/s both ways; one 400 Gb/s "
               "adapter a device as in DGX H100",
     .bf16_flops = 989.4e12,
     .fp8_flops = 1978.9e12,
     .fp32_flops = 494.7e12,
     .memory = 3.35e12,
     .links = 450e9,
     .network = 50e9},
    {.name = "h200",
     .source = "H200 SXM: NVIDIA H200 data sheet, dense; NVLink 900 GB/s both ways; one 400 Gb/s "
               "adapter a device as in DGX H200",
     .bf16_flops = 989.4e12,
     .fp8_flops = 1978.9e12,
     .fp32_flops = 494.7e12,
     .memory = 4.8e12,
     .links = 450e9,
     .network = 50e9},
    {.name = "b200",
     .source = "B200: NVIDIA HGX B200 data sheet, dense, an eighth of it; NVLink 1.8 TB/s both "
               "ways; one 400 Gb/s adapter a device as in DGX B200",
     .bf16_flops = 2250e12,
     .fp8_flops = 4500e12,
     .fp32_flops = 1125e12,
     .memory = 7.7e12,
     .links = 900e9,
     .network = 50e9},
}};

double number(std::int64_t value) {
  return static_cast<double>(value);
}

// "2.09 TFLOP", "989 TFLOP/s", "1.05 GB".
std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes{"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.{}f} {}{}", value,
                     value < 10    ? 2
                     : value < 100 ? 1
                                   : 0,
                     kPrefixes[prefix], unit);
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

// A sum of times, each with its reason.
class Account {
 public:
  void add(std::string_view what, double amount, std::string_view unit, double share, double rate) {
    add(what, amount / (share * rate), amount, unit, share, rate);
  }
  void add(std::string_view what, double seconds, double amount, std::string_view unit,
           double share, double rate) {
    if (seconds <= 0) return;
    seconds_ += seconds;
    if (!why_.empty()) why_ += ", ";
    why_ += fmt::format("{} {} ({} at {:g} of {}/s)", what, milliseconds(seconds),
                        with_prefix(amount, unit), share, with_prefix(rate, unit));
  }
  void add(const Account& other) {
    if (other.seconds_ <= 0) return;
    seconds_ += other.seconds_;
    if (!why_.empty()) why_ += ", ";
    why_ += other.why_;
  }

  [[nodiscard]] double microseconds() const { return seconds_ * 1e6; }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  double seconds_ = 0;
  std::string why_;
};

struct ModuleTimes {
  Account forward;
  Account backward;
  Account weight;
  Account dispatch;  ///< a combine takes as long
  // Microseconds of forward and backward.
  double quantize_forward = 0;
  double quantize_backward = 0;
};

// The types of a module that has one.
LayerTypes types_of(const Module& module) {
  return {*module.dtype, recipe_of(module)};
}

class Pricer {
 public:
  Pricer(const DeviceFigures& device, const Efficiency& efficiency)
      : device_(device), share_(efficiency) {}

  [[nodiscard]] ModuleTimes times(const ModelConfiguration& of, const Inventory& inventory,
                                  const Module& module) const {
    const LayerTypes types = types_of(module);
    ModuleTimes times;
    quantization_of_forward(times.forward, inventory, module);
    times.quantize_forward = times.forward.microseconds();
    times.forward.add(products(inventory, types));
    attention(times.forward, inventory, 1);
    kept_once(times.forward, of, inventory);
    gathered(times.forward, of, inventory);
    Account quantization;
    quantization_of_backward(quantization, inventory, module);
    times.quantize_backward = quantization.microseconds();
    if (of.recompute == Recompute::Full) {
      times.backward.add(times.forward);
      times.quantize_backward += times.quantize_forward;
    }
    times.backward.add(quantization);
    times.backward.add(products(inventory, types));
    attention(times.backward, inventory, 2.5);
    kept_once(times.backward, of, inventory);
    gathered(times.backward, of, inventory);
    times.weight.add(products(inventory, types));
    constexpr double kReadAndWritten = 2 * 4;
    memory(times.weight, "gradients", number(inventory.parameters()) * kReadAndWritten);
    dispatched(times.dispatch, of, inventory);
    return times;
  }

  [[nodiscard]] double message_bandwidth() const { return share_.links * device_.network; }

 private:
  // Products of four bits are taken to be as fast as those of eight.
  [[nodiscard]] double flops(const LayerTypes& types) const {
    if (quantizes(types.recipe)) return device_.fp8_flops;
    return types.between == DataType::Fp32 ? device_.fp32_flops : device_.bf16_flops;
  }

  // A pass that quantizes `rows` of `columns` reads them, twice where the largest magnitude of all
  // has to be known before, and writes copies.
  static double quantized(const LayerTypes& types, std::int64_t rows, std::int64_t columns,
                          bool both_ways) {
    QuantizedCopy copy{.rows = rows, .columns = columns, .lines = CopyLines::Rows};
    double copies = number(copy_bytes(types.recipe, copy));
    copy.lines = CopyLines::Columns;
    if (both_ways) copies += number(copy_bytes(types.recipe, copy));
    const double reads = types.recipe == Recipe::Current ? 2 : 1;
    return reads * number(rows) * number(columns) * number(element_bytes(types.between)) + copies;
  }

  // The copy of X that is kept for W counts with what a layer keeps.
  void quantization_of_forward(Account& account, const Inventory& inventory,
                               const Module& module) const {
    const LayerTypes types = types_of(module);
    if (!quantizes(types.recipe)) return;
    const bool backward = !module.flags.high_precision_backward;
    double bytes = 0;
    for (const LayerProduct& product : inventory.products) {
      if (!is_quantized(product)) continue;
      bytes += quantized(types, product.rows, product.in, false);
      if (!module.weight_cache) bytes += weight_bytes(inventory, product);
    }
    if (!module.weight_cache) {
      bytes += number(inventory.quantized_weights(
          types.recipe, backward ? WeightCopies::Both : WeightCopies::Forward));
    }
    memory(account, "quantization", bytes);
  }

  void quantization_of_backward(Account& account, const Inventory& inventory,
                                const Module& module) const {
    const LayerTypes types = types_of(module);
    if (!quantizes(types.recipe) || module.flags.high_precision_backward) return;
    double bytes = 0;
    for (const LayerProduct& product : inventory.products) {
      if (is_quantized(product)) bytes += quantized(types, product.rows, product.out, true);
    }
    memory(account, "quantization", bytes);
  }

  // Products wait for whatever takes longer, their numbers or their bytes.
  [[nodiscard]] Account products(const Inventory& inventory, const LayerTypes& types) const {
    double all = 0;
    double seconds = 0;
    for (const LayerProduct& product : inventory.products) {
      const double work = 2 * number(product.rows) * number(product.in) * number(product.out);
      const double bytes = number(operand_bytes(types, product.rows, product.in)) +
                           number(operand_bytes(types, product.rows, product.out));
      all += work;
      seconds +=
          std::max(work / (share_.products * flops(types)),
                   (bytes + weight_bytes(inventory, product)) / (share_.memory * device_.memory));
    }
    Account account;
    account.add("products", seconds, all, "FLOP", share_.products, flops(types));
    return account;
  }

  static double weight_bytes(const Inventory& inventory, const LayerProduct& product) {
    const auto found = std::find_if(
        inventory.tensors.begin(), inventory.tensors.end(), [&](const LayerTensor& tensor) {
          return tensor.use == TensorUse::Parameter && tensor.name == product.name;
        });
    return found == inventory.tensors.end() ? 0 : number(found->bytes());
  }

  void attention(Account& account, const Inventory& inventory, double times) const {
    if (!inventory.attention) return;
    const CoreAttention& core = *inventory.attention;
    const double causal = 0.5;
    const double work = causal * 2 * number(core.queries) * number(core.keys) * number(core.heads) *
                        number(core.qk_size + core.value_size);
    account.add("attention", times * work, "FLOP", share_.attention, device_.bf16_flops);
  }

  // Recomputed tensors are left by the backward, and written and read all the same.
  void kept_once(Account& account, const ModelConfiguration& of, const Inventory& inventory) const {
    const bool again = of.recompute == Recompute::Full;
    const double kept = number(inventory.bytes(again ? TensorUse::Left : TensorUse::Kept));
    const double ends =
        number(inventory.bytes(TensorUse::Input)) + number(inventory.bytes(TensorUse::Output));
    memory(account, "memory", 2 * kept + ends);
  }

  void memory(Account& account, std::string_view what, double bytes) const {
    account.add(what, bytes, "B", share_.memory, device_.memory);
  }

  void gathered(Account& account, const ModelConfiguration& of, const Inventory& inventory) const {
    const bool inside = of.tensor_parallel <= device_.node;
    account.add("tensor parallelism", number(inventory.gathered_bytes), "B", share_.links,
                inside ? device_.links : device_.network);
  }

  // Ranks of a node come first in a group, so that a node's share of the experts is node / group.
  void dispatched(Account& account, const ModelConfiguration& of,
                  const Inventory& inventory) const {
    const double group = number(of.expert_parallel);
    const double inside = std::min(group, number(device_.node));
    const double bytes = number(inventory.dispatched_bytes);
    const double near = bytes * (inside - 1) / group;
    const double far = bytes * (group - inside) / group;
    if (far / device_.network > near / device_.links) {
      account.add("network", far, "B", share_.links, device_.network);
    } else {
      account.add("links", near, "B", share_.links, device_.links);
    }
  }

  const DeviceFigures& device_;
  const Efficiency& share_;
};

using Origins = std::vector<CostOrigin>;

void state(std::optional<double>& cost, const Account& account, const Module& module,
           std::string_view task, Origins& origins) {
  if (cost) {
    origins.push_back({module.name, task, *cost, "the model file"});
    return;
  }
  cost = account.microseconds();
  origins.push_back({module.name, task, *cost, account.why()});
}

void state_all(Module& module, const ModuleTimes& times, bool exchanges, Origins& origins) {
  ModuleCost& cost = module.cost;
  if (!cost.forward && times.quantize_forward > 0) cost.quantize_forward = times.quantize_forward;
  if (!cost.backward && !cost.whole && times.quantize_backward > 0) {
    cost.quantize_backward = times.quantize_backward;
  }
  state(cost.forward, times.forward, module, "forward", origins);
  state(cost.backward, times.backward, module, "backward", origins);
  state(cost.weight, times.weight, module, "weight", origins);
  if (!exchanges) return;
  state(cost.dispatch, times.dispatch, module, "dispatch", origins);
  state(cost.combine, times.dispatch, module, "combine", origins);
}

bool is_priced(const Module& module) {
  return module.cost.forward && module.cost.backward && module.cost.weight;
}

Result<Inventory, std::string> inventory_to_price(const Model& model, const Module& module) {
  const auto lacks = [&](std::string_view member) {
    return fmt::format("module `{}` has no `{}`, so its times do not follow", module.name, member);
  };
  if (!module.kind) return lacks("kind");
  if (!module.lacks.empty()) return lacks("configuration." + module.lacks);
  if (!module.dtype) return lacks("dtype");
  if (module.derived == ModuleBytes{}) {
    return fmt::format(
        "module `{}` ({}) does not follow from the configuration, so it needs a "
        "`cost`",
        module.name, name_of(*module.kind));
  }
  const ModelConfiguration& of = *model.configuration;
  return inventory_of(of, *module.kind, module.mlp.value_or(usual_mlp(of, *module.kind)),
                      types_of(module));
}

void price_transfers(Model& model, const Pricer& pricer, Origins& origins) {
  TransferCost& transfer = model.transfer;
  if (transfer.bandwidth || transfer.latency) return;
  for (const Module& module : model.modules.list) {
    if (!transfer.bytes) transfer.bytes = module.derived.output;
  }
  if (!transfer.bytes) return;
  transfer.bandwidth = pricer.message_bandwidth() / 1e6;
  const double microseconds = number(*transfer.bytes) / *transfer.bandwidth;
  origins.push_back({"", "transfer", microseconds,
                     fmt::format("network ({} at {}/s, the share of it that is reached)",
                                 with_prefix(number(*transfer.bytes), "B"),
                                 with_prefix(pricer.message_bandwidth(), "B"))});
}

}  // namespace

std::span<const DeviceFigures> known_devices() {
  return kDevices;
}

Result<Efficiency, std::string> read_efficiency(std::string_view text) {
  Efficiency efficiency;
  const std::array<std::pair<std::string_view, double*>, 4> keys{
      {{"products", &efficiency.products},
       {"attention", &efficiency.attention},
       {"memory", &efficiency.memory},
       {"links", &efficiency.links}}};
  for (const NamedNumber& number : named_numbers(text)) {
    const auto* found = std::find_if(keys.begin(), keys.end(),
                                     [&](const auto& key) { return key.first == number.name; });
    if (found == keys.end() || !number.value || !(*number.value >= 0.001 && *number.value <= 1)) {
      return fmt::format(
          "`{}` is no share of a rate; write products, attention, memory or links with a number "
          "from 0.001 to 1, as in products=0.6,links=0.8",
          number.item);
    }
    *found->second = *number.value;
  }
  return efficiency;
}

Result<std::vector<CostOrigin>, std::string> price(Model& model, const DeviceFigures& device,
                                                   const Efficiency& efficiency) {
  if (!model.configuration) {
    return std::string(
        "there is no `configuration` that costs could follow from; "
        "`capo model --list` lists ready ones");
  }
  const Pricer pricer(device, efficiency);
  Origins origins;
  for (Module& module : model.modules.list) {
    if (is_priced(module)) {
      state_all(module, {}, module.cost.dispatch && module.cost.combine, origins);
      continue;
    }
    const auto inventory = inventory_to_price(model, module);
    if (!inventory) return inventory.error();
    const ModuleTimes times = pricer.times(*model.configuration, *inventory, module);
    state_all(module, times, inventory->dispatched_bytes > 0, origins);
  }
  price_transfers(model, pricer, origins);
  return origins;
}

}  // namespace capo
