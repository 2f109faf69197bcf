// An order of which nothing is made, since it is not accepted: Python sees a capo.OrderError, which
// is a RuntimeError as well, as of all else that cannot be made.
//
//   throw NotAccepted(report_of(input, result, {}), "<order> was not run: it is rejected");
//
// Tested by python/tests/test_run.py, test_simulate.py and test_wired.py.

#pragma once

#include "core/report/report.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace capo::python {

/// The report of such an order as capo.Report asks for it.
struct ToldReport {
  Verdict verdict;
  std::string text;
  std::string json;
};

class NotAccepted : public std::runtime_error {
 public:
  NotAccepted(const Report& report, const std::string& why)
      : std::runtime_error(why),
        report_(std::make_shared<const ToldReport>(
            ToldReport{.verdict = report.verdict,
                       .text = to_text(report),
                       .json = to_json(report, JsonLayout::Indented)})) {}

  [[nodiscard]] const ToldReport& report() const { return *report_; }

 private:
  std::shared_ptr<const ToldReport> report_;  // an exception is copied without another one
};

}  // namespace capo::python
