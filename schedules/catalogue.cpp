#include "schedules/catalogue.h"

#include "core/base/index.h"
#include "core/base/nearest.h"
#include "core/text/number.h"
#include "core/text/scan.h"
#include "schedules/generators.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace capo::schedules {

namespace {

// The zero-bubble papers let the input half give up a part of the memory; the papers on memory, and
// this catalogue by default, hold all of it until the weight half.
constexpr Memory kHalfAtBackward{.forward = 1, .backward = -0.5, .weight = -0.5};
constexpr Memory kAllAtWeight{.forward = 1, .backward = 0, .weight = -1};

/// Seq1F1B cuts a microbatch in so many segments if the request does not say.
constexpr std::int32_t kSegments = 2;

/// The settings that a search looks at.
constexpr std::string_view kCostsAndMemory = "costs, memory";

/// A name taken apart: its family and the number in it.
struct Name {
  std::string_view family;
  std::optional<double> number;  ///< 1.5 of zb-1.5p, 8 of gis-g8
};

struct Family {
  Entry entry;
  std::int32_t chunks;  ///< the default of a request
  Memory memory;
  std::function<Generated(const Setting&, std::optional<std::int32_t> group)> make;
};

Generated interleaved_zero_bubble(const Setting& setting) {
  return torch_table(TorchClass::InterleavedZeroBubble, {.ranks = setting.ranks,
                                                         .stages_per_rank = setting.chunks,
                                                         .microbatches = setting.microbatches});
}

template <typename Generator>
auto alone(Generator generator) {
  return [generator](const Setting& setting, std::optional<std::int32_t>) {
    return generator(setting);
  };
}

const std::vector<Family>& families() {
  using enum Topology;
  static const std::vector<Family> kFamilies{
      {{"gpipe", "all forwards, then all backwards", Loop, "1", ""}, 1, kAllAtWeight, alone(gpipe)},
      {{"1f1b", "one forward, one backward", Loop, "1", ""}, 1, kAllAtWeight, alone(one_f_one_b)},
      {{"1f1b-interleaved", "1F1B over several chunks a rank; Megatron-LM's, with its groups", Loop,
        "any", "group"},
       2,
       kAllAtWeight,
       [](const Setting& setting, std::optional<std::int32_t> group) {
         return interleaved_one_f_one_b(setting, group);
       }},
      {{"seq1f1b", "1F1B on segments, --group of each microbatch (2), numbered like microbatches",
        Loop, "1", "group"},
       1,
       kAllAtWeight,
       [](const Setting& setting, std::optional<std::int32_t> group) {
         return seq_one_f_one_b(setting, group.value_or(kSegments));
       }},
      {{"1f1b-v", "1F1B on a V", V, "2", ""}, 2, kAllAtWeight, alone(one_f_one_b_v)},
      {{"looped-bfs", "breadth first over the chunks", Loop, "any", ""},
       2,
       kAllAtWeight,
       alone(looped_bfs)},
      {{"gis", "group-interleaved: less memory than 1f1b-interleaved", Loop, "any", "group"},
       2,
       kAllAtWeight,
       [](const Setting& setting, std::optional<std::int32_t> group) {
         return group_interleaved(setting, group.value_or(setting.ranks));
       }},
      {{"interleaved-zb", "interleaved zero bubble, as PyTorch has it", Loop, "any", ""},
       2,
       kAllAtWeight,
       alone(interleaved_zero_bubble)},
      {{"zb-h1", "zero bubble by hand, the memory of 1F1B", Loop, "1", ""},
       1,
       kHalfAtBackward,
       alone(zero_bubble_h1)},
      {{"zb-h2", "zero bubble by hand, twice that memory", Loop, "1", ""},
       1,
       kHalfAtBackward,
       alone(zero_bubble_h2)},
      {{"zb", "zero bubble by search, within --memory; zb-1p, zb-2p: of so many times 1F1B's", Loop,
        "1", kCostsAndMemory},
       1,
       kHalfAtBackward,
       alone(zero_bubble_search)},
      {{"zbv", "zero bubble on a V by search, within --memory, else that of 1F1B; zbv-1p, zbv-2p",
        V, "2", kCostsAndMemory},
       2,
       kHalfAtBackward,
       alone(zero_bubble_v_search)},
      {{"v-half", "half the memory of 1F1B, on a V", V, "2", ""}, 2, kAllAtWeight, alone(v_half)},
      {{"v-min", "a third of the memory of 1F1B, on a V", V, "2", ""},
       2,
       kAllAtWeight,
       alone(v_min)},
      {{"v-adaptive", "the best found on a V within --memory", V, "2", kCostsAndMemory},
       2,
       kAllAtWeight,
       alone(v_adaptive)},
      {{"dualpipe", "two directions, forward and backward overlapped", Bidirectional, "2", ""},
       2,
       kAllAtWeight,
       alone(dual_pipe)},
      {{"dualpipev", "the same on a V, with one copy of the weights", V, "2", ""},
       2,
       kAllAtWeight,
       alone(dual_pipe_v)},
      {{"chimera", "two directions, each 1F1B", Bidirectional, "2", ""},
       2,
       kAllAtWeight,
       alone(chimera)},
      {{"hanayo", "waves: a V repeated, --chunks two for each", V, "even", "costs"},
       4,
       kAllAtWeight,
       alone(hanayo)},
  };
  return kFamilies;
}

struct Alias {
  std::string_view alias;
  std::string_view family;
};
constexpr Alias kAliases[]{{"interleaved", "1f1b-interleaved"},
                           {"interleaved-1f1b", "1f1b-interleaved"},
                           {"vpp", "1f1b-interleaved"},
                           {"zb-v", "zbv"},
                           {"v", "v-adaptive"},
                           {"bfs", "looped-bfs"},
                           {"zb1p", "zb-1p"},
                           {"zb2p", "zb-2p"},
                           {"dualpipe-v", "dualpipev"}};

const Family* family_named(std::string_view name) {
  const auto& list = families();
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Family& family) { return family.entry.name == name; });
  return found == list.end() ? nullptr : &*found;
}

