// Perfetto's traces, decoded again by a reader of our own that knows the fields from Perfetto's
// .proto files, and compared with the timeline slice for slice.

#include "core/timeline/picture.h"

#include <gtest/gtest.h>

#include <protozero/pbf_reader.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace capo {
namespace {

using protozero::pbf_reader;

struct Track {
  std::string name;
  std::uint64_t parent = 0;
  bool counts = false;
};

struct Slice {
  std::uint64_t track = 0;
  std::string name;
  std::string category;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::map<std::string, std::int64_t> numbers;
  std::vector<std::uint64_t> flows;
  std::vector<std::uint64_t> ended_flows;
};

struct Instant {
  std::uint64_t track = 0;
  std::string name;
  std::uint64_t time = 0;
  std::multimap<std::string, std::string> words;
};

struct Decoded {
  std::map<std::uint64_t, Track> tracks;
  std::vector<Slice> slices;
  std::vector<Instant> instants;
  std::vector<std::tuple<std::uint64_t, std::uint64_t, double>> counts;
};

class Decoder {
 public:
  explicit Decoder(const std::string& bytes) {
    pbf_reader trace(bytes);
    while (trace.next(1)) read_packet(trace.get_message());
  }
  Decoded decoded;

 private:
  using Names = std::map<std::uint64_t, std::string>;

  void read_packet(pbf_reader packet) {
    std::uint64_t time = 0;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          time = packet.get_uint64();
          break;
        case 11:
          read_event(packet.get_message(), time);
          break;
        case 12:
          read_texts(packet.get_message());
          break;
        case 60:
          read_track(packet.get_message());
          break;
        default:
          packet.skip();
      }
    }
  }

  void read_texts(pbf_reader tables) {
    while (tables.next()) {
      Names& names = texts_[tables.tag()];
      pbf_reader row = tables.get_message();
      std::uint64_t number = 0;
      while (row.next()) {
        if (row.tag() == 1) number = row.get_uint64();
        if (row.tag() == 2) names[number] = row.get_string();
      }
    }
  }

  void read_track(pbf_reader fields) {
    Track track;
    std::uint64_t uuid = 0;
    while (fields.next()) {
      if (fields.tag() == 1) {
        uuid = fields.get_uint64();
      } else if (fields.tag() == 2) {
        track.name = fields.get_string();
      } else if (fields.tag() == 5) {
        track.parent = fields.get_uint64();
      } else {
        track.counts = track.counts || fields.tag() == 8;
        fields.skip();
      }
    }
    decoded.tracks[uuid] = track;
  }

  void read_event(pbf_reader fields, std::uint64_t time) {
    Slice slice{.begin = time};
    std::multimap<std::string, std::string> words;
    double count = 0;
    int type = 0;
    while (fields.next()) {
      switch (fields.tag()) {
        case 3:
          slice.category = texts_[1].at(fields.get_uint64());
          break;
        case 4:
          read_annotation(fields.get_message(), slice, words);
          break;
        case 9:
          type = fields.get_enum();
          break;
        case 10:
          slice.name = texts_[2].at(fields.get_uint64());
          break;
        case 11:
          slice.track = fields.get_uint64();
          break;
        case 23:
          slice.name = fields.get_string();
          break;
        case 44:
          count = fields.get_double();
          break;
        case 47:
          slice.flows.push_back(fields.get_fixed64());
          break;
        case 48:
          slice.ended_flows.push_back(fields.get_fixed64());
          break;
        default:
          FAIL() << "an event has a field " << fields.tag();
      }
    }
    if (type == 1) {
      open_[slice.track].push_back(decoded.slices.size());
      decoded.slices.push_back(slice);
    } else if (type == 2) {
      decoded.slices[open_[slice.track].back()].end = time;
      open_[slice.track].pop_back();
    } else if (type == 3) {
      decoded.instants.push_back({slice.track, slice.name, time, words});
    } else {
      ASSERT_EQ(type, 4);
      decoded.counts.emplace_back(slice.track, time, count);
    }
  }

  void read_annotation(pbf_reader fields, Slice& slice,
                       std::multimap<std::string, std::string>& words) {
    std::string name;
    while (fields.next()) {
      if (fields.tag() == 1) name = texts_[3].at(fields.get_uint64());
      if (fields.tag() == 4) slice.numbers[name] = fields.get_int64();
      if (fields.tag() == 6) words.emplace(name, fields.get_string());
    }
  }

  std::map<std::uint32_t, Names> texts_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;
};

