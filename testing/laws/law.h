// A law: what holds of every order, whoever made it, and how a property asks for it.
//
//   rc::check("what my generator makes is accepted", [] {
//     require(laws::is_accepted(*my_orders()));
//   });
//
// A law is a function: nothing where it holds, else what does not, in words that name the entries.
// So it can be used with any library of tests; require() is for rapidcheck.

#pragma once

#include <rapidcheck.h>

#include <optional>
#include <string>

namespace capo::testing {

using Breach = std::optional<std::string>;

/// Fails the property that it is called in.
inline void require(const Breach& breach) {
  if (breach) RC_FAIL(*breach);
}

}  // namespace capo::testing
