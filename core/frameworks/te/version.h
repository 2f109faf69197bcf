// The versions of TransformerEngine that capo speaks of, and the facts in which they differ.
//
//   te::predict(list, layers, need_wgrad, {.version = &te::kNewest})
//   gradients::contract(kind, configuration, Contract::Te, te::kNewest)
//
// A version is a value that the caller hands in, and no function asks which one it is. To add
// one, write its row in kVersions with today's beside it. A fact that differs becomes a member
// here, with the old answer in the old row, and the code that knew the one answer reads the member.
// Whole tables and functions are members too, as pointers (`cells`). Facts that are the same in all
// versions stay where they are used. Line numbers in this folder are those of the oldest version.
//
// Tested by version_test.cpp.

#pragma once

#include <array>
#include <string_view>

namespace capo::gradients {
struct TeCells;
extern const TeCells kCellsOfD0067d0da;  // contract.cpp
}  // namespace capo::gradients

namespace capo::te {

/// The end of a capture: accepted, or the kind of error that is raised.
enum class Kind {
  Accepted,
  ValueError,      ///< TE.ValueError: an explicit check raises it
  TypeErrorTe,     ///< TE.TypeError
  RuntimeErrorTe,  ///< TE.RuntimeError
  PyValueError,    ///< py.*: Python raises it by accident
  PyOverflowError,
  PyTypeError,
  PyIndexError,
  PyKeyError,
  PyAttributeError,
  PyZeroDivisionError,
  PyAssertionError,
  TorchRuntimeError,  ///< it is raised inside PyTorch
  StoreRuntimeError,  ///< the empty WeightGradStore raises it
};

struct Version {
  std::string_view release;
  std::string_view commit;       ///< or a release's tag
  std::string_view date;         ///< of that commit or release
  Kind second_backward;          ///< raised by a second backward of one graph
  std::string_view second_text;  ///< that error in words
  bool warm_up_keeps_outputs;    ///< the passes before capture let go of outputs at their end only
  /// backward_dw() of linear and its kin does not ask whether there is a bias gradient;
  /// layernorm-mlp's does not in any version.
  bool converts_missing_bias;
  const gradients::TeCells* cells;
};

/// From the oldest to the newest. graph.py of release 2.19.0 is that of d0067d0da, byte for byte.
inline constexpr std::array kVersions{
    Version{
        .release = "2.19",
        .commit = "d0067d0da",
        .date = "2026-08-22",
        .second_backward = Kind::PyAttributeError,
        .second_text =
            "a second backward of one graph; a module whose last op is PyTorch's own raises "
            "torch.RuntimeError instead",
        .warm_up_keeps_outputs = true,
        .converts_missing_bias = true,
        .cells = &gradients::kCellsOfD0067d0da,
    },
    Version{
        .release = "2.20",
        .commit = "v2.20.2",
        .date = "2026-10-05",
        .second_backward = Kind::PyKeyError,
        .second_text = "a second backward of one graph, whose outputs the first one has taken",
        .warm_up_keeps_outputs = false,
        .converts_missing_bias = false,
        .cells = &gradients::kCellsOfD0067d0da,
    },
};

inline constexpr const Version& kNewest = kVersions.back();

}  // namespace capo::te
