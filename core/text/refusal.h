// The reason why a text is no schedule: it is not in the language, or larger than a limit allows.
//
// A reader stops at its first refusal, since what follows a syntax error is guesswork. A refusal is
// a Diagnostic of family Input, so that it is reported like every other finding.

#pragma once

#include "core/base/result.h"
#include "core/diag/diagnostic.h"

#include <string>
#include <utility>

namespace capo {

struct Refusal {
  enum class Kind {
    Malformed,  ///< exit 3
    Limit,      ///< exit 4
  };

  Kind kind = Kind::Malformed;
  Diagnostic finding;
};

/// The rules of the readers, by id.
inline constexpr std::string_view kMalformedRule = "I01";
inline constexpr std::string_view kLimitRule = "I02";

template <typename T>
using Read = Result<T, Refusal>;

[[nodiscard]] inline Refusal malformed(Span span, std::string message, std::string help = {}) {
  return {.kind = Refusal::Kind::Malformed,
          .finding = {.rule = kMalformedRule,
                      .family = Family::Input,
                      .message = std::move(message),
                      .labels = {{span, ""}},
                      .help = {.text = std::move(help)}}};
}

[[nodiscard]] inline Refusal over_limit(Span span, std::string message, std::string flag) {
  return {.kind = Refusal::Kind::Limit,
          .finding = {.rule = kLimitRule,
                      .family = Family::Input,
                      .message = std::move(message),
                      .labels = {{span, ""}},
                      .help = {.text = "raise the limit with " + std::move(flag)}}};
}

}  // namespace capo
