// The kernels that move, add and compare memory, and the calls that every kernel refuses. Others
// are tested by products_test.cpp, norms_test.cpp, activations_test.cpp, biases_test.cpp,
// attention_test.cpp and routes_test.cpp.

#include "core/base/assert.h"
#include "core/model/model.h"
#include "tests/run/host/tensors.h"

#include <numeric>
#include <utility>

namespace capo::run::host {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes counting(std::size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

TEST(HostKernels, GatherTakesTheRowsThatTheIndexNames) {
  const Bytes from{1, 2, 3, 11, 12, 13, 21, 22, 23};
  const std::vector<std::int64_t> index{2, 0, 0, 1};
  Bytes to(14, 99);
  execute(Gather{
      .rows = 4, .row_bytes = 3, .index = index.data(), .from = from.data(), .to = to.data()});
  EXPECT_EQ(to, (Bytes{21, 22, 23, 1, 2, 3, 1, 2, 3, 11, 12, 13, 99, 99}));
}

TEST(HostKernels, GatherByTheInverseIndexBringsRowsBack) {
  constexpr std::int64_t kRows = 40;
  std::vector<std::int64_t> index(kRows);
  std::iota(index.begin(), index.end(), 0);
  std::mt19937 random(3);
  for (std::size_t i = index.size() - 1; i > 0; --i) std::swap(index[i], index[random() % (i + 1)]);
  std::vector<std::int64_t> inverse(kRows);
  for (std::size_t i = 0; i < index.size(); ++i) {
    inverse[static_cast<std::size_t>(index[i])] = static_cast<std::int64_t>(i);
  }
  const Bytes from = counting(kRows * 6);
  Bytes there(from.size());
  Bytes back(from.size());
  Gather call{.rows = kRows,
              .row_bytes = 6,
              .index = index.data(),
              .from = from.data(),
              .to = there.data()};
  execute(call);
  EXPECT_NE(there, from);
  call.index = inverse.data();
  call.from = there.data();
  call.to = back.data();
  execute(call);
  EXPECT_EQ(back, from);
}

TEST(HostKernels, AddAddsEachAsItsOwnType) {
  for (const DataType to_type : kTypes) {
    for (const DataType from_type : kTypes) {
      SCOPED_TRACE(testing::Message() << name_of(from_type) << " to " << name_of(to_type));
      Tensor from = at_random(from_type, 37, 1);
      Tensor to = at_random(to_type, 40, 2);
      const Tensor before = to;
      Values expected;
      for (std::int64_t i = 0; i < from.count(); ++i) {
        expected.push_back(to.value(i) + from.value(i));
      }
      execute_twice(Add{.to_type = to_type,
                        .from_type = from_type,
                        .count = from.count(),
                        .from = from.data(),
                        .to = to.data()},
                    {to});
      expect_near(to, before, expected);
    }
  }
}

TEST(HostKernels, AddRoundsTheSumAndNotWhatIsAdded) {
  // 257 is no bf16, but 1 + 257 is.
  Tensor from(DataType::Fp32, {257, 257});
  Tensor to(DataType::Bf16, {1, 0});
  execute(Add{.to_type = DataType::Bf16,
              .from_type = DataType::Fp32,
              .count = 2,
              .from = from.data(),
              .to = to.data()});
  EXPECT_EQ(to.values(), (Values{258, 256}));
}

TEST(HostKernels, CopyAndFillTouchTheirBytesAlone) {
  const Bytes from = counting(5);
  Bytes to(7, 99);
  execute(Copy{.bytes = 5, .from = from.data(), .to = to.data()});
  EXPECT_EQ(to, (Bytes{1, 2, 3, 4, 5, 99, 99}));
  execute(Fill{.bytes = 3, .value = 0xab, .to = to.data()});
  EXPECT_EQ(to, (Bytes{0xab, 0xab, 0xab, 4, 5, 99, 99}));
}

TEST(HostKernels, OfNothingNothingIsDone) {
  execute(Copy{});
  execute(Fill{});
  execute(Gather{});
  execute(Add{});
  execute(Differ{});
  execute(DrawInto{});
}

// The third and the fourth number of a drawing of three, by hand: offset and scale around it.
TEST(HostKernels, DrawIntoBeginsAtItsFirstAndEndsInNan) {
  const Drawing numbers{.draw = {.seed = 7, .stream = 9}, .scale = 4, .offset = 1, .drawn = 3};
  std::array<float, 3> to{-1, -1, -1};
  execute(DrawInto{
      .type = DataType::Fp32, .count = 2, .first = 2, .numbers = numbers, .to = to.data()});
  EXPECT_EQ(to[0], static_cast<float>(4 * numbers.draw.around_zero(2)) + 1);
  EXPECT_TRUE(std::isnan(to[1]));
  EXPECT_EQ(to[2], -1);
}

TEST(HostKernels, DrawIntoRoundsOnce) {
  const Drawing numbers{.draw = {.seed = 7, .stream = 9}, .drawn = 100};
  std::array<Bf16, 100> to{};
  execute(DrawInto{.type = DataType::Bf16, .count = 100, .numbers = numbers, .to = to.data()});
  for (std::int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(to[static_cast<std::size_t>(i)].bits, round_to<Bf16>(numbers.at(i)).bits) << i;
  }
}

// Four rows of three bytes, of which two groups use three.
std::int32_t difference(const Bytes& a, const Bytes& b, std::int32_t before) {
  const std::vector<std::int64_t> sizes{1, 2};
  std::int32_t differs = before;
  execute(Differ{.rows = {.count = 4, .groups = 2, .sizes = sizes.data()},
                 .row_bytes = 3,
                 .a = a.data(),
                 .b = b.data(),
                 .differs = &differs});
  return differs;
}

TEST(HostKernels, DifferReportsAnyByteOfTheRowsInUse) {
  const Bytes a = counting(12);
  EXPECT_EQ(difference(a, a, 0), 0);
  for (std::size_t at = 0; at < a.size(); ++at) {
    Bytes b = a;
    b[at] ^= 0x80;
    EXPECT_EQ(difference(a, b, 0), at < 9 ? 1 : 0) << "byte " << at;
  }
}

TEST(HostKernels, DifferNeverClearsWhatIsSet) {
  const Bytes a = counting(12);
  EXPECT_EQ(difference(a, a, 1), 1);
  EXPECT_EQ(difference(a, a, 7), 7);
}

TEST(HostKernels, DifferComparesBytesAndNotNumbers) {
  Tensor zero(DataType::Fp32, {0, 1});
  Tensor negative(DataType::Fp32, {-0.0, 1});
  Tensor nan(DataType::Fp32, {std::numeric_limits<double>::quiet_NaN(), 1});
  std::int32_t differs = 0;
  Differ call{.rows = {.count = 2}, .row_bytes = 4, .differs = &differs};
  call.a = nan.data();
  call.b = nan.data();
  execute(call);
  EXPECT_EQ(differs, 0);
  call.a = zero.data();
  call.b = negative.data();
  execute(call);
  EXPECT_EQ(differs, 1);
}

TEST(HostKernels, SizesThatCannotBeAreRefused) {
  const std::vector<std::int64_t> too_many{3, 2};
  EXPECT_THROW(execute(SwiGlu{.rows = {.count = 4, .groups = 2, .sizes = too_many.data()}}),
               InternalError);
  const std::vector<std::int64_t> negative{3, -1};
  EXPECT_THROW(execute(Differ{.rows = {.count = 4, .groups = 2, .sizes = negative.data()}}),
               InternalError);
  const std::int64_t nowhere = -1;
  EXPECT_THROW(execute(Gather{.rows = 1, .row_bytes = 1, .index = &nowhere}), InternalError);
}

}  // namespace
}  // namespace capo::run::host
