// A TE list, as text with declarations: `LMDR` and the list, for the form of the layers,
// microbatches, who delays, and whether buffers are reused. "0000[1, -1]" declares nothing.

#include "fuzz/bytes.h"
#include "fuzz/laws.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  capo::fuzz::Bytes bytes(data, size);
  capo::TeDeclarations te;
  const std::size_t layers = bytes.below(8);
  if (layers == 1) te.layers.form = capo::Layers::Form::Null;
  if (layers == 2) te.layers = {.form = capo::Layers::Form::Count, .values = {1}};
  if (layers == 3) te.layers = {.form = capo::Layers::Form::Count, .values = {0}};
  if (layers >= 4) {
    te.layers.form = capo::Layers::Form::List;
    te.layers.values.assign(layers - 4, layers == 7 ? 2 : 1);
  }
  if (const std::size_t microbatches = bytes.below(5); microbatches > 0) {
    te.microbatches = static_cast<std::int32_t>(microbatches);
  }
  const std::size_t delays = bytes.below(10);
  if (delays == 1) te.delayed = {.all = true};
  if (delays == 2) te.delayed = {.chunks = {2}};
  if (delays >= 3) {
    te.need_wgrad.emplace();
    for (std::size_t c = 3; c < delays; ++c) te.need_wgrad->push_back((delays + c) % 3 != 0);
  }
  const std::size_t options = bytes.below(4);
  capo::fuzz::examine(
      bytes.rest(), {.form = capo::TextForm::TeList, .te = te},
      {.reuse = options % 2 == 1,
       .empty_store = options >= 2 ? capo::te::EmptyStore::Silent : capo::te::EmptyStore::Raises});
  return 0;
}
