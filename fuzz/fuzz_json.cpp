// Feeds the reader of JSON a text in any of its three forms.

#include "fuzz/bytes.h"
#include "fuzz/laws.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const capo::fuzz::Bytes bytes(data, size);
  capo::fuzz::examine(bytes.rest(), {.form = capo::TextForm::Json}, {.reuse = size % 2 == 1});
  return 0;
}
