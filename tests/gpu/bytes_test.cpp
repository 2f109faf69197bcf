// Copy, Fill, Gather, Differ and Add on the device, against the host's; all but Add to the byte.

#include "tests/gpu/twins.h"

namespace capo::gpu {
namespace {

// Bytes that are no numbers: no call but Add may look at them as such.
Slot add_bytes(Twins& twins, std::int64_t count, std::uint32_t seed, std::size_t past = 0) {
  const Tensor random = at_random(DataType::Fp32, (count + 3) / 4 + 4, seed);
  Tensor tensor(DataType::Bf16, Values(static_cast<std::size_t>((count + 1) / 2 + 1)));
  if (count > 0) std::memcpy(tensor.data(), random.bytes().data(), static_cast<std::size_t>(count));
  return twins.add(tensor, past);
}

constexpr std::array<std::size_t, 7> kPast{0, 1, 3, 4, 8, 15, 16};
constexpr std::array<std::int64_t, 7> kBytes{0, 1, 15, 16, 33, 1000, 70001};

using BytesKernels = Kernels;

TEST_F(BytesKernels, CopyFromAndToAnyAddress) {
  for (const std::int64_t bytes : kBytes) {
    for (const std::size_t from_past : kPast) {
      for (const std::size_t to_past : kPast) {
        Twins twins;
        const Slot from = add_bytes(twins, bytes, 1, from_past);
        const Slot to = add_bytes(twins, bytes, 2, to_past);
        twins.expect_same(
            [&](const Memory& m) {
              return run::Copy{.bytes = bytes, .from = m.at(from), .to = m.at(to)};
            },
            {});
      }
    }
  }
}

TEST_F(BytesKernels, FillAnyAddress) {
  for (const std::int64_t bytes : kBytes) {
    for (const std::size_t past : kPast) {
      Twins twins;
      const Slot to = add_bytes(twins, bytes, 1, past);
      twins.expect_same(
          [&](const Memory& m) { return run::Fill{.bytes = bytes, .value = 0xa5, .to = m.at(to)}; },
          {});
    }
  }
}

TEST_F(BytesKernels, GatherRowsOfAnyLength) {
  for (const std::int64_t row_bytes : {0, 1, 6, 16, 48, 770, 8192}) {
    for (const std::size_t past : {0, 2}) {
      Twins twins;
      const Slot from = add_bytes(twins, 9 * row_bytes, 1, past);
      const Slot to = add_bytes(twins, 14 * row_bytes, 2);
      const Slot index = twins.add_numbers(Sizes{8, 0, 3, 3, 1, 7, 0, 2, 5, 4, 6, 8, 1});
      twins.expect_same(
          [&](const Memory& m) {
            return run::Gather{.rows = 13,
                               .row_bytes = row_bytes,
                               .index = m.as<std::int64_t>(index),
                               .from = m.at(from),
                               .to = m.at(to)};
          },
          {});
    }
  }
}

TEST_F(BytesKernels, DifferFindsOneByteAndLooksAtRowsInUseOnly) {
  constexpr std::int64_t kRowBytes = 1001;
  for (const std::size_t past : {0, 1}) {
    for (const std::int64_t other : {-1, 0, 17, 7 * 1001 - 1, 7 * 1001}) {
      SCOPED_TRACE(other);
      Twins twins;
      const Tensor same = at_random(DataType::Fp32, 10 * kRowBytes / 4 + 1, 1);
      Tensor changed = same;
      if (other >= 0) static_cast<std::byte*>(changed.data())[other] ^= std::byte{4};
      const Slot a = twins.add(same);
      const Slot b = twins.add(changed, past);
      const Slot differs = twins.add_numbers(std::vector<std::int32_t>{0});
      const Slot sizes = twins.add_numbers(Sizes{3, 0, 4});
      twins.expect_same(
          [&](const Memory& m) {
            return run::Differ{
                .rows = {.count = 10, .groups = 3, .sizes = m.as<std::int64_t>(sizes)},
                .row_bytes = kRowBytes,
                .a = m.at(a),
                .b = m.at(b),
                .differs = m.as<std::int32_t>(differs)};
          },
          {});
    }
  }
}

// One addition and one rounding leave no choice: the bytes are the host's.
TEST_F(BytesKernels, AddOfAnyTwoTypes) {
  for (const DataType to_type : kTypes) {
    for (const DataType from_type : kTypes) {
      for (const std::int64_t count : {0, 1, 8, 1003, 300000}) {
        for (const std::size_t past : {0, 4}) {
          Twins twins;
          const Slot to = twins.add(at_random(to_type, count, 1));
          const Slot from = twins.add(at_random(from_type, count, 2), past);
          twins.expect_same(
              [&](const Memory& m) {
                return run::Add{.to_type = to_type,
                                .from_type = from_type,
                                .count = count,
                                .from = m.at(from),
                                .to = m.at(to)};
              },
              {});
        }
      }
    }
  }
}

TEST_F(BytesKernels, AnotherKernelIsNoCallOfOurs) {
  EXPECT_FALSE(call_of(nullptr, nullptr));
}

}  // namespace
}  // namespace capo::gpu
