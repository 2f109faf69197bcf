// Faults of a TransformerEngine list: one entry is lost, added, moved or written wrongly.
//
//   [1, 2, -2, -1]   ->   [1, 2, -1, -1]      other-chunk: S15 at index 3
//
// Each function breaks a sound list at a place by choice and says which finding must follow; the
// table at the end names them. Tested by fault_test.cpp and tests/properties/faults_test.cpp.

#include "core/base/index.h"
#include "testing/faults/faults.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace capo::testing {

namespace {

// An entry becomes NaN or infinite, as a missing value or a division by zero makes it.
std::optional<Broken<TeOrder>> not_finite(const TeOrder& sound, std::size_t choice) {
  using Limits = std::numeric_limits<double>;
  constexpr std::array kValues{Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()};
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  order.list.entries[at] = {.value = kValues[choice / 7 % kValues.size()],
                            .type = NumberType::Float};
  return {{order, "S01", Place{.index = at}}};
}

// An entry gets a fraction that it cannot have: `-1.25`, `-2.75`, a forward `1.5`.
std::optional<Broken<TeOrder>> other_fraction(const TeOrder& sound, std::size_t choice) {
  constexpr std::array kFractions{0.25, 0.5, 0.75};
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  TeEntry& entry = order.list.entries[at];
  const bool forward = entry.value > 0;
  const double fraction = forward ? kFractions[choice / 7 % 3] : kFractions[choice / 7 % 2 * 2];
  const double size = std::floor(std::abs(entry.value)) + fraction;
  entry = {.value = forward ? size : -size, .type = NumberType::Float};
  return {{order, forward ? "S05" : "S02", Place{.index = at}}};
}

// A forward or backward is written as a float: `1.0`, as NumPy or a division makes them.
std::optional<Broken<TeOrder>> float_chunk(const TeOrder& sound, std::size_t choice) {
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < sound.list.entries.size(); ++i) {
    if (sound.list.entries[i].type == NumberType::Integer) whole.push_back(i);
  }
  TeOrder order = sound;
  const std::size_t at = chosen(whole, choice).value();
  order.list.entries[at].type = NumberType::Float;
  return {{order, "S03", Place{.index = at}}};
}

// An entry names chunk 0, as in a list that counts chunks from 0: `0`, `-0.0`, `-0.5`.
std::optional<Broken<TeOrder>> chunk_zero(const TeOrder& sound, std::size_t choice) {
  constexpr std::array<TeEntry, 3> kZeros{{{.value = 0},
                                           {.value = -0.0, .type = NumberType::Float},
                                           {.value = -0.5, .type = NumberType::Float}}};
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  order.list.entries[at] = kZeros[choice / 7 % kZeros.size()];
  return {{order, "S04", Place{.index = at}}};
}

// All forwards are missing; the finding is shown at the first entry.
std::optional<Broken<TeOrder>> no_forward(const TeOrder& sound, std::size_t /*choice*/) {
  TeOrder order = sound;
  std::erase_if(order.list.entries, [](const TeEntry& entry) { return entry.value > 0; });
  return {{order, "S06", Place{.index = 0}}};
}

// An entry names a chunk beyond the declared ones.
std::optional<Broken<TeOrder>> unknown_chunk(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const Kind kind = te_action(order.list.entries[at]).value().kind;
  order.list.entries[at] =
      te_entry(kind, order.chunks() + 1 + static_cast<std::int32_t>(choice / 7 % 3));
  return {{order, "S12", Place{.index = at}}};
}

// A chunk that is declared never runs. The order does not say where it would run, so the finding
// has no place.
std::optional<Broken<TeOrder>> absent_chunk(const TeOrder& sound, std::size_t choice) {
  if (sound.chunks() < 2) return std::nullopt;
  TeOrder order = sound;
  const auto absent = static_cast<std::int32_t>(choice % order.delays.size()) + 1;
  std::erase_if(order.list.entries, [absent](const TeEntry& entry) {
    return te_action(entry).value().chunk == absent;
  });
  return {{order, "S13", std::nullopt}};
}

