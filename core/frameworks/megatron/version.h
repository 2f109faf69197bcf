// The versions of Megatron-LM that capo speaks of.
//
//   megatron::kNewest.commit    "d98e8a64dd"
//
// No fact of this folder differs between them: the functions that are modelled here are alike in
// megatron-core 0.19.2. A fact that comes to differ becomes a member of Version, with an answer in
// each row, and its reader takes a `const Version&`; core/frameworks/te/version.h shows how.
//
// Tested by version_test.cpp.

#pragma once

#include <array>
#include <string_view>

namespace capo::megatron {

struct Version {
  std::string_view release;
  std::string_view commit;
  std::string_view date;  ///< of the commit
};

/// From the oldest to the newest.
inline constexpr std::array kVersions{
    Version{.release = "0.19", .commit = "d98e8a64dd", .date = "2026-08-22"}};

inline constexpr const Version& kNewest = kVersions.back();

}  // namespace capo::megatron
