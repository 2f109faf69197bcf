// Programs in words, for tests that write out what is launched.
//
//   0: F1.0 from given 1.0                             an op: its stream, its parts, and what it
//   1: deliver output of 1.0 to 1:1.0; after 0         waits for of other streams, by number
//
// "1.0" is chunk and microbatch, with "rank:" in front where there are several; "1.0.2" is with a
// layer where a chunk has more than one.

#pragma once

#include "core/text/action_token.h"
#include "run/execute/program.h"
#include "tests/core/graph/order_text.h"
#include "tests/core/plan/planned.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace capo::run {

class ProgramWords {
 public:
  ProgramWords(const BufferTable& table, const Program& program)
      : table_(table), program_(program), cells_(table) {}

  /// Every op; those without parts are "-".
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      std::string line = std::to_string(program_.ops[op].stream) + ":";
      const std::vector<std::string> parts = acts_of(op);
      if (parts.empty()) line += " -";
      for (std::size_t i = 0; i < parts.size(); ++i) line += (i == 0 ? " " : ", ") + parts[i];
      const std::set<std::uint32_t> waits(program_.waits[op].begin(), program_.waits[op].end());
      for (const std::uint32_t before : waits) {
        line += (before == *waits.begin() ? "; after " : " ") + std::to_string(before);
      }
      all.push_back(line);
    }
    return all;
  }

  [[nodiscard]] std::vector<std::string> acts_of(std::size_t op) const {
    std::vector<std::string> all;
    for (std::uint32_t at = program_.ops[op].first_part; at < program_.ops[op].end_part; ++at) {
      all.push_back(text(program_.parts[at]));
    }
    return all;
  }

  /// All parts in the order of launches, whatever their ops.
  [[nodiscard]] std::vector<std::string> parts() const {
    std::vector<std::string> all;
    for (const OpPart& part : program_.parts) all.push_back(text(part));
    return all;
  }

 private:
  [[nodiscard]] std::string place(std::int32_t rank, std::int32_t chunk,
                                  std::int32_t microbatch) const {
    const std::string of = std::to_string(chunk) + "." + std::to_string(microbatch);
    return table_.ranks() > 1 ? std::to_string(rank) + ":" + of : of;
  }
  [[nodiscard]] std::string cell(std::uint32_t id) const {
    const Cells::Cell at = cells_.at(id);
    return place(at.rank, at.chunk, at.microbatch);
  }
  [[nodiscard]] std::string landing(const OpPart& part) const {
    return cell(program_.transfers[part.to].cell);
  }
  [[nodiscard]] std::string buffer(BufferId id) const {
    const Buffer at = table_.at(id);
    std::string of =
        std::string(name_of(at.kind)) + " of " + place(at.rank, at.chunk, at.microbatch);
    if (table_.layers(at.rank, at.chunk) > 1) of += "." + std::to_string(at.layer);
    return of;
  }
  [[nodiscard]] std::string exchange(std::uint32_t id) const {
    return "exchange " + std::to_string(id);
  }
  [[nodiscard]] std::string origin(const Origin& from) const {
    switch (from.kind) {
      case Origin::Kind::Given:
        return "given " + cell(from.id);
      case Origin::Kind::Buffer:
        return buffer(from.id);
      case Origin::Kind::Landing:
        return "landing " + cell(from.id);
      case Origin::Kind::Exchanged:
        return exchange(from.id);
      case Origin::Kind::Permuted:
        return "within " + exchange(from.id);
    }
    return "";
  }
  [[nodiscard]] std::string text(const OpPart& part) const {
    switch (part.kind) {
      case OpPart::Kind::Work: {
        const Work& work = part.work;
        std::string token = to_token(
            {.kind = work.kind, .chunk = work.chunk, .microbatch = work.microbatch}, Naming::Named);
        if (table_.ranks() > 1) token = std::to_string(part.rank) + ":" + token;
        if (work.layer != kAllLayers) token += "." + std::to_string(work.layer);
        return work.kind == Kind::BackwardWeight ? token : token + " from " + origin(part.origin);
      }
      case OpPart::Kind::Send:
        return "send " + buffer(part.from) + " to " + landing(part);
      case OpPart::Kind::Receive:
        return "receive at " + landing(part);
      case OpPart::Kind::Deliver:
        return "deliver " + buffer(part.from) + " to " + landing(part);
      case OpPart::Kind::Delivered:
        return "delivered to " + landing(part);
      case OpPart::Kind::Permute:
        return "permute " + origin(part.origin) + " into " + exchange(part.to);
      case OpPart::Kind::Return:
        return "return " + exchange(part.to) +
               (part.from == kNoBuffer ? "" : " into " + buffer(part.from));
      case OpPart::Kind::Collect:
        return "collect " + buffer(part.from) + " at " + cell(part.to);
      case OpPart::Kind::Reduce: {
        const Reduction& reduction = program_.reductions[part.to];
        std::string ranks;
        for (const std::int32_t rank : reduction.ranks) ranks += " " + std::to_string(rank);
        return "reduce chunk " + std::to_string(reduction.chunk) + " over ranks" + ranks;
      }
      case OpPart::Kind::Cross: {
        const Crossing& crossing = program_.crossings[part.to];
        std::string words = "cross";
        for (const std::uint32_t id : crossing.out) words += ", " + exchange(id) + " out";
        for (const std::uint32_t id : crossing.back) words += ", " + exchange(id) + " back";
        return words;
      }
    }
    return "";
  }

  const BufferTable& table_;
  const Program& program_;
  Cells cells_;
};

/// A step of an order file without its first line, and what becomes of it.
class Launched {
 public:
  explicit Launched(Schedule schedule, const PlanOptions& options = {},
                    const Environment& environment = {}, std::vector<CollectiveGroup> groups = {},
                    const std::vector<Forced>& forced = {})
      : step(std::move(schedule), {}, options, environment, std::move(groups)) {
    auto found = program_of(step.table(), step.course(), forced);
    if (!found) throw std::invalid_argument("there is no order to launch it in");
    program = *std::move(found);
  }
  explicit Launched(const std::string& statements, const PlanOptions& options = {},
                    const Environment& environment = {}, std::vector<CollectiveGroup> groups = {})
      : Launched(testing_support::read_schedule(statements), options, environment,
                 std::move(groups)) {}

  [[nodiscard]] ProgramWords words() const { return {step.table(), program}; }

  testing_support::PlannedStep step;
  Program program;
};

}  // namespace capo::run