// Two ranks with a stream of transfers each, a message between them, memory and a finding.
Picture step() {
  Picture picture{.title = "a.order", .verdict = "rejected: 1 error", .setting = {"2 ranks"}};
  Timeline& timeline = picture.timeline;
  timeline.ranks = 2;
  timeline.makespan = 4.5;
  timeline.lanes = {{0, "compute"}, {0, "p2p"}, {1, "compute"}};
  const auto add = [&](std::uint32_t lane, Kind kind, double begin, double end) {
    const auto id = static_cast<std::uint32_t>(timeline.tasks.size());
    timeline.tasks.push_back({.begin = begin,
                              .end = end,
                              .lane = lane,
                              .id = id,
                              .stage = static_cast<std::int32_t>(lane),
                              .microbatch = 7,
                              .kind = kind});
  };
  add(2, Kind::Forward, 1.5, 4.5);
  add(0, Kind::Forward, 0, 1);
  add(1, Kind::SendForward, 1, 1.5);
  add(0, Kind::BackwardWeight, 1, 1);
  timeline.waits = {{.task = 0, .on = 2}, {.task = 2, .on = 1}};
  timeline.memory = {{{0, 1}, {1, 0.5}}, {}};
  timeline.label = [](std::uint32_t id) {
    return std::vector<std::string>{"F2.7", "F1.7", "send-F1.7", "W1.7"}[id];
  };
  picture.alarms = {{.rule = "B01", .words = "error[B01]: it is bad", .places = {{1, 1, 1.5}}}};
  return picture;
}

// A slice says rank, lane, label, begin and end in nanoseconds.
using Fact = std::tuple<std::string, std::string, std::string, std::uint64_t, std::uint64_t>;

std::vector<Fact> facts_of(const Timeline& timeline, double ticks) {
  std::vector<Fact> facts;
  for (const TimedTask& task : timeline.tasks) {
    const Lane& lane = timeline.lanes[task.lane];
    facts.emplace_back("rank " + std::to_string(lane.rank), lane.name, timeline.label(task.id),
                       std::llround(task.begin * ticks), std::llround(task.end * ticks));
  }
  std::sort(facts.begin(), facts.end());
  return facts;
}

std::vector<Fact> facts_of(const Decoded& decoded) {
  std::vector<Fact> facts;
  for (const Slice& slice : decoded.slices) {
    const Track& lane = decoded.tracks.at(slice.track);
    facts.emplace_back(decoded.tracks.at(lane.parent).name, lane.name, slice.name, slice.begin,
                       slice.end);
  }
  std::sort(facts.begin(), facts.end());
  return facts;
}

TEST(Perfetto, SlicesAreTheTimelines) {
  const Picture picture = step();
  const Decoded decoded = Decoder(perfetto_trace(picture)).decoded;
  EXPECT_EQ(facts_of(decoded), facts_of(picture.timeline, 1e6)) << "4.5 units are 4.5 ms";
  for (const Slice& slice : decoded.slices) {
    EXPECT_EQ(slice.numbers.at("microbatch"), 7);
    EXPECT_EQ(slice.category, slice.name[0] == 's' ? "transfer" : slice.name.substr(0, 1));
  }
}

