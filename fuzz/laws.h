// The laws hold for every text there is; a fuzz target feeds one reader, and a law that breaks
// aborts.
//
//   a text is refused with a reason and places inside it, or read;
//   what is read is checked, put to the profiles and reported without a crash, and its reports
//   parse; what can be printed in a form is read back from it as the same, and with the same
//   verdict.
//
// Limits are small, so that a fuzzer meets both sides of each.

#pragma once

#include "core/frameworks/te/predict.h"
#include "core/input/load.h"
#include "core/text/limits.h"
#include "core/text/refusal.h"

#include <string>

namespace capo::fuzz {

/// Says which law broke and aborts, which libFuzzer takes for a finding.
void require(bool law, const char* words);

[[nodiscard]] Limits small_limits();

/// A printed text may be longer than what it was read from; nothing else may grow.
[[nodiscard]] Limits limits_of_printed();

/// A refusal has a reason, places inside its text, and reports that parse.
void require_refused(const Source& source, const Refusal& refusal);

/// Checks all laws of a text.
void examine(std::string text, LoadOptions options, te::Options te);

}  // namespace capo::fuzz
