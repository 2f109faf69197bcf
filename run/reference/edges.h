// The roundings of a layer that could as well go the other way, and those that are to.
//
//   1 + 2^-8 in bf16   lies between 1 and 1 + 2^-7, as far from both: a sum in fp32 that is off by
//                      its last bit comes out as either
//
// An engine adds in fp32 and in an order of its own, and tensor cores cut off what they add, so the
// number that it rounds is not float64's to the last bit. Each of n additions is off by at most
// 2^-23 of a partial sum, either way; n of them come to about 2^-23 of the sum of the terms'
// absolute values, and four times that is what is called near. Where a value is that near to the
// middle between two numbers of its type, both are right, and they are one unit in the last place
// apart: up to 2^-7 in bf16, more than an error's bound if one row of a tensor outweighs all
// others. Tested by tests/run/reference/other_ways_test.cpp.

#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace capo::run::reference {

/// A tensor that a module writes to memory.
enum class Place : std::uint8_t {
  Normed,
  First,  ///< the first product, or the only one
  FirstBiased,
  Active,
  Second,
  SecondBiased,
  GradActive,
  GradMiddle,
  GradNormed,
  GradInput,
};

struct Edge {
  Place place = Place::First;
  std::int64_t row = 0;
  std::int64_t column = 0;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// A value's error is so much of the sum of the absolute values of its terms, at most.
inline constexpr double kNear = 0x1p-21;

struct Edges {
  std::vector<Edge> other_way;  ///< these are rounded to the second nearest
  bool look = false;            ///< `near` is wanted; it costs every product once more
  std::vector<Edge> near = {};  ///< found, in the order of places, rows and columns
};

}  // namespace capo::run::reference
