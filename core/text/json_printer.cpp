#include "core/text/json_printer.h"

#include "core/text/action_token.h"

#include <nlohmann/json.hpp>

namespace capo {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<Entry>& order, const std::vector<Reset>& resets, Naming naming) {
  Json out = Json::array();
  auto reset = resets.begin();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Entry& entry = order[i];
    for (; reset != resets.end() && reset->behind <= i; ++reset) out.push_back(to_token(*reset));
    Json action = entry.kind == Kind::Idle ? Json(nullptr) : Json(to_token(entry.action(), naming));
    if (entry.group == Group::Opens) {
      out.push_back(Json::array({std::move(action)}));
    } else if (entry.group == Group::Continues) {
      out.back().push_back(std::move(action));
    } else {
      out.push_back(std::move(action));
    }
  }
  for (; reset != resets.end(); ++reset) out.push_back(to_token(*reset));
  return out;
}

Json chunks_that(const std::vector<Delay>& delay, Delay wanted) {
  Json out = Json::array();
  for (std::size_t c = 0; c < delay.size(); ++c) {
    if (delay[c] == wanted) out.push_back(c + 1);
  }
  return out;
}

}  // namespace

std::string print_json(const Schedule& schedule) {
  Json out{{"schema", 1}};
  if (schedule.stages) out["stages"] = *schedule.stages;
  if (schedule.microbatches) out["microbatches"] = *schedule.microbatches;
  out["placement"] = name_of(schedule.topology);
  if (schedule.p2p) out["p2p"] = name_of(*schedule.p2p);
  out["ranks"] = Json::array();
  for (const RankOrder& rank : schedule.ranks) {
    Json item = Json::object();  // null would become an object by itself unless memory runs out
    const bool listed = schedule.topology == Topology::Custom;  // the stages say how many chunks
    if (rank.chunks_declared && !listed) item["chunks"] = rank.chunks;
    if (rank.layers.form == Layers::Form::Null) item["layers"] = nullptr;
    if (rank.layers.form == Layers::Form::Count) item["layers"] = rank.layers.values.front();
    if (rank.layers.form == Layers::Form::List) item["layers"] = rank.layers.values;
    if (rank.delay) {
      item["delayed"] = chunks_that(*rank.delay, Delay::Always);
      item["mixed"] = chunks_that(*rank.delay, Delay::Mixed);
    }
    if (listed) item["stages"] = rank.stages;
    if (!rank.model_chunks.empty()) item["model_chunks"] = rank.model_chunks;
    const std::vector<Reset> none;
    item["order"] = json_of(rank.order, rank.replay ? none : rank.resets, schedule.naming);
    if (rank.replay) item["replay"] = json_of(*rank.replay, rank.resets, schedule.naming);
    out["ranks"].push_back(std::move(item));
  }
  return out.dump(1) + "\n";
}

}  // namespace capo
