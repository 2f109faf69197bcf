// The versions of PyTorch whose torch.distributed.pipelining capo speaks of, and the facts in which
// they differ.
//
//   read_as_torch("0F1.5", torch::kNewest)    reads 0F1
//   torch::predict(input, stages, microbatches, torch::kNewest)
//
// A version is a value that the caller hands in; core/frameworks/te/version.h says how to add
// one. The words of tables and the passes that lower them differ from release to release, so they
// are members. Facts that are the same in all versions stay where they are used.
//
// Tested by version_test.cpp.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace capo {

enum class TorchType : std::uint8_t {
  Forward,
  BackwardInput,
  BackwardWeight,
  Unshard,
  Reshard,
  SendForward,
  ReceiveForward,
  SendBackward,
  ReceiveBackward,
  FullBackward,
  Overlap,
  ReduceGradient,
};

}  // namespace capo

namespace capo::torch {

struct TorchWord {
  std::string_view word;
  TorchType type;
};

/// The words stand in the order of torch's pattern, whose first alternative that fits wins: `0FOO`
/// is F.
inline constexpr std::array<TorchWord, 11> kWordsOf2_11{{
    {"F", TorchType::Forward},
    {"I", TorchType::BackwardInput},
    {"B", TorchType::FullBackward},
    {"W", TorchType::BackwardWeight},
    {"UNSHARD", TorchType::Unshard},
    {"RESHARD", TorchType::Reshard},
    {"REDUCE_GRAD", TorchType::ReduceGradient},
    {"SEND_F", TorchType::SendForward},
    {"RECV_F", TorchType::ReceiveForward},
    {"SEND_B", TorchType::SendBackward},
    {"RECV_B", TorchType::ReceiveBackward},
}};

struct Slot;
struct Lowered;
[[nodiscard]] Lowered add_send_receive(const std::vector<std::vector<Slot>>& rows,
                                       const std::vector<std::int64_t>& rank_of_stage);

struct Version {
  std::string_view release;
  std::span<const TorchWord> words;
  decltype(&add_send_receive) lower;  ///< the passes that lower a compute-only table
};

/// From the oldest to the newest.
inline constexpr std::array kVersions{
    Version{.release = "2.11", .words = kWordsOf2_11, .lower = add_send_receive}};

inline constexpr const Version& kNewest = kVersions.back();

}  // namespace capo::torch
