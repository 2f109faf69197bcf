// Steps whose ranks exchange rows of tokens: groups of them, copies of an order, and a transport
// that sees each message and may lose one. Tested by the tests that use it.

#pragma once

#include "run/execute/transport.h"
#include "run/setup/replicas.h"
#include "tests/run/running.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capo::run {

/// Ranks with the same actions and nothing else to do with each other.
inline std::string of_alike_ranks(std::int32_t ranks, std::string_view actions) {
  std::string text = fmt::format("capo 1\nranks {}\nmicrobatches {}\n", ranks,
                                 actions.find("1.1") == std::string_view::npos ? 1 : 2);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    text += fmt::format("rank {}: {}\n", rank, actions);
  }
  return text;
}

inline CollectiveGroup experts_of(std::vector<std::int32_t> members) {
  return {.name = "ep",
          .members = std::move(members),
          .actions = {Kind::DispatchForward, Kind::CombineForward, Kind::DispatchBackward,
                      Kind::CombineBackward}};
}

inline CheckOptions exchanged_over(Module module, std::vector<std::int32_t> members) {
  CheckOptions options = every_layer(std::move(module));
  options.groups = {experts_of(std::move(members))};
  return options;
}

inline Module of_rows(ModuleKind kind, std::int64_t rows) {
  Module module = small(kind);
  module.shape.tokens = rows;
  return module;
}

/// Messages in one process, of which replays may lose one.
class Losing final : public Transport {
 public:
  Losing(Engine& engine, std::set<Message>& crossed, std::optional<Message> lost)
      : within_(engine), crossed_(crossed), lost_(std::move(lost)) {}

  void expect(const Message& message, std::byte* place) override { within_.expect(message, place); }
  void begin_step() override { replays_ = true; }
  void end_step() override { replays_ = false; }
  void send(StreamId stream, const Message& message, const std::byte* from) override {
    if (message.channel.communicator == kCrossingsThrough) crossed_.insert(message);
    within_.send(stream, message, from);
  }
  void receive(StreamId stream, const Message& message) override {
    within_.receive(stream, message);
  }
  void finish(StreamId stream, const Message& message, End end) override {
    if (!replays_ || message != lost_) within_.finish(stream, message, end);
  }
  [[nodiscard]] const std::optional<Error>& error() const override { return within_.error(); }

 private:
  InProcess within_;
  std::set<Message>& crossed_;
  std::optional<Message> lost_;
  bool replays_ = false;
};

inline TransportFactory losing(std::set<Message>& crossed,
                               std::optional<Message> lost = std::nullopt) {
  return
      [&crossed, lost](Engine& engine) { return std::make_unique<Losing>(engine, crossed, lost); };
}

/// How many blocks of rows travel in a replay; expects gradients to differ wherever one does not.
inline std::size_t blocks_that_show(const Replicas& copies) {
  const auto is_equal = [&](std::set<Message>& crossed, std::optional<Message> lost) {
    return run_verified(copies.input, copies.options,
                        {.replays = 1, .transport = losing(crossed, std::move(lost))})
        .bit_equal;
  };
  std::set<Message> crossed;
  EXPECT_TRUE(is_equal(crossed, std::nullopt));
  for (const Message& lost : std::set<Message>(crossed)) {
    EXPECT_FALSE(is_equal(crossed, lost))
        << lost.number << " from rank " << lost.channel.sender << " to " << lost.channel.receiver;
  }
  return crossed.size();
}

/// The copies of an order, whose groups are those of one copy.
inline Replicas copies_of(const char* order, const CheckOptions& options, std::int32_t count) {
  auto copies = replicas_of(typed(order), options, count);
  if (!copies) throw std::invalid_argument(copies.error());
  return *std::move(copies);
}

}  // namespace capo::run
