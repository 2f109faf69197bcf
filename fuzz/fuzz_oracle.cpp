// A list of numbers out of a small alphabet: product and oracle say the same of it.
//
// The first bytes are the form of the layers, a count, need_wgrad, and the options; each further
// one is an entry: a to c forwards of chunks 1 to 3, A to C their backwards, x to z their weight
// gradients, and any other byte some number that is none of these. "0000aAx" is [1, -1, -1.5].
//
// Left out of the comparison of verdicts is what near_miss_lists_test.cpp lists: declarations that
// speak of fewer chunks than there are, and an empty list for no chunk.

#include "core/frameworks/te/from_te_list.h"
#include "core/frameworks/te/predict.h"
#include "core/rules/check.h"
#include "fuzz/bytes.h"
#include "fuzz/entries.h"
#include "fuzz/laws.h"
#include "testing/oracle_question.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace {

using capo::Layers;
using capo::TeEntry;

Layers layers_of(capo::fuzz::Bytes& bytes) {
  const std::size_t form = bytes.below(8);
  const auto count = static_cast<std::int64_t>(bytes.below(4));
  if (form == 1) return {.form = Layers::Form::Null};
  if (form == 2) return {.form = Layers::Form::Count, .values = {count}};
  if (form < 3) return {};
  return {.form = Layers::Form::List,
          .values = std::vector<std::int64_t>(form - 3, form == 7 ? count : 1)};
}

std::optional<std::vector<bool>> need_wgrad_of(capo::fuzz::Bytes& bytes) {
  const std::size_t choice = bytes.below(32);
  if (choice == 0) return std::nullopt;
  std::vector<bool> need;
  for (std::size_t bits = choice; bits > 1; bits /= 2) need.push_back(bits % 2 == 1);
  return need;
}

// The largest chunk that an entry or the layers name.
double chunks_named(const capo::TeList& list, const Layers& layers) {
  double largest =
      layers.form == Layers::Form::List ? static_cast<double>(layers.values.size()) : 0;
  for (const TeEntry& entry : list.entries) {
    if (std::isfinite(entry.value)) largest = std::max(largest, std::floor(std::abs(entry.value)));
  }
  return largest;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  capo::fuzz::Bytes bytes(data, std::min<std::size_t>(size, 64));
  const Layers layers = layers_of(bytes);
  const auto need_wgrad = need_wgrad_of(bytes);
  const std::size_t options = bytes.below(4);
  capo::TeList list;
  while (!bytes.empty()) list.entries.push_back(capo::fuzz::entry_of(bytes.below(256)));

  const auto order = capo::testing::oracle_order(list);
  const auto oracle_layers = capo::testing::oracle_layers(layers, list);
  const std::vector<bool> need = need_wgrad.value_or(std::vector<bool>{});

  const auto prediction = capo::te::predict(
      list, layers, need,
      {.reuse = options % 2 == 1,
       .empty_store = options >= 2 ? capo::te::EmptyStore::Silent : capo::te::EmptyStore::Raises});
  const auto answer = capo::oracle::transformer_engine({.order = order,
                                                        .layers = oracle_layers,
                                                        .need_wgrad = need,
                                                        .reuse = options % 2 == 1,
                                                        .silent_store = options >= 2});
  capo::fuzz::require(prediction.has_value(), "so few graphs are always simulated");
  capo::fuzz::require(capo::te::name_of(prediction->kind) == answer.kind,
                      "TE's error is the oracle's");
  const int position = prediction->entry ? static_cast<int>(*prediction->entry) : -1;
  capo::fuzz::require(position == answer.position, "so is the entry that raises it");

  capo::Input input{.form = capo::Form::TeList, .te_list = list};
  auto reading = capo::from_te_list(list, {.layers = layers, .need_wgrad = need_wgrad});
  input.schedule = std::move(reading.schedule);
  input.odd_entries = std::move(reading.odd_entries);
  const bool accepted = capo::check(input).verdict == capo::Verdict::Accepted;

  const bool too_few = need_wgrad && static_cast<double>(need.size()) < chunks_named(list, layers);
  if (list.entries.empty()) return 0;
  if (too_few) {
    capo::fuzz::require(!accepted, "a declaration that does not fit is a fault");
    return 0;
  }
  capo::fuzz::require(accepted == capo::oracle::sound(order, need_wgrad, oracle_layers),
                      "the verdict is the oracle's");
  return 0;
}
