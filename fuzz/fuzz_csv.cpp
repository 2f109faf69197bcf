// A PyTorch table with declarations: `MSPC` and the table, for microbatches, stages, the number of
// stages placed round robin, and whether it holds transfers. "00000F0,0B0" declares nothing.

#include "fuzz/bytes.h"
#include "fuzz/laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  capo::fuzz::Bytes bytes(data, size);
  capo::TorchDeclarations torch;
  if (const std::size_t microbatches = bytes.below(6); microbatches > 0) {
    torch.microbatches = static_cast<std::int32_t>(microbatches);
  }
  if (const std::size_t stages = bytes.below(6); stages > 0) {
    torch.stages = static_cast<std::int32_t>(stages);
  }
  if (const std::size_t placed = bytes.below(6); placed > 0) {
    torch.stage_to_rank.emplace();
    for (std::size_t stage = 0; stage + 1 < placed; ++stage) {
      torch.stage_to_rank->push_back(static_cast<std::int32_t>(stage % 2));
    }
  }
  const std::size_t communicates = bytes.below(3);
  if (communicates > 0) torch.communicates = communicates == 2;
  capo::fuzz::examine(bytes.rest(), {.form = capo::TextForm::TorchCsv, .torch = torch}, {});
  return 0;
}
