// The exit codes of capo. Scripts depend on these numbers; docs/cli.md lists them.

#pragma once

#include "core/base/error.h"
#include "core/rules/check.h"
#include "core/text/refusal.h"

namespace capo::cli {

enum ExitCode : int {
  kAccepted = 0,
  kFindings = 1,
  kUsage = 2,
  kMalformed = 3,    ///< input unreadable or not in the language
  kNoVerdict = 4,    ///< a limit was reached
  kEnvironment = 5,  ///< output not writable, no device
  kInternal = 70,
  kInterrupted = 130,
};

[[nodiscard]] inline ExitCode exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Accepted:
      return kAccepted;
    case Verdict::Rejected:
      return kFindings;
    case Verdict::NoVerdict:
      return kNoVerdict;
  }
  return kInternal;
}
[[nodiscard]] inline ExitCode exit_code_of(Refusal::Kind kind) {
  return kind == Refusal::Kind::Limit ? kNoVerdict : kMalformed;
}
[[nodiscard]] inline ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Unreadable:
      return kMalformed;
    case ErrorKind::Limit:
      return kNoVerdict;
    case ErrorKind::Environment:
      return kEnvironment;
  }
  return kInternal;
}

}  // namespace capo::cli