TEST(Perfetto, QuantizationIsASliceWithinItsTask) {
  Picture picture = step();
  picture.timeline.tasks[0].quantizing = 0.5;
  const Decoded decoded = Decoder(perfetto_trace(picture)).decoded;
  ASSERT_EQ(decoded.slices.size(), 5U);
  const auto part =
      std::find_if(decoded.slices.begin(), decoded.slices.end(),
                   [](const Slice& slice) { return slice.category == "quantization"; });
  ASSERT_NE(part, decoded.slices.end());
  EXPECT_EQ(part->name, "quantize F2.7");
  EXPECT_EQ(part->begin, 1'500'000U);
  EXPECT_EQ(part->end, 2'000'000U);
}

TEST(Perfetto, TracksAreRanksWithTheirLanesBelow) {
  const Decoded decoded = Decoder(perfetto_trace(step())).decoded;
  std::map<std::string, std::string> parents;
  for (const auto& [uuid, track] : decoded.tracks) {
    parents[track.name] = track.parent == 0 ? "" : decoded.tracks.at(track.parent).name;
  }
  EXPECT_EQ(parents.at("a.order"), "");
  EXPECT_EQ(parents.at("rank 0"), "a.order");
  EXPECT_EQ(parents.at("rank 1"), "a.order");
  EXPECT_EQ(parents.at("p2p"), "rank 0");
}

TEST(Perfetto, FlowsJoinTheTasksThatWaitForOtherRanks) {
  const Decoded decoded = Decoder(perfetto_trace(step())).decoded;
  for (const Slice& slice : decoded.slices) {
    const std::vector<std::uint64_t> one{1};
    EXPECT_EQ(slice.flows, slice.name == "send-F1.7" ? one : std::vector<std::uint64_t>{});
    EXPECT_EQ(slice.ended_flows, slice.name == "F2.7" ? one : std::vector<std::uint64_t>{});
  }
}

TEST(Perfetto, MemoryIsACounter) {
  const Decoded decoded = Decoder(perfetto_trace(step())).decoded;
  ASSERT_EQ(decoded.counts.size(), 2U);
  const auto [track, time, held] = decoded.counts[1];
  EXPECT_TRUE(decoded.tracks.at(track).counts);
  EXPECT_EQ(decoded.tracks.at(track).name, "memory");
  EXPECT_EQ(time, 1'000'000U);
  EXPECT_EQ(held, 0.5);
}

TEST(Perfetto, FindingsAndTheVerdictAreInstants) {
  const Decoded decoded = Decoder(perfetto_trace(step())).decoded;
  ASSERT_EQ(decoded.instants.size(), 2U);
  const Instant& verdict = decoded.instants[0];
  EXPECT_EQ(verdict.name, "rejected: 1 error");
  EXPECT_EQ(verdict.words.find("setting")->second, "2 ranks");
  EXPECT_EQ(verdict.words.find("finding")->second, "error[B01]: it is bad");
  EXPECT_EQ(verdict.words.find("nanoseconds for a unit of time")->second, "1000000");
  EXPECT_EQ(decoded.instants[1].name, "B01");
  EXPECT_EQ(decoded.tracks.at(decoded.instants[1].track).name, "p2p");
}

TEST(Perfetto, TimesOfAnySizeStayApart) {
  for (const double size : {1e-9, 1.0, 1e9}) {
    Picture picture = step();
    for (TimedTask& task : picture.timeline.tasks) {
      task.begin *= size;
      task.end *= size;
    }
    picture.timeline.makespan *= size;
    const Decoded decoded = Decoder(perfetto_trace(picture)).decoded;
    for (const Slice& slice : decoded.slices) {
      EXPECT_EQ(slice.begin == slice.end, slice.name == "W1.7") << size;
    }
  }
}

TEST(Perfetto, AMeasuredMicrosecondIsOne) {
  Picture picture = step();
  picture.timeline.unit = Timeline::Unit::Microseconds;
  EXPECT_EQ(facts_of(Decoder(perfetto_trace(picture)).decoded), facts_of(picture.timeline, 1000));
}

}  // namespace
}  // namespace capo
