// The options that say what a verdict across ranks is relative to: flags, and model.json, for which
// the flags are shorthands. `check`, `convert` and `graph` share them.

#pragma once

#include "cli/options/command_error.h"
#include "core/base/result.h"
#include "core/diag/source.h"
#include "core/model/model.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace capo::cli {

/// A flag that does not fit the input.
struct Misfit {
  const char* flag;
  std::string why;
  bool limit = false;  ///< it fits, but is larger than a limit allows
};

/// A model file as it stands, and what it declares.
struct ModelFile {
  Source source;
  Model model;
};

[[nodiscard]] Result<ModelFile, CommandError> read_model_file(const std::string& path,
                                                              const Limits& limits);

struct EnvironmentOptions {
  std::string topology;  ///< a name, or a file
  std::string communicators;
  std::string transfers;
  std::string p2p;
  std::string model;  ///< a file
  bool ep_overlap = false;
  std::vector<std::string> ep_slots;
  bool weight_stream = false;
  /// The command takes --ep-overlap for more than Megatron's calls and exchanges: of a
  /// configuration, or on links where every layer is taken apart.
  bool overlaps_anyway = false;

  void add_to(CLI::App& app);

  /// Flags and model.json together; throws CLI::ValidationError where they contradict each other.
  [[nodiscard]] Result<Model, CommandError> resolve(const Limits& limits) const;
  /// Throws where neither a call of Megatron's nor an exchange is there to overlap.
  void refuse_idle_overlap(const Model& declared) const;
  /// Places the schedule's stages as declared. Returns the flag at fault and the reason if that, or
  /// a group of ranks, does not fit the input.
  [[nodiscard]] std::optional<Misfit> place(Schedule& schedule, const Model& declared,
                                            const Limits& limits) const;

 private:
  [[nodiscard]] std::optional<Misfit> useless_flag(const Schedule& schedule) const;
};

/// Whether a group of ranks dispatches or combines tokens.
[[nodiscard]] bool declares_exchanges(const Model& declared);

/// Throws CLI::ValidationError: a flag says otherwise than the model file.
[[noreturn]] void refuse_contradiction(const char* flag);

/// A flag into its member of the model; both may state it if they agree.
template <typename Value>
void merge(std::optional<Value>& member, const std::optional<Value>& stated, const char* flag) {
  if (!stated) return;
  if (member && *member != *stated) refuse_contradiction(flag);
  member = stated;
}

}  // namespace capo::cli
