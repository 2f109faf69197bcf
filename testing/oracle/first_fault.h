// The second opinion on where an order goes wrong first: which rule of the model says so, and at
// which entry.
//
//   [1, -1, -1, 1]            S23 at 2: the second backward comes before the second forward
//   [2, 1, -1, -2]            nothing; as a chain D03 at 0: chunk 2 reads what chunk 1 has not made
//
// In a bare list nothing is declared, and chunks have nothing to do with each other. In a chain
// chunk 2 reads the output of chunk 1, and so on: an interpreter runs the order entry by entry over
// the buffers between the chunks and looks for the first that is not filled.
//
// Which rules there are and where their findings stand is written in docs/model.md, "Where a
// finding stands", and is the only thing that this was written from; whether there is any is also
// what oracle.h says of soundness, from other sources. Of several findings the first is that at the
// first entry, one of the list as a whole before all; at one entry, that of the rule with the
// smaller id.
//
// It shares no code with the product and includes only the standard library, so that one mistake
// cannot hide in both. Tested by tests/testing/oracle/first_fault_test.cpp; tests/exhaustive holds
// the product to it.

#pragma once

#include "testing/oracle/oracle.h"

#include <compare>
#include <optional>
#include <string_view>
#include <vector>

namespace capo::oracle {

struct Fault {
  static constexpr int kWholeList = -1;

  int position = kWholeList;  ///< the entry's place, from 0
  std::string_view rule;      ///< its id

  friend auto operator<=>(const Fault&, const Fault&) = default;
};

/// Judges a bare list; nullopt if it has no fault.
std::optional<Fault> first_fault(const std::vector<Number>& order);

/// Judges a rank that holds all chunks as a chain.
std::optional<Fault> first_fault_of_chain(const std::vector<Number>& order);

}  // namespace capo::oracle
