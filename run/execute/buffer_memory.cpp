#include "run/execute/buffer_memory.h"

#include "run/execute/step_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace capo::run {

namespace {

// In the order of Region.
constexpr std::array<std::string_view, 4> kRegionNames{"static inputs", "incoming gradients",
                                                       "pool", "scratch of weight gradients"};

}  // namespace

PlannedMemory::PlannedMemory(Engine& engine, const BufferTable& table, const Plan& plan,
                             Poison poison)
    : engine_(engine),
      table_(table),
      plan_(plan),
      poison_(poison),
      extents_(table.ranks()),
      held_(table.ranks()),
      taken_by_(table.size(), kNoBuffer) {
  for (BufferId buffer = 0; buffer < table.size(); ++buffer) {
    const std::int64_t address = plan.address[buffer];
    if (address == kNowhere) continue;
    const Buffer of = table.at(buffer);
    Extent& extent =
        extents_[static_cast<std::size_t>(of.rank)][static_cast<std::size_t>(region_of(address))];
    extent.bytes = std::max(extent.bytes, offset_of(address) + table.bytes(of));
  }
  for (std::size_t rank = 0; rank < extents_.size(); ++rank) {
    for (std::size_t region = 0; region < extents_[rank].size(); ++region) {
      Extent& extent = extents_[rank][region];
      if (extent.bytes == 0) continue;
      extent.begin = engine.allocate(
          extent.bytes, fmt::format("planned buffers, {} of rank {}", kRegionNames[region], rank));
      allocated_ += extent.bytes;
      engine.launch(0, Fill{.bytes = extent.bytes, .value = kPoison, .to = extent.begin});
    }
  }
}

std::byte* PlannedMemory::at(BufferId buffer) {
  const std::int64_t address = plan_.address[buffer];
  if (address == kNowhere) return nullptr;
  return extent(table_.at(buffer).rank, region_of(address)).begin + offset_of(address);
}

void PlannedMemory::written(BufferId buffer) {
  const std::int64_t begin = plan_.address[buffer];
  if (begin == kNowhere) return;
  const Buffer of = table_.at(buffer);
  const std::int64_t end = begin + table_.bytes(of);
  auto& held = held_[static_cast<std::size_t>(of.rank)];
  auto at = held.lower_bound(begin);
  if (at != held.begin()) {
    const auto before = std::prev(at);
    if (before->first + table_.bytes(table_.at(before->second)) > begin) at = before;
  }
  while (at != held.end() && at->first < end) {
    taken_by_[at->second] = buffer;
    at = held.erase(at);
  }
  held.emplace(begin, buffer);
  taken_by_[buffer] = kNoBuffer;
}

void PlannedMemory::released(BufferId buffer, StreamId) {
  over_.push_back(buffer);
}

void PlannedMemory::op_done(StreamId stream) {
  for (const BufferId buffer : over_) {
    if (poison_ == Poison::Off || plan_.address[buffer] == kNowhere) continue;
    if (taken_by_[buffer] != kNoBuffer) continue;
    const std::int64_t bytes = table_.bytes(table_.at(buffer));
    engine_.launch(stream, Fill{.bytes = bytes, .value = kPoison, .to = at(buffer)});
  }
  over_.clear();
}

EagerMemory::EagerMemory(Engine& engine, const BufferTable& table, Poison poison)
    : engine_(engine),
      table_(table),
      poison_(poison),
      memory_(table.size(), nullptr),
      alive_(table.ranks(), 0),
      peak_(table.ranks(), 0) {
}

void EagerMemory::written(BufferId buffer) {
  const Buffer of = table_.at(buffer);
  const std::int64_t bytes = table_.bytes(of);
  if (bytes == 0) return;
  memory_[buffer] = engine_.allocate(bytes, "eager buffers");
  const auto rank = static_cast<std::size_t>(of.rank);
  alive_[rank] += bytes;
  peak_[rank] = std::max(peak_[rank], alive_[rank]);
  if (poison_ == Poison::On) {
    engine_.launch(0, Fill{.bytes = bytes, .value = kPoison, .to = memory_[buffer]});
  }
}

void EagerMemory::released(BufferId buffer, StreamId) {
  if (memory_[buffer] == nullptr) return;
  const Buffer of = table_.at(buffer);
  alive_[static_cast<std::size_t>(of.rank)] -= table_.bytes(of);
  engine_.release(memory_[buffer]);
  memory_[buffer] = nullptr;
}

void EagerMemory::op_done(StreamId) {
}

}  // namespace capo::run
