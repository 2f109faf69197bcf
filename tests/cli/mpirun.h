// A test whose program runs in several processes that mpirun starts.
//
//   class Mine : public Mpi {};
//   const Outcome two = mpirun(2, {"run", "step.order", "--transport", "mpi"});
//
// A test is skipped and says so where no MPI was found when it was configured.

#pragma once

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace capo {

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef CAPO_MPIRUN
    GTEST_SKIP()
        << "configured where no MPI was found, or for ThreadSanitizer, which MPI is not for";
#endif
  }

  // Runs capo in so many processes.
  [[nodiscard]] testing_support::Outcome mpirun(int processes,
                                                const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"--allow-run-as-root", "--oversubscribe", "-n",
                                 std::to_string(processes), testing_support::program_under_test()};
    all.insert(all.end(), arguments.begin(), arguments.end());
#ifdef CAPO_MPIRUN
    // MPI itself leaves memory behind, which is no leak of capo's.
    return testing_support::run_capo(all, {.directory = folder_.path(),
                                           .environment = {"ASAN_OPTIONS=detect_leaks=0"},
                                           .program = CAPO_MPIRUN});
#else
    return {};
#endif
  }

  // Writes a published schedule as "step.order"; tells whether there is one of that setting.
  [[nodiscard]] bool publish(const std::string& name, int ranks, int microbatches) const {
    const testing_support::Outcome made =
        testing_support::run_capo({"generate", name, "--ranks", std::to_string(ranks),
                                   "--microbatches", std::to_string(microbatches)});
    if (made.exit_code == 0) folder_.write("step.order", made.out);
    return made.exit_code == 0;
  }

  const testing_support::ScratchFolder folder_;
};

// A report without what differs from run to run.
inline nlohmann::json without_times(const std::string& text) {
  nlohmann::json report = nlohmann::json::parse(text, nullptr, false);
  report.erase("times");
  report.erase("transport");
  report.erase("edges");
  return report;
}

}  // namespace capo
