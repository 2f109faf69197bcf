// What `capo explain contract` prints: both tables of the contract, a row a cell, what is wrong
// with TransformerEngine's, and the facts that no cell holds.
//
// docs/gradients.md holds the same text, which tests/cli/explain_contract_test.cpp compares.

#pragma once

#include <string>

namespace capo::gradients {

[[nodiscard]] std::string contract_page();

}  // namespace capo::gradients
