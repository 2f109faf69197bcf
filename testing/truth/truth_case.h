// One order of the truth campaign with all that a run of it needs: a value, so that a thread can
// take it, and so that a smaller one can be made of it.

#pragma once

#include "core/model/environment.h"
#include "core/model/plan_options.h"
#include "core/order/input.h"
#include "core/rules/check_options.h"
#include "run/run.h"
#include "run/setup/group_sizes.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace capo::testing {

/// The maker of a case knows so much of its verdict.
enum class Made {
  Sound,   ///< has to be accepted; a rejection is a false alarm
  Faulty,  ///< has to be rejected, by `rule` among others
  Drawn,   ///< may be accepted or rejected
};

struct TruthCase {
  std::uint64_t number = 0;
  std::string words;  ///< "zb-h1 of 2 ranks, 4 microbatches", or the order itself
  std::string module;
  std::string fault = {};  ///< "delay-weight-past-forward"; empty: none was put in
  Made made = Made::Drawn;
  std::string_view rule = {};  ///< the fault's rule; the text outlives the case
  Input input;
  CheckOptions declared;  ///< a user's declarations; sizes that are left out are filled in
  /// So many copies of the order are judged and run as one, whose reductions meet.
  std::int32_t replicas = 1;
  // Values for the run of what is not declared of how ranks communicate.
  Communicators layout = Communicators::PerRank;
  TransferMode mode = TransferMode::Rendezvous;
  Granularity graphs = Granularity::PerAction;
  run::SizeKind sizes = run::SizeKind::Random;
  std::uint64_t seed = 1;  ///< seed of all numbers that are drawn for its run
  std::uint32_t replays = 3;
  run::Float64 float64 = run::Float64::EveryReplay;
};

}  // namespace capo::testing
