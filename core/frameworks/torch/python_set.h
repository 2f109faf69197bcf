// A set of stages that is walked in the order in which CPython walks a set of small numbers.
//
//   add 4, add 0, add 8     is walked 0, 4, 8 if 8 finds its place free, and otherwise if not
//
// torch 2.11 keeps the stages that are resident in a set, so the order in which it gives them up
// is that of the hash table: a number's place is its lowest bits, a place that is taken sends it on
// to the next ones and then elsewhere, and a place that was left is not used again until the table
// is rebuilt. Tested by passes_test.cpp against torch's own tables.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capo::torch {

class PythonSet {
 public:
  /// Precondition: it is not in the set.
  void add(std::int64_t number);
  /// Precondition: it is in the set.
  void remove(std::int64_t number);
  [[nodiscard]] std::vector<std::int64_t> in_order() const;

 private:
  enum class Use : std::uint8_t { Free, Taken, Left };
  struct Place {
    Use use = Use::Free;
    std::int64_t number = 0;
  };

  [[nodiscard]] std::size_t free_place(std::int64_t number) const;
  void rebuild(std::size_t size);

  std::vector<Place> places_ = std::vector<Place>(8);
  std::size_t used_ = 0;    // places that are taken
  std::size_t filled_ = 0;  // places that are taken or left
};

}  // namespace capo::torch