// One entry is missing.
//
// A missing forward is reported at the last forward that the chunk still has, or at its first
// backward if it has none; a list without any forward is reported as such. A missing backward is
// reported at the last forward, whose backward it is now, and a missing weight gradient at the last
// backward.
std::optional<Broken<TeOrder>> drop_entry(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const Action gone = te_action(order.list.entries[at]).value();
  order.list.entries.erase(order.list.entries.begin() + static_cast<std::ptrdiff_t>(at));
  const auto last = as_index(order.microbatches) - 1;
  const auto forwards = places(order.list, Kind::Forward, gone.chunk);
  const auto backwards = places(order.list, Kind::Backward, gone.chunk);
  switch (gone.kind) {
    case Kind::Forward:
      if (!forwards.empty()) return {{order, "S14", Place{.index = forwards.back()}}};
      if (order.chunks() == 1) return {{order, "S06", Place{.index = 0}}};
      return {{order, "S14", Place{.index = backwards.front()}}};
    case Kind::Backward:
      return {{order, "S15", Place{.index = forwards[last]}}};
    default:
      return {{order, "S16", Place{.index = backwards[last]}}};
  }
}

// One entry stands there twice in a row; the last of its kind, which is one too many, is reported.
std::optional<Broken<TeOrder>> double_entry(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const TeEntry entry = order.list.entries[at];
  order.list.entries.insert(order.list.entries.begin() + static_cast<std::ptrdiff_t>(at), entry);
  const Action twice = te_action(entry).value();
  const std::size_t surplus =
      places(order.list, twice.kind, twice.chunk)[as_index(order.microbatches)];
  const char* rule = twice.kind == Kind::Forward    ? "S14"
                     : twice.kind == Kind::Backward ? "S15"
                                                    : "S16";
  return {{order, rule, Place{.index = surplus}}};
}

// An entry names another chunk than is meant, so that one chunk lacks it and the other has one too
// many.
//
//   [1, 2, -2, -1]   ->   [1, 2, -1, -1]
//
// TransformerEngine accepts this list in silence. The surplus is reported at the last entry of its
// kind; a weight gradient of a chunk that does not delay is reported where it stands.
std::optional<Broken<TeOrder>> other_chunk(const TeOrder& sound, std::size_t choice) {
  if (sound.chunks() < 2) return std::nullopt;
  TeOrder order = sound;
  const std::size_t at = choice % order.list.entries.size();
  const Action meant = te_action(order.list.entries[at]).value();
  const std::int32_t other = meant.chunk % order.chunks() + 1;
  order.list.entries[at] = te_entry(meant.kind, other);
  if (meant.kind == Kind::BackwardWeight && !order.delays[as_index(other) - 1]) {
    return {{order, "S17", Place{.index = at}}};
  }
  const std::size_t surplus = places(order.list, meant.kind, other)[as_index(order.microbatches)];
  const char* rule = meant.kind == Kind::Forward    ? "S14"
                     : meant.kind == Kind::Backward ? "S15"
                                                    : "S16";
  return {{order, rule, Place{.index = surplus}}};
}

// A chunk has a weight gradient as an entry and is declared not to delay it: either the declaration
// or the entry is wrong.
std::optional<Broken<TeOrder>> undeclared_weight(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  const std::size_t c = choice % order.delays.size();
  const auto chunk = static_cast<std::int32_t>(c) + 1;
  if (order.delays[c]) {
    order.delays[c] = false;
    return {
        {order, "S17", Place{.index = places(order.list, Kind::BackwardWeight, chunk).front()}}};
  }
  const std::size_t at = chosen(places(order.list, Kind::Backward, chunk), choice / 7).value() + 1;
  order.list.entries.insert(order.list.entries.begin() + static_cast<std::ptrdiff_t>(at),
                            te_entry(Kind::BackwardWeight, chunk));
  return {{order, "S17", Place{.index = at}}};
}

