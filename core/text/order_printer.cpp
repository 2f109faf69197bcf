#include "core/text/order_text.h"

#include "core/text/action_token.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace capo {

namespace {

constexpr std::size_t kLineWidth = 100;

// A line of tokens, which goes on in the next where it is full.
class TokenLine {
 public:
  TokenLine(std::string& out, std::string lead) : out_(out), line_(std::move(lead)) {}
  void add(const std::string& token) {
    if (line_.size() + 1 + token.size() > kLineWidth) {
      out_ += line_ + "\n";
      line_ = " ";
    }
    line_ += " " + token;
  }
  void end() { out_ += line_ + "\n"; }

 private:
  std::string& out_;
  std::string line_;
};

void print_entries(std::string& out, std::string lead, const std::vector<Entry>& order,
                   const std::vector<Reset>& resets, Naming naming) {
  TokenLine line(out, std::move(lead));
  auto reset = resets.begin();
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (; reset != resets.end() && reset->behind <= i; ++reset) line.add(to_token(*reset));
    const Entry& entry = order[i];
    std::string token = to_token(entry.action(), naming);
    const bool closes = entry.group != Group::Alone &&
                        (i + 1 == order.size() || order[i + 1].group != Group::Continues);
    if (entry.group == Group::Opens) token.insert(0, "(");
    if (closes) token += ")";
    line.add(token);
  }
  for (; reset != resets.end(); ++reset) line.add(to_token(*reset));
  line.end();
}

void print_chunks(std::string& out, std::size_t r, std::string_view what,
                  const std::vector<Delay>& delay, Delay wanted) {
  std::vector<std::size_t> chunks;
  for (std::size_t c = 0; c < delay.size(); ++c) {
    if (delay[c] == wanted) chunks.push_back(c + 1);
  }
  if (!chunks.empty()) out += fmt::format("rank {} {} {}\n", r, what, fmt::join(chunks, ","));
}

void print_layers(std::string& out, std::size_t r, const Layers& layers) {
  switch (layers.form) {
    case Layers::Form::Unstated:
      return;
    case Layers::Form::Null:
      out += fmt::format("rank {} layers none\n", r);
      return;
    case Layers::Form::Count:
      out += fmt::format("rank {} layers {}\n", r, layers.values.front());
      return;
    case Layers::Form::List:
      out += layers.values.size() == 1
                 ? fmt::format("rank {} layers [{}]\n", r, layers.values.front())
                 : fmt::format("rank {} layers {}\n", r, fmt::join(layers.values, ","));
  }
}

}  // namespace

std::string print_order_file(const Schedule& schedule) {
  std::string out = "capo 1\n";
  out += fmt::format("ranks {}\n", schedule.ranks.size());
  if (schedule.stages) out += fmt::format("stages {}\n", *schedule.stages);
  if (schedule.microbatches) out += fmt::format("microbatches {}\n", *schedule.microbatches);
  if (schedule.topology != Topology::Independent) {
    out += fmt::format("placement {}\n", name_of(schedule.topology));
  }
  if (schedule.p2p) out += fmt::format("p2p {}\n", name_of(*schedule.p2p));
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    const RankOrder& rank = schedule.ranks[r];
    const bool listed = schedule.topology == Topology::Custom;  // the stages say how many chunks
    if (rank.chunks_declared && !listed) out += fmt::format("rank {} chunks {}\n", r, rank.chunks);
    print_layers(out, r, rank.layers);
    if (rank.delay) {
      print_chunks(out, r, "delayed", *rank.delay, Delay::Always);
      print_chunks(out, r, "mixed", *rank.delay, Delay::Mixed);
      const bool never = std::all_of(rank.delay->begin(), rank.delay->end(),
                                     [](Delay delay) { return delay == Delay::Never; });
      if (never) out += fmt::format("rank {} delayed none\n", r);
    }
    if (listed) {
      out += fmt::format("rank {} stages {}\n", r, fmt::join(rank.stages, ","));
    }
    if (!rank.model_chunks.empty()) {
      out += fmt::format("rank {} model-chunks {}\n", r, fmt::join(rank.model_chunks, ","));
    }
    const std::vector<Reset> none;
    print_entries(out, fmt::format("rank {}:", r), rank.order, rank.replay ? none : rank.resets,
                  schedule.naming);
    if (rank.replay) {
      print_entries(out, fmt::format("rank {} replay:", r), *rank.replay, rank.resets,
                    schedule.naming);
    }
  }
  return out;
}

}  // namespace capo