// "zb-1.5p" with the frame "zb-" and "p": 1.5.
std::optional<double> number_in(std::string_view name, std::string_view before,
                                std::string_view behind) {
  if (!name.starts_with(before) || !name.ends_with(behind)) return std::nullopt;
  if (name.size() <= before.size() + behind.size()) return std::nullopt;
  const auto number =
      read_number(name.substr(before.size(), name.size() - before.size() - behind.size()));
  if (!number || !std::isfinite(number->value) || number->value <= 0) return std::nullopt;
  return number->value;
}

Name take_apart(std::string_view name) {
  for (const auto& [alias, family] : kAliases) {
    if (name == alias) name = family;
  }
  if (family_named(name) != nullptr) return {.family = name};
  struct Frame {
    std::string_view before;
    std::string_view behind;
    std::string_view family;
  };
  constexpr Frame kFrames[]{{"zb-", "p", "zb"},
                            {"zbv-", "p", "zbv"},
                            {"zb-v-", "p", "zbv"},
                            {"gis-g", "", "gis"},
                            {"1f1b-interleaved-v", "", "1f1b-interleaved"}};
  for (const Frame& frame : kFrames) {
    if (const auto number = number_in(name, frame.before, frame.behind)) {
      return {.family = frame.family, .number = number};
    }
  }
  return {.family = name};
}

/// A class of PyTorch's that "torch:CLASS" asks for, and the stages that each rank holds.
struct TorchRequest {
  TorchClass torch_class;
  std::int32_t stages_per_rank;
};

constexpr std::string_view kTorch = "torch:";

std::string no_torch_class(std::string_view name) {
  std::string known;
  for (const TorchClass each : kTorchClasses) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name_of(each));
  }
  return fmt::format("PyTorch has no schedule {}; it has {}", shown(name), known);
}

std::string no_family(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Family& family : families()) names.push_back(family.entry.name);
  const std::string_view close = nearest(name, names);
  return fmt::format("there is no schedule {}; {}`capo generate --list` lists them", shown(name),
                     close.empty() ? "" : fmt::format("did you mean `{}`? ", close));
}

void merge_halves(std::vector<Move>& moves) {
  std::vector<Move> merged;
  for (const Move& move : moves) {
    const bool completes = move.kind == Kind::BackwardWeight && !merged.empty() && !move.joins &&
                           merged.back().kind == Kind::BackwardInput && !merged.back().joins &&
                           merged.back().chunk == move.chunk &&
                           merged.back().microbatch == move.microbatch;
    if (completes) {
      merged.back().kind = Kind::Backward;
    } else {
      merged.push_back(move);
    }
  }
  moves = std::move(merged);
}

