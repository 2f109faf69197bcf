// Every order of a kind: all arrangements of a list, all short strings, all ways to interleave
// tokens that need each other, and what one edit makes of a list.
//
// Tokens are numbers from 0. What a token needs is said once for all microbatches: its k-th
// occurrence comes behind the k-th of each that it needs. Soundness of a list, executability of a
// chain and the local orders of a rank are all of this form.

#pragma once

#include "core/order/te_list.h"
#include "testing/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace capo::exhaustive {

using List = std::vector<TeEntry>;

/// -1.5 is a float to Python, -1 an int.
[[nodiscard]] inline TeEntry entry_of(double value) {
  return {.value = value,
          .type = std::floor(value) == value ? NumberType::Integer : NumberType::Float};
}
/// "[1, -1, -1.5]".
[[nodiscard]] std::string shown(const List& list);
/// The list as the oracle takes it, in the memory of an earlier one.
void to_oracle(const List& list, std::vector<oracle::Number>& numbers);

struct Size {
  int chunks = 1;
  int microbatches = 1;
  bool weights = false;

  [[nodiscard]] int kinds() const { return weights ? 3 : 2; }
  [[nodiscard]] int tokens() const { return kinds() * chunks * microbatches; }
};

/// "2x2 with W".
[[nodiscard]] std::string name_of(const Size& size);
/// Arrangements of all entries, those of one kind and chunk being alike.
[[nodiscard]] std::uint64_t well_counted(const Size& size);
/// Standard Young tableaux of a rectangle, by the hook-length formula.
[[nodiscard]] std::uint64_t tableaux(int rows, int columns);

/// Each entry as often as there are microbatches, in ascending order.
[[nodiscard]] List sorted_list(const Size& size);

/// Calls visit(list) for every arrangement of a sorted list, in place, until it returns false.
template <typename Visit>
void for_each_arrangement(List list, Visit visit) {
  const auto less = [](const TeEntry& a, const TeEntry& b) { return a.value < b.value; };
  do {
    if (!visit(std::as_const(list))) return;
  } while (std::next_permutation(list.begin(), list.end(), less));
}

/// For every list of at most `longest` of these entries.
template <typename Visit>
void for_each_string(const List& alphabet, std::size_t longest, Visit visit) {
  for (std::size_t length = 0; length <= longest; ++length) {
    std::vector<std::size_t> digits(length, 0);
    List list(length, alphabet.front());
    while (true) {
      if (!visit(std::as_const(list))) return;
      std::size_t at = 0;
      for (; at < length; ++at) {
        digits[at] = (digits[at] + 1) % alphabet.size();
        list[at] = alphabet[digits[at]];
        if (digits[at] != 0) break;
      }
      if (at == length) break;
    }
  }
}

/// The tokens that each token needs.
using Needs = std::vector<std::vector<std::size_t>>;

/// Token kind * chunks + chunk - 1; kinds are forward, backward, weight gradient.
[[nodiscard]] Needs needs_of_each_chunk(const Size& size);
[[nodiscard]] Needs needs_of_a_chain(const Size& size);
[[nodiscard]] TeEntry entry_of_token(const Size& size, std::size_t token);

/// Whether all that the next occurrence of a token needs is done; `done` counts each token's.
[[nodiscard]] inline bool has_needs(const Needs& needs, const std::vector<int>& done,
                                    std::size_t token) {
  return std::all_of(needs[token].begin(), needs[token].end(),
                     [&](std::size_t needed) { return done[needed] > done[token]; });
}

/// Calls visit(tokens) for every order in which each token stands `times` times behind what it
/// needs, until it returns false.
class Interleavings {
 public:
  Interleavings(const Needs& needs, int times) : needs_(needs), times_(times) {}

  template <typename Visit>
  void for_each(Visit visit) {
    done_.assign(needs_.size(), 0);
    order_.clear();
    extend(visit);
  }

 private:
  template <typename Visit>
  bool extend(Visit& visit) {
    if (order_.size() == needs_.size() * static_cast<std::size_t>(times_)) {
      return visit(std::as_const(order_));
    }
    for (std::size_t token = 0; token < needs_.size(); ++token) {
      if (done_[token] == times_ || !has_needs(needs_, done_, token)) continue;
      ++done_[token];
      order_.push_back(token);
      const bool on = extend(visit);
      order_.pop_back();
      --done_[token];
      if (!on) return false;
    }
    return true;
  }

  const Needs& needs_;
  int times_;
  std::vector<int> done_;
  std::vector<std::size_t> order_;
};

/// How many orders of a size there are in which `may(done, token)` holds wherever a token stands,
/// `done` counting each token's occurrences before it: the ways into each state, from those of the
/// states one token before. Exact below 2^53.
template <typename May>
[[nodiscard]] double count_orders(const Size& size, May may) {
  std::vector<int> done(static_cast<std::size_t>(size.kinds() * size.chunks));
  std::size_t states = 1;
  for (std::size_t token = 0; token < done.size(); ++token)
    states *= static_cast<std::size_t>(size.microbatches) + 1;
  std::vector<double> ways(states);
  ways.front() = 1;
  for (std::size_t state = 0; state < states; ++state) {
    std::size_t one = 1;  // one more of the token adds this to the number of the state
    for (std::size_t token = 0; token < done.size(); ++token) {
      if (done[token] < size.microbatches && may(std::as_const(done), token))
        ways[state + one] += ways[state];
      one *= static_cast<std::size_t>(size.microbatches) + 1;
    }
    for (int& count : done) {
      if (count++ < size.microbatches) break;
      count = 0;
    }
  }
  return ways.back();
}

/// The lists that one edit makes: an entry is left out, put in, replaced by another, or two
/// neighbours change places. A list that several edits make comes several times.
template <typename Visit>
void for_each_neighbour(const List& list, const List& alphabet, Visit visit) {
  List edited;
  for (std::size_t at = 0; at < list.size(); ++at) {
    edited = list;
    edited.erase(edited.begin() + static_cast<std::ptrdiff_t>(at));
    visit(std::as_const(edited));
  }
  for (std::size_t at = 0; at <= list.size(); ++at) {
    edited = list;
    edited.insert(edited.begin() + static_cast<std::ptrdiff_t>(at), alphabet.front());
    for (const TeEntry& entry : alphabet) {
      edited[at] = entry;
      visit(std::as_const(edited));
    }
  }
  edited = list;
  for (std::size_t at = 0; at < list.size(); ++at) {
    for (const TeEntry& entry : alphabet) {
      if (entry.value == list[at].value) continue;
      edited[at] = entry;
      visit(std::as_const(edited));
    }
    edited[at] = list[at];
  }
  for (std::size_t at = 0; at + 1 < list.size(); ++at) {
    std::swap(edited[at], edited[at + 1]);
    visit(std::as_const(edited));
    std::swap(edited[at], edited[at + 1]);
  }
}

}  // namespace capo::exhaustive
