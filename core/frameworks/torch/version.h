// The versions of PyTorch whose torch.distributed.pipelining capo speaks of, and the facts in which
// they differ.
//
//   read_as_torch("0F1.5", torch::kNewest)    reads 0F1
//   torch::predict(input, stages, microbatches, torch::kNewest)
//
// A version is a value that the caller hands in; core/frameworks/te/version.h says how to add
// one. The words of tables, the passes that lower them and what is asked of waits differ from
// release to release, so they are members. Facts that are the same in all versions stay where they
// are used: torch's validator, its transfers and the orders of its multi-stage classes are the same
// in 2.11 and 2.15.
//
// Tested by version_test.cpp.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
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
  WaitSendForward,
  WaitSendBackward,
  WaitReduceGradient,
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

/// From 2.12 on long words come first, so that `0WAIT_SEND_F0` is no W.
inline constexpr std::array<TorchWord, 14> kWordsOf2_15{{
    {"WAIT_REDUCE_GRAD", TorchType::WaitReduceGradient},
    {"WAIT_SEND_F", TorchType::WaitSendForward},
    {"WAIT_SEND_B", TorchType::WaitSendBackward},
    {"REDUCE_GRAD", TorchType::ReduceGradient},
    {"UNSHARD", TorchType::Unshard},
    {"RESHARD", TorchType::Reshard},
    {"SEND_F", TorchType::SendForward},
    {"RECV_F", TorchType::ReceiveForward},
    {"SEND_B", TorchType::SendBackward},
    {"RECV_B", TorchType::ReceiveBackward},
    {"F", TorchType::Forward},
    {"I", TorchType::BackwardInput},
    {"B", TorchType::FullBackward},
    {"W", TorchType::BackwardWeight},
}};

struct Slot;
struct Lowered;
struct Table;
struct Policy;
[[nodiscard]] Lowered add_send_receive(const std::vector<std::vector<Slot>>& rows,
                                       const std::vector<std::int64_t>& rank_of_stage);
[[nodiscard]] Lowered add_send_receive_wait(const std::vector<std::vector<Slot>>& rows,
                                            const std::vector<std::int64_t>& rank_of_stage);
[[nodiscard]] Lowered prepare_2_11(const Table& table, const Policy& policy);
[[nodiscard]] Lowered prepare_2_15(const Table& table, const Policy& policy);
[[nodiscard]] std::string refuse_waits(const std::vector<std::vector<Slot>>& rows);

struct Version {
  std::string_view release;
  std::string_view number;  ///< the release of that line which was read
  std::string_view date;    ///< of its wheels
  std::string_view commit;
  std::span<const TorchWord> words;
  decltype(&add_send_receive) lower;  ///< the transfers of a compute-only table
  decltype(&prepare_2_15) prepare;    ///< all passes
  bool counts_slots;                  ///< it gives activations slots
  decltype(&refuse_waits) refuse;     ///< the waits of a table with transfers; null: not looked at
};

/// From the oldest to the newest.
inline constexpr std::array kVersions{Version{.release = "2.11",
                                              .number = "2.11.0",
                                              .date = "2026-03-23",
                                              .commit = "70d99e998",
                                              .words = kWordsOf2_11,
                                              .lower = add_send_receive,
                                              .prepare = prepare_2_11,
                                              .counts_slots = false,
                                              .refuse = nullptr},
                                      Version{.release = "2.15",
                                              .number = "2.15.0",
                                              .date = "2026-10-27",
                                              .commit = "d0f2af8b6",
                                              .words = kWordsOf2_15,
                                              .lower = add_send_receive_wait,
                                              .prepare = prepare_2_15,
                                              .counts_slots = true,
                                              .refuse = refuse_waits}};

inline constexpr const Version& kNewest = kVersions.back();

}  // namespace capo::torch
