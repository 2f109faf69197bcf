// The consult functions ask the profiles how each of these programs would answer an input.
//
// TE and Megatron capture one rank's list at a time, so a schedule of several ranks is put to them
// rank by rank, and accepted if every list is. An order that their notation cannot say is not put
// at all.
//
// Tested by consult_test.cpp, te_captured_test.cpp and tests/cli/optimise_for_test.cpp.

#pragma once

#include "core/frameworks/megatron/mcore.h"
#include "core/frameworks/te/predict.h"
#include "core/frameworks/torch/version.h"
#include "core/order/input.h"
#include "core/profiles/opinion.h"
#include "core/rules/check.h"

#include <optional>
#include <string>
#include <vector>

namespace capo {

struct ConsultOptions {
  te::Options te;
  std::optional<mcore::Configuration> megatron;
  /// It holds what is declared of modules and their device, for te and mcore, and is the caller's;
  /// null if nothing is.
  const ModuleTable* modules = nullptr;
  Environment environment;
};

[[nodiscard]] Opinion consult_te(const Input& input, const ConsultOptions& options);
[[nodiscard]] Opinion consult_mcore(const Input& input, const ConsultOptions& options);
[[nodiscard]] Opinion consult_torch(const Input& input,
                                    const torch::Version& version = torch::kNewest);

enum class Profile { Sound, Te, Mcore, Torch };

/// A profile as it is asked for, such as "torch@2.11", and the version that it is of.
struct AskedProfile {
  Profile profile = Profile::Sound;  ///< capo's own verdict, which is always given
  std::string name = "sound";
  const te::Version* te = &te::kNewest;
  const torch::Version* torch = &torch::kNewest;
};

/// Every profile that can be asked for: capo's own and the frameworks' names, which mean their
/// newest versions, and then each version.
[[nodiscard]] std::vector<AskedProfile> known_profiles();

/// The opinion of a framework, under the name by which it was asked for.
[[nodiscard]] Opinion opinion_of(const AskedProfile& asked, const Input& input,
                                 ConsultOptions options);

/// Whom an order is for.
enum class Recipient { Anybody, Te, Torch, Mcore };

/// Says why the recipient refuses an order, or takes it and runs it wrong; nullopt if it does
/// neither. Te is asked under plan `te` as well, since it takes lists whose gradients its reuse of
/// memory makes wrong (B01, B02).
[[nodiscard]] std::optional<std::string> refused_by(Recipient recipient, const Schedule& schedule);

/// The check. For a list that is unsound and that TE captures all the same under plan `te`, the
/// result also says what its graphs would do to each other.
[[nodiscard]] CheckResult check_planned(const Input& input, const CheckOptions& options);

}  // namespace capo

namespace capo::te {

/// The result of plan `te` for a list that TE takes although its orders are not sound: it has the
/// hazards of the graphs that TE captures. nullopt if another plan is asked for.
[[nodiscard]] std::optional<PlanResult> plan_of_captured(const Input& input,
                                                         const CheckOptions& options);

}  // namespace capo::te
