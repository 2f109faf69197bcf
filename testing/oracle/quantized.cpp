#include "testing/oracle/quantized.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace capo::oracle {

std::vector<int> stale_forwards(const std::vector<KeptForward>& replayed) {
  std::set<int> renewed_some_time;
  for (const KeptForward& forward : replayed) {
    if (forward.microbatch == 0) renewed_some_time.insert(forward.chunk);
  }
  std::map<int, int> version;  // by chunk: 0 is the weight of the step before
  std::vector<int> stale;
  for (std::size_t at = 0; at < replayed.size(); ++at) {
    const auto [chunk, microbatch] = replayed[at];
    if (microbatch == 0) version[chunk] = 1;
    if (version[chunk] == 0 && renewed_some_time.count(chunk) > 0)
      stale.push_back(static_cast<int>(at));
  }
  return stale;
}

std::optional<int> parting_of_magnitudes(const std::vector<std::string>& members) {
  for (std::size_t other = 1; other < members.size(); ++other) {
    const std::string& one = members[0];
    const std::string& two = members[other];
    for (std::size_t k = 0; k < std::max(one.size(), two.size()); ++k) {
      const bool alike = k < one.size() && k < two.size() && one[k] == two[k];
      if (!alike) return static_cast<int>(k);
    }
  }
  return std::nullopt;
}

namespace {

using Module = QuantizedModule;
using Device = QuantizingDevice;

constexpr int kNever = 1 << 30;

// The first version of cuBLASLt under which one product of all groups takes their sizes from a
// device of this kind.
int grouped_product_since(Module::Recipe recipe, Device::Kind kind) {
  if (recipe == Module::Delayed) return kNever;
  if (kind == Device::Blackwell) return recipe == Module::Block ? kNever : 1303;
  if (recipe == Module::None) return 1304;
  if (recipe == Module::Current) return 1305;
  if (recipe == Module::Block) return 1306;
  return kNever;
}

bool is_run_by(Device::Kind kind, Module::Recipe recipe) {
  const bool of_blackwell = recipe == Module::Mxfp8 || recipe == Module::Nvfp4;
  return kind == Device::Blackwell || !of_blackwell;
}

}  // namespace

std::set<QuantizingTrouble> troubles_of(const QuantizedModule& module,
                                        const QuantizingDevice& device) {
  std::set<QuantizingTrouble> troubles;
  const bool quantizes = module.recipe != Module::None;
  const bool in_backward = quantizes && !module.plain_backward;
  if (in_backward && module.dense_mlp && module.bias && module.delays_weights && module.trained) {
    troubles.insert(QuantizingTrouble::BiasMissed);
  }
  if (quantizes && module.python_says_requantize && module.trained) {
    troubles.insert(QuantizingTrouble::WeightNeverRenewed);
  }
  bool somewhere = false;            // a device runs it
  bool somewhere_in_groups = false;  // and a device multiplies all groups at once
  for (const Device::Kind kind : {Device::Hopper, Device::Blackwell}) {
    if (device.kind != Device::Any && device.kind != kind) continue;
    somewhere = somewhere || is_run_by(kind, module.recipe);
    const int newest = device.cublaslt == 0 ? kNever - 1 : device.cublaslt;
    const bool overridden = quantizes && module.plain_backward && !module.operation;
    const bool at_once = !overridden && newest >= grouped_product_since(module.recipe, kind);
    somewhere_in_groups = somewhere_in_groups || at_once;
  }
  if (!somewhere) troubles.insert(QuantizingTrouble::RecipeRefused);
  if (somewhere && module.groups && module.sizes_on_device && !module.full_precision &&
      !somewhere_in_groups) {
    troubles.insert(QuantizingTrouble::SizesFetched);
  }
  return troubles;
}

}  // namespace capo::oracle
