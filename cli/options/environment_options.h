// The options that say what a verdict across ranks is relative to: flags, and model.json, for whose
// members the flags are shorthands. All commands that look at orders share them.
// Tested by environment_test.cpp and plan_flags_test.cpp.

#pragma once

#include "cli/options/command_error.h"
#include "core/base/result.h"
#include "core/diag/source.h"
#include "core/model/model.h"
#include "core/model/plan_options.h"
#include "core/order/schedule.h"
#include "core/text/limits.h"
#include "core/text/stated_transfers.h"

#include <cstdint>
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

/// Whether a flag that says otherwise than the model file is a mistake, or wins.
enum class OnConflict { Refuse, TakeFlag };

struct EnvironmentOptions {
  std::string topology;  ///< a name, or a file
  std::optional<Communicators> communicators;
  std::optional<CommInit> comm_init;
  std::optional<StatedTransfers> transfers;
  std::optional<std::int64_t> message_bytes;
  std::optional<MegatronCalls> p2p;
  std::string model;         ///< a file
  std::string model_config;  ///< the name of a ready configuration
  bool override_file = false;
  bool ep_overlap = false;
  std::vector<std::string> ep_slots;
  std::optional<bool> weight_stream;
  bool assume_defaults = false;
  /// true if the command needs --ep-overlap without Megatron's calls and without exchanges: for a
  /// configuration of Megatron's, or for links on which every layer is taken apart.
  bool overlaps_anyway = false;

  void add_to(CLI::App& app);
  void add_transfers(CLI::App& app, const std::string& group);
  void size_messages(Model& declared) const;
  /// Gives modules what follows from the configuration, or, if there is none, the modules of
  /// --model-config. It comes behind all flags that declare modules.
  void derive_modules(Model& declared) const;

  [[nodiscard]] OnConflict on_conflict() const {
    return override_file ? OnConflict::TakeFlag : OnConflict::Refuse;
  }
  /// Merges flags and model.json; throws CLI::ValidationError if they contradict each other and
  /// nobody says --override.
  [[nodiscard]] Result<Model, CommandError> resolve(const Limits& limits) const;
  /// Throws if neither a call of Megatron's nor an exchange is there to overlap.
  void refuse_idle_overlap(const Model& declared) const;
  /// Places the schedule's stages as declared. Returns the flag at fault and the reason if that, or
  /// a group of ranks, does not fit the input.
  [[nodiscard]] std::optional<Misfit> place(Schedule& schedule, const Model& declared,
                                            const Limits& limits) const;

 private:
  [[nodiscard]] std::optional<Misfit> useless_flag(const Schedule& schedule) const;
};

/// The flags that declare a plan and what its graphs are made of. They are shorthands for members
/// of model.json; `check`, `minimise`, `graph` and `run` have them:
///
///   --plan te --modules linear,grouped-mlp --budget 80GiB
struct PlanFlags {
  std::optional<PlanKind> kind;
  std::optional<Aliases> aliases;
  std::vector<ModuleKind> modules;  ///< one for all chunks, or one for each; empty: not given
  std::optional<std::int64_t> budget;
  std::vector<std::int32_t> model_chunks;  ///< empty: not given
  std::optional<bool> possible_is_error;
  std::optional<bool> warm_up_keeps_outputs;  ///< as the stated version does
  bool paged_stash = false;
  std::uint64_t max_buffers = PlanOptions::kDefaultMaxBuffers;
  std::uint64_t max_unasked_buffers = PlanOptions::kDefaultMaxUnaskedBuffers;

  void add_to(CLI::App& app);
  void add_transfers(CLI::App& app, const std::string& group);
  void size_messages(Model& declared) const;

  /// Throws CLI::ValidationError if a flag contradicts what the model file states, or has no use
  /// without another one.
  void merge_into(Model& declared, OnConflict on_conflict) const;

  /// Finds the flag, or --model, that speaks of more or fewer chunks than a rank of the input has.
  /// A rank without chunks fits everything.
  [[nodiscard]] std::optional<Misfit> misfit(const Schedule& schedule, const Model& declared) const;
};

/// Throws CLI::ValidationError, since a flag says otherwise than the model file, unless flags win.
void refuse_contradiction(const char* flag, OnConflict on_conflict);

/// Puts a flag into its member of the model; both may state it if they agree.
template <typename Value>
void merge(std::optional<Value>& member, const std::optional<Value>& stated, const char* flag,
           OnConflict on_conflict) {
  if (!stated) return;
  if (member && *member != *stated) refuse_contradiction(flag, on_conflict);
  member = stated;
}

}  // namespace capo::cli
