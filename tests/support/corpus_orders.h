// Every order of the corpora and the examples, with the flags that it is checked with.
//
//   tests/corpus/rules/T09/bad-ring.order    --comm per-rank     from bad-ring.args
//   tests/corpus/threads/A1/megatron-.../broken.te               from broken.args or args
//   tests/corpus/input, examples             as they are
//   tests/corpus/cli, input/batch            the files in a case and the lines of a batch, which
//                                            are written to a folder
//
// Texts that are no orders are among them, as people hand them in. Tested through the tests that
// use it, each of which says how many orders it saw at least.

#pragma once

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace capo::testing_support {

struct CorpusOrder {
  std::filesystem::path file;      ///< the flags name others beside it
  std::vector<std::string> flags;  ///< of `capo check`

  /// The word of --form for its text.
  [[nodiscard]] std::string form() const;
  /// The report in JSON, with more flags; of `text` in place of the file's if there is one.
  [[nodiscard]] Outcome check(const std::vector<std::string>& more,
                              const std::optional<std::string>& text = std::nullopt) const;
};

/// Sorted by file; orders that stand in other files are written to the folder.
[[nodiscard]] std::vector<CorpusOrder> corpus_orders(const ScratchFolder& folder);

}  // namespace capo::testing_support