std::string_view torch_word(std::string_view name) {
  return name.substr(kTorch.size());
}

Result<TorchRequest, std::string> torch_request(const Request& request) {
  const std::string_view word = torch_word(request.name);
  const auto torch_class = torch_class_named(word);
  if (!torch_class) return no_torch_class(word);
  if (request.group || request.memory_limit) {
    return fmt::format("PyTorch's tables know neither groups nor memory: --{} has no use",
                       request.group ? "group" : "memory");
  }
  const bool single = *torch_class == TorchClass::GPipe || *torch_class == TorchClass::OneFOneB;
  return TorchRequest{.torch_class = *torch_class,
                      .stages_per_rank = request.chunks.value_or(single ? 1 : 2)};
}

Result<Schedule, std::string> torch_schedule(const Request& request) {
  const auto asked = torch_request(request);
  if (!asked) return asked.error();
  const TorchClass torch_class = asked->torch_class;
  auto orders = torch_table(torch_class, {.ranks = request.ranks,
                                          .stages_per_rank = asked->stages_per_rank,
                                          .microbatches = request.microbatches});
  if (!orders) return orders.error();
  if (request.merge_halves) {
    for (std::vector<Move>& moves : *orders) merge_halves(moves);
  }
  const bool v = torch_class == TorchClass::ZbvZeroBubble || torch_class == TorchClass::DualPipeV;
  return schedule_of(*orders, v ? Topology::V : Topology::Loop, asked->stages_per_rank);
}

// The number in the name and a flag must not both say the same thing.
std::optional<std::string> contradiction(const Name& name, const Request& request) {
  if (!name.number) return std::nullopt;
  const bool memory = name.family == "zb" || name.family == "zbv";
  if (memory && request.memory_limit) {
    return fmt::format("{} states its memory, and --memory does too", request.name);
  }
  const bool whole = std::floor(*name.number) == *name.number && *name.number <= 4096;
  if (!memory && !whole)
    return fmt::format("{} has no whole number up to 4096 in its name", request.name);
  if (name.family == "gis" && request.group) {
    return fmt::format("{} states its group, and --group does too", request.name);
  }
  if (name.family == "1f1b-interleaved" && request.chunks) {
    return fmt::format("{} states its chunks, and --chunks does too", request.name);
  }
  return std::nullopt;
}

// Refuses an option that would be ignored in silence.
std::optional<std::string> unused_option(const Family& family, const Request& request) {
  if (request.group && family.entry.uses != "group") {
    return fmt::format("{} has no groups: --group has no use", family.entry.name);
  }
  if (request.merge_halves)
    return std::string("--merge-halves is for PyTorch's tables, torch:CLASS");
  if (request.memory_limit && family.entry.uses != kCostsAndMemory) {
    return fmt::format("{} takes the memory it needs: --memory has no use", family.entry.name);
  }
  return std::nullopt;
}

/// The family that a request names, and the chunks that each rank holds.
struct Chosen {
  Name name;
  const Family* family;
  std::int32_t chunks;
};

Result<Chosen, std::string> chosen_by(const Request& request) {
  const Name name = take_apart(request.name);
  const Family* family = family_named(name.family);
  if (family == nullptr) return no_family(request.name);
  if (auto why = contradiction(name, request)) return *std::move(why);
  if (auto why = unused_option(*family, request)) return *std::move(why);
  const bool counts_chunks = name.number && name.family == "1f1b-interleaved";
  const std::int32_t chunks = counts_chunks ? static_cast<std::int32_t>(*name.number)
                                            : request.chunks.value_or(family->chunks);
  if (chunks < 1) return fmt::format("{} holds at least one chunk a rank", request.name);
  return Chosen{.name = name, .family = family, .chunks = chunks};
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = [] {
    std::vector<Entry> out;
    for (const Family& family : families()) out.push_back(family.entry);
    return out;
  }();
  return kEntries;
}

