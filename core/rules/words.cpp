#include "core/rules/words.h"

#include "core/base/index.h"
#include "core/frameworks/te/to_te_list.h"
#include "core/frameworks/torch/words.h"
#include "core/text/action_token.h"
#include "core/text/scan.h"

#include <fmt/format.h>

#include <algorithm>

namespace capo::words {

namespace {

bool is_table(const Context& context) {
  return context.input().form == Form::TorchCompute || context.input().form == Form::TorchComms;
}

}  // namespace

std::string quoted(const Context& context, const Entry& entry) {
  if (OrderView::is_added(entry)) return shown(to_token(entry.action(), Naming::Named));
  std::string_view text = context.input().source.slice(entry.span());
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
  }
  return shown(text);
}

std::string of_rank(const Context& context, const OrderView& order) {
  return context.schedule().ranks.size() > 1 ? fmt::format(" of rank {}", order.rank) : "";
}

std::string of_order(const Context& context, const OrderView& order) {
  const bool several = context.schedule().ranks.size() > 1;
  if (!several && !order.holder->replay) return "";
  if (!order.holder->replay) return fmt::format(" of rank {}", order.rank);
  return fmt::format(" of rank {}'s {} order", order.rank, order.replay ? "replay" : "capture");
}

std::string on_order(const Context& context, const OrderView& order) {
  if (context.schedule().ranks.size() == 1 && !order.holder->replay) return "";
  if (!order.holder->replay) return fmt::format(" on rank {}", order.rank);
  return fmt::format(" in rank {}'s {} order", order.rank, order.replay ? "replay" : "capture");
}

std::size_t index_of(const OrderView& order, std::size_t at) {
  const auto& uncounted = order.uncounted;
  const auto up_to_it = std::upper_bound(uncounted.begin(), uncounted.end(), at);
  return at - as_index(up_to_it - uncounted.begin());
}

bool run_together(const OrderView& order, std::size_t a, std::size_t b) {
  for (std::size_t i = std::max(a, b); i > std::min(a, b); --i) {
    if (order.entries[i].group != Group::Continues) return false;
  }
  return true;
}

std::string later(const OrderView& order, std::size_t from, std::size_t at) {
  if (run_together(order, from, at)) return "in the same composite";
  return fmt::format("{} index {}", OrderView::is_added(order.entries[at]) ? "behind" : "at",
                     index_of(order, at));
}

std::string placed(const Context& context, const OrderView& order, std::size_t at) {
  std::size_t written = at;
  while (written > 0 && OrderView::is_added(order.entries[written])) --written;
  const std::string behind =
      written == at ? "" : " behind " + quoted(context, order.entries[written]);
  return fmt::format("{}{} at index {}{}", quoted(context, order.entries[at]), behind,
                     index_of(order, at), of_order(context, order));
}

std::string part(const Context& context, const OrderView& order, std::int32_t chunk) {
  if (is_table(context)) {
    return fmt::format("stage {}", order.holder->stages[ChunkId(chunk).index()]);
  }
  return fmt::format("chunk {}", chunk);
}

std::string entry_text(const Context& context, const OrderView& order, const Action& action) {
  if (context.input().form == Form::TeList) return te_token(action);
  if (is_table(context)) {
    const std::int32_t stage = order.holder->stages[action.chunk.index()];
    const std::string_view word = torch_word(action.kind, order.delay_of(action.chunk));
    if (action.microbatch == kNoMicrobatch) return fmt::format("{}{}", stage, word);
    return fmt::format("{}{}{}", stage, word, action.microbatch);
  }
  return to_token(action, context.schedule().naming);
}

WitnessEntry reference(const Context& context, const OrderView& order, std::size_t at) {
  const std::string text = quoted(context, order.entries[at]);
  return {.rank = order.rank,
          .index = index_of(order, at),
          .text = text.substr(1, text.size() - 2),
          .action = action_name(order.entries[at].action())};
}

Witness entries(const Context& context, const OrderView& order,
                std::initializer_list<std::size_t> positions) {
  Witness witness{.kind = WitnessKind::Entries};
  for (const std::size_t at : positions) witness.tasks.push_back(reference(context, order, at));
  return witness;
}

Edit replace(const Context& context, const OrderView& order, std::size_t at,
             const std::string& text) {
  const Span span = order.entries[at].span();
  const bool string = context.input().source.slice(span).starts_with('"');
  return {.span = span, .replacement = string ? "\"" + text + "\"" : text};
}

std::vector<Edit> insert_after(const Context& context, const OrderView& order, std::size_t at,
                               const Action& action) {
  const Entry& entry = order.entries[at];
  if (entry.group != Group::Alone || entry.length == 0xffff) return {};
  // A row of JSON that does not stand there byte for byte has no place behind a cell to write to.
  const bool string = context.input().source.slice(entry.span()).starts_with('"');
  if (context.input().csv_in_json && string) return {};
  std::string_view separator;
  switch (context.input().form) {
    case Form::TeList:
      separator = ", ";
      break;
    case Form::OrderFile:
      separator = " ";
      break;
    case Form::TorchCompute:
    case Form::TorchComms:
      separator = ",";
      break;
    case Form::Json:
      return {};
  }
  return {{.span = {.offset = entry.offset + entry.length, .length = 0},
           .replacement = std::string(separator) + entry_text(context, order, action)}};
}

}  // namespace capo::words
