#include "core/frameworks/te/captured.h"

#include "core/base/index.h"
#include "core/frameworks/te/predict.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::te {

namespace {

bool one_layer_each(const Layers& layers) {
  return std::all_of(layers.values.begin(), layers.values.end(),
                     [](std::int64_t count) { return count == 1; });
}

std::vector<bool> need_wgrad_of(const RankOrder& rank) {
  std::vector<bool> need;
  for (const Delay delay : resolved_delay(rank)) need.push_back(delay != Delay::Never);
  return need;
}

// Puts each entry where its graph's index lies.
void rename(std::vector<Entry>& order, std::int32_t chunks, std::int32_t microbatches) {
  std::vector<std::int32_t> forwards(as_index(chunks), 0);
  std::vector<std::int32_t> backwards(as_index(chunks), 0);
  for (Entry& entry : order) {
    const auto chunk = entry.chunk.index();
    const std::int32_t first = (entry.chunk - 1) * microbatches;
    std::int32_t index = 0;
    if (entry.kind == capo::Kind::Forward) {
      index = first + forwards[chunk]++;
    } else if (entry.kind == capo::Kind::Backward) {
      index = first + backwards[chunk]++;
    } else {
      index = first + backwards[chunk] - 1;
    }
    if (index < 0) index += chunks * microbatches;  // as Python counts
    entry.chunk = index / microbatches + 1;
    entry.microbatch = index % microbatches;
  }
}

}  // namespace

std::optional<Input> captured(const Input& input) {
  if (input.form != Form::TeList || input.schedule.ranks.size() != 1) return std::nullopt;
  const RankOrder& rank = input.schedule.ranks.front();
  if (!one_layer_each(rank.layers) || !input.odd_entries.empty()) return std::nullopt;
  const auto prediction = predict(input.te_list, rank.layers, need_wgrad_of(rank), {.reuse = true});
  if (!prediction || !prediction->accepts()) return std::nullopt;
  Input out = input;
  RankOrder& captures = out.schedule.ranks.front();
  std::int32_t chunks = 0;
  std::int32_t graphs = 0;
  for (const Entry& entry : captures.order) {
    chunks = std::max<std::int32_t>(chunks, entry.chunk);
    graphs += entry.kind == capo::Kind::Forward ? 1 : 0;
  }
  if (chunks == 0 || graphs % chunks != 0) return std::nullopt;
  rename(captures.order, chunks, graphs / chunks);
  captures.chunks = chunks;
  captures.chunks_declared = true;
  captures.delay.reset();
  out.schedule.naming = Naming::Named;
  out.schedule.microbatches = graphs / chunks;
  return out;
}

}  // namespace capo::te