Schedule schedule_of(const PublishedOrders& orders, Topology topology, std::int32_t chunks) {
  Schedule schedule{.naming = Naming::Named, .topology = topology};
  std::int32_t microbatches = 0;
  for (const std::vector<Move>& moves : orders) {
    RankOrder& rank = schedule.ranks.emplace_back();
    rank.chunks = chunks;
    rank.chunks_declared = true;
    std::vector<bool> whole(as_index(chunks), false);
    std::vector<bool> split(as_index(chunks), false);
    for (const Move& move : moves) {
      const auto chunk = ChunkId(move.chunk).index();
      if (move.kind == Kind::Backward) whole[chunk] = true;
      if (move.kind == Kind::BackwardInput) split[chunk] = true;
    }
    rank.delay.emplace();
    for (std::size_t chunk = 0; chunk < whole.size(); ++chunk) {
      rank.delay->push_back(!split[chunk]  ? Delay::Never
                            : whole[chunk] ? Delay::Mixed
                                           : Delay::Always);
    }
    rank.order.reserve(moves.size());
    for (const Move& move : moves) {
      const auto chunk = ChunkId(move.chunk).index();
      const bool half = move.kind == Kind::BackwardInput && !whole[chunk];
      if (move.joins && rank.order.back().group == Group::Alone) {
        rank.order.back().group = Group::Opens;
      }
      rank.order.push_back({.chunk = move.chunk,
                            .microbatch = move.microbatch,
                            .kind = half ? Kind::Backward : move.kind,
                            .group = move.joins ? Group::Continues : Group::Alone});
      microbatches = std::max(microbatches, move.microbatch + 1);
    }
  }
  schedule.microbatches = microbatches;
  place_stages(schedule);
  return schedule;
}

std::optional<std::string> unknown_name(const std::string& name) {
  if (name.starts_with(kTorch)) {
    const std::string_view word = torch_word(name);
    return torch_class_named(word) ? std::nullopt : std::optional(no_torch_class(word));
  }
  const bool known = family_named(take_apart(name).family) != nullptr;
  return known ? std::nullopt : std::optional(no_family(name));
}

bool takes_memory_limit(const std::string& name) {
  const Name parts = take_apart(name);
  const Family* family = family_named(parts.family);
  return family != nullptr && family->entry.uses == kCostsAndMemory && !parts.number;
}

Result<Size, std::string> size_of(const Request& request) {
  if (request.name.starts_with(kTorch)) {
    const auto asked = torch_request(request);
    if (!asked) return asked.error();
    return Size{.chunks = asked->stages_per_rank, .microbatches = request.microbatches};
  }
  const auto chosen = chosen_by(request);
  if (!chosen) return chosen.error();
  Size size{.chunks = chosen->chunks, .microbatches = request.microbatches};
  const Entry& entry = chosen->family->entry;
  if (entry.topology == Topology::Bidirectional) {
    size.microbatches /= 2;
    size.pipelines = 2;
  }
  if (entry.name == "seq1f1b") size.microbatches *= request.group.value_or(kSegments);
  return size;
}

Result<Schedule, std::string> schedule_named(const Request& request) {
  if (request.name.starts_with(kTorch)) return torch_schedule(request);
  const auto chosen = chosen_by(request);
  if (!chosen) return chosen.error();
  const auto& [name, family, chunks] = *chosen;
  const auto number = static_cast<std::int32_t>(name.number.value_or(0));
  Memory memory = request.memory.value_or(family->memory);
  Setting setting{.ranks = request.ranks,
                  .microbatches = request.microbatches,
                  .chunks = chunks,
                  .costs = request.costs,
                  .rank_costs = request.rank_costs,
                  .memory = {.forward = memory.forward / chunks,
                             .backward = memory.backward / chunks,
                             .weight = memory.weight / chunks},
                  .threads = request.threads};
  if (request.memory_limit) setting.memory_limit = *request.memory_limit;
  const bool bounded = name.number && (name.family == "zb" || name.family == "zbv");
  // The paper's ZB-V keeps to the memory of 1F1B, which is that of as many microbatches as ranks.
  const bool as_published = name.family == "zbv" && !name.number && !request.memory_limit;
  const double times = as_published ? 1 : name.number.value_or(0);
  if (bounded || as_published) setting.memory_limit = times * request.ranks * memory.forward;
  if (family->entry.uses == kCostsAndMemory && !bounded && !as_published && !request.memory_limit) {
    return fmt::format(
        "{} searches within a limit: say --memory X, in microbatches that a rank may "
        "hold",
        request.name);
  }
  const auto group = name.number && name.family == "gis" ? std::optional(number) : request.group;
  auto orders = family->make(setting, group);
  if (!orders) return orders.error();
  return schedule_of(*orders, family->entry.topology, chunks);
}

}  // namespace capo::schedules
