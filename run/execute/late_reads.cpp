#include "run/execute/late_reads.h"

namespace capo::run {

LateReads::LateReads(Engine& engine, const BufferTable& table)
    : engine_(engine),
      table_(table),
      copies_(table.size(), nullptr),
      compare_with_(table.size(), nullptr),
      flag_bytes_(static_cast<std::int64_t>(table.size() * kReaders * sizeof(std::int32_t))) {
  flags_ = engine.allocate(flag_bytes_, "flags of late reads");
  // All at once, since a step that is being captured allocates nothing.
  for (BufferId buffer = 0; buffer < table.size(); ++buffer) {
    const std::int64_t bytes = table.bytes(table.at(buffer));
    if (bytes > 0) copies_[buffer] = engine.allocate(bytes, "copies of buffers");
  }
  reset();
}

void LateReads::reset() {
  engine_.launch(0, Fill{.bytes = flag_bytes_, .value = 0, .to = flags_});
}

void LateReads::keep(BufferId buffer, const std::byte* place, StreamId stream) {
  const std::int64_t bytes = table_.bytes(table_.at(buffer));
  if (place == nullptr || bytes == 0) return;
  engine_.launch(stream, Copy{.bytes = bytes, .from = place, .to = copies_[buffer]});
  compare_with_[buffer] = copies_[buffer];
}

void LateReads::keep_expected(BufferId buffer, const std::byte* expected) {
  compare_with_[buffer] = expected;
}

void LateReads::look(BufferId buffer, const std::byte* place, Reader reader, StreamId stream) {
  if (place == nullptr || compare_with_[buffer] == nullptr) return;
  const std::size_t flag =
      (buffer * kReaders + static_cast<std::size_t>(reader)) * sizeof(std::int32_t);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of whole numbers
  auto* differs = reinterpret_cast<std::int32_t*>(flags_ + flag);
  engine_.launch(stream, Differ{.rows = {.count = 1},
                                .row_bytes = table_.bytes(table_.at(buffer)),
                                .a = place,
                                .b = compare_with_[buffer],
                                .differs = differs});
}

std::vector<LateReads::Late> LateReads::seen() const {
  std::vector<std::int32_t> flags(table_.size() * kReaders);
  engine_.read(flags.data(), flags_, flag_bytes_);
  std::vector<Late> late;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == 0) continue;
    late.push_back({.buffer = static_cast<BufferId>(i / kReaders),
                    .reader = static_cast<Reader>(i % kReaders)});
  }
  return late;
}

}  // namespace capo::run