// A chunk is declared to have -1 layers, or the layers of one chunk are left out.
// Declarations have no entry to point at.
std::optional<Broken<TeOrder>> layers_misfit(const TeOrder& sound, std::size_t choice) {
  TeOrder order = sound;
  auto& layers = order.layers.values;
  if (choice % 2 == 0 && layers.size() > 1) {
    layers.pop_back();
  } else {
    layers[choice / 2 % layers.size()] = -1;
  }
  return {{order, "S18", std::nullopt}};
}

// A backward stands before its own forward.
//
//   [1, 1, -1, -1]   ->   [-1, 1, 1, -1]
//
// Microbatches are counted, so a backward that moves ahead of other backwards only takes their
// turn. The fault is real only if the backward passes a forward that came before all earlier
// backwards.
std::optional<Broken<TeOrder>> backward_first(const TeOrder& sound, std::size_t choice) {
  std::vector<std::pair<std::size_t, std::size_t>> moves;  // from, to
  for (std::int32_t chunk = 1; chunk <= sound.chunks(); ++chunk) {
    const auto forwards = places(sound.list, Kind::Forward, chunk);
    const auto backwards = places(sound.list, Kind::Backward, chunk);
    for (std::size_t k = 0; k < forwards.size(); ++k) {
      if (k == 0 || backwards[k - 1] < forwards[k]) moves.emplace_back(backwards[k], forwards[k]);
    }
  }
  const auto [from, to] = chosen(moves, choice).value();
  TeOrder order = sound;
  const auto place = [&](std::size_t at) {
    return order.list.entries.begin() + static_cast<std::ptrdiff_t>(at);
  };
  std::rotate(place(to), place(from), place(from + 1));
  return {{order, "S23", Place{.index = to}}};
}

// A weight gradient stands before its own backward.
//
//   [1, -1, -1.5]   ->   [1, -1.5, -1]
//
// The fault is real only if the weight gradient passes a backward that came before all earlier
// weight gradients; backward_first says why.
std::optional<Broken<TeOrder>> weight_first(const TeOrder& sound, std::size_t choice) {
  std::vector<std::pair<std::size_t, std::size_t>> moves;  // from, to
  for (std::int32_t chunk = 1; chunk <= sound.chunks(); ++chunk) {
    const auto backwards = places(sound.list, Kind::Backward, chunk);
    const auto weights = places(sound.list, Kind::BackwardWeight, chunk);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      if (k == 0 || weights[k - 1] < backwards[k]) moves.emplace_back(weights[k], backwards[k]);
    }
  }
  const auto move = chosen(moves, choice);
  if (!move) return std::nullopt;
  TeOrder order = sound;
  const auto place = [&](std::size_t at) {
    return order.list.entries.begin() + static_cast<std::ptrdiff_t>(at);
  };
  std::rotate(place(move->second), place(move->first), place(move->first + 1));
  return {{order, "S24", Place{.index = move->second}}};
}

constexpr std::array kListFaults{
    ListFault{"not-finite", {"S01"}, not_finite},
    ListFault{"other-fraction", {"S02", "S05"}, other_fraction},
    ListFault{"float-chunk", {"S03"}, float_chunk},
    ListFault{"chunk-zero", {"S04"}, chunk_zero},
    ListFault{"no-forward", {"S06"}, no_forward},
    ListFault{"unknown-chunk", {"S12"}, unknown_chunk},
    ListFault{"absent-chunk", {"S13"}, absent_chunk},
    ListFault{"drop-entry", {"S06", "S14", "S15", "S16"}, drop_entry},
    ListFault{"double-entry", {"S14", "S15", "S16"}, double_entry},
    ListFault{"other-chunk", {"S14", "S15", "S16", "S17"}, other_chunk},
    ListFault{"undeclared-weight", {"S17"}, undeclared_weight},
    ListFault{"layers-misfit", {"S18"}, layers_misfit},
    ListFault{"backward-first", {"S23"}, backward_first},
    ListFault{"weight-first", {"S24"}, weight_first},
};

}  // namespace

std::span<const ListFault> list_faults() {
  return kListFaults;
}

}  // namespace capo::testing
