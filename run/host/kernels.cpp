#include "core/base/index.h"
#include "run/host/host_engine.h"
#include "run/host/parts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <variant>

namespace capo::run::host {

namespace {

// Copies nothing if there are no bytes: the addresses may then be null, which memcpy does not take.
void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, as_index(bytes));
}

template <typename To, typename From>
void compute(const Add& call) {
  auto* to = static_cast<To*>(call.to);
  const auto* from = static_cast<const From*>(call.from);
  for (std::int64_t i = 0; i < call.count; ++i) put(to[i], to_float(from[i]), Write::Add);
}

void compute(const Add& call) {
  with_element(call.to_type, [&](auto to) {
    with_element(call.from_type, [&](auto from) { compute<decltype(to), decltype(from)>(call); });
  });
}

void compute(const Copy& call) {
  copy_bytes(call.to, call.from, call.bytes);
}

void compute(const Fill& call) {
  if (call.bytes > 0) std::memset(call.to, call.value, as_index(call.bytes));
}

void compute(const Differ& call) {
  const auto bytes = as_index(in_use(call.rows) * call.row_bytes);
  if (bytes > 0 && std::memcmp(call.a, call.b, bytes) != 0) *call.differs = 1;
}

template <typename T>
void draw(const DrawInto& call) {
  auto* to = static_cast<T*>(call.to);
  // A drawing of its own, which no write can change: its seed is mixed once.
  const Drawing numbers = call.numbers;
  const std::int64_t drawn = std::clamp<std::int64_t>(numbers.drawn - call.first, 0, call.count);
  for (std::int64_t i = 0; i < drawn; ++i) to[i] = round_to<T>(numbers.at(call.first + i));
  std::fill(to + drawn, to + call.count, round_to<T>(std::numeric_limits<float>::quiet_NaN()));
}

void compute(const DrawInto& call) {
  with_element(call.type, [&](auto zero) { draw<decltype(zero)>(call); });
}

}  // namespace

void compute(const Gather& call) {
  for (std::int64_t row = 0; row < call.rows; ++row) {
    CAPO_ASSERT(call.index[row] >= 0, "every row is gathered from some row");
    CAPO_ASSERT(call.from_rows == 0 || call.index[row] < call.from_rows,
                "no row is gathered from behind the rows that there are");
    copy_bytes(static_cast<std::byte*>(call.to) + row * call.row_bytes,
               static_cast<const std::byte*>(call.from) + call.index[row] * call.row_bytes,
               call.row_bytes);
  }
}

void execute(const Call& call) {
  std::visit([](const auto& kernel) { compute(kernel); }, call);
}

}  // namespace capo::run::host
