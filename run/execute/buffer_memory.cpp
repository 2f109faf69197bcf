#include "run/execute/buffer_memory.h"

#include "core/base/index.h"
#include "run/execute/step_outputs.h"
#include "run/modules/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace capo::run {

namespace {

// The names are in the order of Region.
constexpr std::array<std::string_view, kRegions.size()> kRegionNames{
    "static inputs", "incoming gradients", "pool", "scratch of weight gradients", "receives",
    "copies"};

}  // namespace

PlannedMemory::PlannedMemory(Engine& engine, const BufferTable& table, const Plan& plan,
                             Poison poison, std::optional<RankRange> only)
    : engine_(engine),
      table_(table),
      plan_(plan),
      poison_(poison),
      extents_(table.ranks()),
      held_(table.ranks()),
      taken_by_(table.size(), kNoBuffer) {
  for (BufferId buffer = 0; buffer < table.size(); ++buffer) {
    if (only && !only->contains(table.at(buffer).rank)) continue;
    reach(buffer, plan.address[buffer]);
    reach(buffer, plan.made_at(buffer));
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

// A region is as large as its buffers reach.
void PlannedMemory::reach(BufferId buffer, std::int64_t address) {
  if (address == kNowhere) return;
  const Buffer of = table_.at(buffer);
  Extent& extent = extents_[RankId(of.rank).index()][as_index(region_of(address))];
  extent.bytes = std::max(extent.bytes, offset_of(address) + table_.bytes(of));
}

std::byte* PlannedMemory::place(BufferId buffer, std::int64_t address) const {
  if (address == kNowhere) return nullptr;
  return extent(table_.at(buffer).rank, region_of(address)).begin + offset_of(address);
}

std::byte* PlannedMemory::at(BufferId buffer) {
  return place(buffer, plan_.address[buffer]);
}

std::byte* PlannedMemory::made_at(BufferId buffer) {
  return place(buffer, plan_.made_at(buffer));
}

void PlannedMemory::written(BufferId buffer) {
  const std::int64_t begin = plan_.address[buffer];
  if (begin == kNowhere) return;
  if (plan_.tensor_of(buffer) != buffer) {
    ++readable_.try_emplace(plan_.tensor_of(buffer), 1).first->second;
    return;
  }
  take_over(buffer, plan_.made_at(buffer));
  take_over(buffer, begin);
  held_[RankId(table_.at(buffer).rank).index()].emplace(begin, buffer);
  taken_by_[buffer] = kNoBuffer;
}

// A buffer that is made elsewhere and copied leaves nobody's bytes there.
void PlannedMemory::take_over(BufferId taker, std::int64_t begin) {
  if (begin == kNowhere) return;
  const Buffer of = table_.at(taker);
  const std::int64_t end = begin + table_.bytes(of);
  auto& held = held_[RankId(of.rank).index()];
  auto at = held.lower_bound(begin);
  if (at != held.begin()) {
    const auto before = std::prev(at);
    if (before->first + table_.bytes(table_.at(before->second)) > begin) at = before;
  }
  while (at != held.end() && at->first < end) {
    taken_by_[at->second] = taker;
    at = held.erase(at);
  }
}

void PlannedMemory::released(BufferId buffer, StreamId) {
  const BufferId tensor = plan_.tensor_of(buffer);
  const auto others = readable_.find(tensor);
  if (others != readable_.end() && --others->second > 0) return;
  if (others != readable_.end()) readable_.erase(others);
  over_.push_back(tensor);
}

void PlannedMemory::op_done(StreamId stream) {
  for (const BufferId buffer : over_) {
    if (poison_ == Poison::Off || plan_.address[buffer] == kNowhere) continue;
    if (taken_by_[buffer] != kNoBuffer) continue;
    engine_.launch(stream, Fill{.bytes = poisoned(buffer), .value = kPoison, .to = at(buffer)});
  }
  over_.clear();
}

// Sizes of groups that lie behind the rows of an input stay: a late reader would follow poison.
std::int64_t PlannedMemory::poisoned(BufferId buffer) const {
  const Buffer of = table_.at(buffer);
  const std::int64_t bytes = table_.bytes(of);
  if (of.kind != BufferKind::StaticInput) return bytes;
  const Module* const module = table_.facts(of.rank, of.chunk, of.layer).module;
  const bool has_sizes = module != nullptr && module->splits == Splits::Input && module->dtype &&
                         module->shape.tokens && module->shape.hidden;
  if (!has_sizes) return bytes;
  const std::int64_t rows =
      *module->shape.tokens * *module->shape.hidden * bytes_of(*module->dtype);
  return std::min(bytes, rows);
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
  const auto rank = RankId(of.rank).index();
  alive_[rank] += bytes;
  peak_[rank] = std::max(peak_[rank], alive_[rank]);
  if (poison_ == Poison::On) {
    engine_.launch(0, Fill{.bytes = bytes, .value = kPoison, .to = memory_[buffer]});
  }
}

void EagerMemory::released(BufferId buffer, StreamId) {
  if (memory_[buffer] == nullptr) return;
  const Buffer of = table_.at(buffer);
  alive_[RankId(of.rank).index()] -= table_.bytes(of);
  engine_.release(memory_[buffer]);
  memory_[buffer] = nullptr;
}

void EagerMemory::op_done(StreamId) {
}

LateReads::LateReads(Engine& engine, const BufferTable& table)
    : engine_(engine),
      table_(table),
      copies_(table.size(), nullptr),
      compare_with_(table.size()),
      flag_bytes_(static_cast<std::int64_t>(table.size() * kReaders * sizeof(std::int32_t))) {
  flags_ = engine.allocate(flag_bytes_, "flags of late reads");
  // They are allocated at once, since a step that is being captured allocates nothing.
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
  compare_with_[buffer] = {.memory = copies_[buffer], .bytes = bytes};
}

void LateReads::keep_expected(BufferId buffer, const std::byte* expected, std::int64_t bytes) {
  compare_with_[buffer] = {.memory = expected, .bytes = bytes};
}

void LateReads::look(BufferId buffer, const std::byte* place, Reader reader, StreamId stream) {
  const Held& held = compare_with_[buffer];
  if (place == nullptr || held.memory == nullptr) return;
  const std::size_t flag = (buffer * kReaders + as_index(reader)) * sizeof(std::int32_t);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): memory of whole numbers
  auto* differs = reinterpret_cast<std::int32_t*>(flags_ + flag);
  engine_.launch(stream, Differ{.rows = {.count = 1},
                                .row_bytes = held.bytes,
                                .a = place,
                                .b = held.memory,
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

bool LateReads::same_bits(BufferId a, BufferId b) const {
  if (table_.bytes(table_.at(a)) != table_.bytes(table_.at(b))) return false;
  const Held& of_a = compare_with_[a];
  const Held& of_b = compare_with_[b];
  if (of_a.memory == nullptr || of_b.memory == nullptr) return false;
  const auto held = [&](const Held& of) {
    std::vector<std::byte> bytes(as_index(std::min(of_a.bytes, of_b.bytes)));
    engine_.read(bytes.data(), of.memory, std::ssize(bytes));
    return bytes;
  };
  return held(of_a) == held(of_b);
}

}  // namespace capo::run
