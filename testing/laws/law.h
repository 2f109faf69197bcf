// A law holds of every order, whoever made it; a property asks for it with require().
//
//   rc::check("what my generator makes is accepted", [] {
//     require(laws::is_accepted(*my_orders()));
//   });
//
// A law is a function that returns nullopt if it holds, or else the breach in words that name the
// entries. So it can be used with any library of tests; require() is for rapidcheck.

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
