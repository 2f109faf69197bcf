// Perfetto's own form of a trace, written with protozero: a quarter of the bytes of Chrome's JSON,
// for steps that JSON is too large for. Numbers of fields are those of Perfetto's
// trace_packet.proto, track_event.proto and track_descriptor.proto, which never change.
//
//   step ─┬─ rank 0 ─┬─ compute   |F1.0 |F1.1 |       slices; flows join those that wait over ranks
//         │          └─ memory                        a counter
//         └─ rank 1 ...                               findings and the verdict are instants

#include "core/base/index.h"
#include "core/timeline/marks.h"
#include "core/timeline/picture.h"

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace capo {

namespace {

namespace packet_field {
constexpr protozero::pbf_tag_type kTimestamp = 8;
constexpr protozero::pbf_tag_type kSequence = 10;
constexpr protozero::pbf_tag_type kTrackEvent = 11;
constexpr protozero::pbf_tag_type kInternedData = 12;
constexpr protozero::pbf_tag_type kSequenceFlags = 13;
constexpr protozero::pbf_tag_type kTrackDescriptor = 60;
}  // namespace packet_field

namespace track_field {
constexpr protozero::pbf_tag_type kUuid = 1;
constexpr protozero::pbf_tag_type kName = 2;
constexpr protozero::pbf_tag_type kParent = 5;
constexpr protozero::pbf_tag_type kCounter = 8;
constexpr protozero::pbf_tag_type kChildOrdering = 11;
constexpr protozero::pbf_tag_type kOrderRank = 12;
}  // namespace track_field

namespace event_field {
constexpr protozero::pbf_tag_type kCategoryId = 3;
constexpr protozero::pbf_tag_type kAnnotation = 4;
constexpr protozero::pbf_tag_type kType = 9;
constexpr protozero::pbf_tag_type kNameId = 10;
constexpr protozero::pbf_tag_type kTrack = 11;
constexpr protozero::pbf_tag_type kName = 23;
constexpr protozero::pbf_tag_type kDoubleCounter = 44;
constexpr protozero::pbf_tag_type kFlow = 47;
constexpr protozero::pbf_tag_type kFlowEnd = 48;
}  // namespace event_field

constexpr protozero::pbf_tag_type kPacket = 1;
constexpr std::uint32_t kExplicitOrder = 3;  // of a track's children

enum class EventType : std::uint8_t { Begin = 1, End = 2, Instant = 3, Counter = 4 };

// Texts that a trace says once and then by number; the numbers of each table begin at 1.
enum class Table : std::uint8_t { Category = 1, Name = 2, Annotation = 3 };

class Interned {
 public:
  explicit Interned(Table table) : table_(table) {}

  /// The number of a text. If it is new, adds it to the data of the packet that says it first.
  std::uint64_t number_of(std::string_view text, std::string& data) {
    const auto [at, is_new] = numbers_.try_emplace(std::string(text), numbers_.size() + 1);
    if (is_new) {
      protozero::pbf_writer tables(data);
      protozero::pbf_writer row(tables, static_cast<protozero::pbf_tag_type>(table_));
      row.add_uint64(1, at->second);
      row.add_string(2, text.data(), text.size());
    }
    return at->second;
  }

 private:
  Table table_;
  std::unordered_map<std::string, std::uint64_t> numbers_;
};

// How many nanoseconds of the trace stand for a unit of time. A cost has no unit: it is shown as a
// microsecond, unless the whole step would vanish or not fit into a trace then.
double ticks_of(const Timeline& timeline) {
  double ticks = 1000;
  if (timeline.unit == Timeline::Unit::Microseconds || timeline.makespan <= 0) return ticks;
  while (timeline.makespan * ticks < 1e6) ticks *= 10;
  while (timeline.makespan * ticks > 1e17) ticks /= 10;
  return ticks;
}

class PerfettoTrace {
 public:
  explicit PerfettoTrace(const Picture& picture)
      : picture_(picture),
        timeline_(picture.timeline),
        ticks_(ticks_of(timeline_)),
        trace_(bytes_) {}

  std::string write() {
    add_tracks();
    add_verdict();
    sort_flows();
    for (std::size_t lane = 0; lane < timeline_.lanes.size(); ++lane) add_lane(lane);
    for (std::size_t rank = 0; rank < timeline_.memory.size(); ++rank) add_memory(rank);
    for (const Alarm& alarm : picture_.alarms) add_alarm(alarm);
    return std::move(bytes_);
  }

 private:
  // --- tracks: the step is 1, then come ranks, lanes and the memory of ranks ---

  static constexpr std::uint64_t kStep = 1;
  [[nodiscard]] static std::uint64_t rank_track(std::size_t rank) { return kStep + 1 + rank; }
  [[nodiscard]] std::uint64_t lane_track(std::size_t lane) const {
    return rank_track(timeline_.ranks + lane);
  }
  [[nodiscard]] std::uint64_t memory_track(std::size_t rank) const {
    return lane_track(timeline_.lanes.size() + rank);
  }

  void add_tracks() {
    add_track(kStep, picture_.title, 0, 0);
    for (std::size_t rank = 0; rank < timeline_.ranks; ++rank) {
      add_track(rank_track(rank), fmt::format("rank {}", rank), kStep, rank);
    }
    for (std::size_t lane = 0; lane < timeline_.lanes.size(); ++lane) {
      const auto& [rank, name] = timeline_.lanes[lane];
      if (!name.empty()) add_track(lane_track(lane), name, rank_track(RankId(rank).index()), lane);
    }
    for (std::size_t rank = 0; rank < timeline_.memory.size(); ++rank) {
      add_track(memory_track(rank), "memory", rank_track(rank), timeline_.lanes.size());
    }
  }

  void add_track(std::uint64_t uuid, const std::string& name, std::uint64_t parent,
                 std::size_t order) {
    std::string track;
    protozero::pbf_writer fields(track);
    fields.add_uint64(track_field::kUuid, uuid);
    fields.add_string(track_field::kName, name);
    if (parent != 0) fields.add_uint64(track_field::kParent, parent);
    if (uuid >= memory_track(0)) fields.add_message(track_field::kCounter, std::string());
    if (uuid < lane_track(0)) fields.add_enum(track_field::kChildOrdering, kExplicitOrder);
    fields.add_int32(track_field::kOrderRank, static_cast<std::int32_t>(order));
    // The first packet begins the texts that are said by number.
    start_packet();
    protozero::pbf_writer packet(packet_);
    packet.add_uint32(packet_field::kSequenceFlags, uuid == kStep ? 1 : 2);
    packet.add_message(packet_field::kTrackDescriptor, track);
    trace_.add_message(kPacket, packet_);
  }

  // --- events ---

  [[nodiscard]] std::uint64_t tick(double time) const {
    return static_cast<std::uint64_t>(std::llround(std::max(0.0, time) * ticks_));
  }

  void start_packet() {
    packet_.clear();
    protozero::pbf_writer(packet_).add_uint32(packet_field::kSequence, 1);
  }

  // Empties `event_` and `texts_`; put_event() writes them.
  protozero::pbf_writer start_event(EventType type, std::uint64_t track) {
    event_.clear();
    texts_.clear();
    protozero::pbf_writer event(event_);
    event.add_enum(event_field::kType, static_cast<std::int32_t>(type));
    event.add_uint64(event_field::kTrack, track);
    return event;
  }

  void put_event(double time) {
    start_packet();
    protozero::pbf_writer packet(packet_);
    packet.add_uint64(packet_field::kTimestamp, tick(time));
    packet.add_uint32(packet_field::kSequenceFlags, 2);
    if (!texts_.empty()) packet.add_message(packet_field::kInternedData, texts_);
    packet.add_message(packet_field::kTrackEvent, event_);
    trace_.add_message(kPacket, packet_);
  }

  void annotate(protozero::pbf_writer& event, std::string_view name, std::int64_t value) {
    protozero::pbf_writer annotation(event, event_field::kAnnotation);
    annotation.add_uint64(1, annotations_.number_of(name, texts_));
    annotation.add_int64(4, value);
  }
  void annotate(protozero::pbf_writer& event, std::string_view name, const std::string& value) {
    protozero::pbf_writer annotation(event, event_field::kAnnotation);
    annotation.add_uint64(1, annotations_.number_of(name, texts_));
    annotation.add_string(6, value);
  }

  // --- tasks ---

  // Flows join tasks of different ranks only: within one, slices lie under each other.
  void sort_flows() {
    const auto rank_of = [&](std::uint32_t task) {
      return timeline_.lanes[timeline_.tasks[task].lane].rank;
    };
    for (const Waiting& waiting : timeline_.waits) {
      if (rank_of(waiting.task) == rank_of(waiting.on)) continue;
      const std::uint64_t flow = starts_.size() + 1;
      starts_.emplace_back(waiting.on, flow);
      ends_.emplace_back(waiting.task, flow);
    }
    std::sort(starts_.begin(), starts_.end());
    std::sort(ends_.begin(), ends_.end());
    for (std::uint32_t at = 0; at < timeline_.tasks.size(); ++at) by_lane_.push_back(at);
    const auto key = [&](std::uint32_t at) {
      const TimedTask& task = timeline_.tasks[at];
      return std::tuple(task.lane, task.begin, task.end);
    };
    std::stable_sort(by_lane_.begin(), by_lane_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  }

  void add_lane(std::size_t lane) {
    const auto lane_of = [&](std::uint32_t at) { return timeline_.tasks[at].lane; };
    for (; next_ < by_lane_.size() && lane_of(by_lane_[next_]) == lane; ++next_) {
      if (timeline_.tasks[by_lane_[next_]].member == 0) add_task(by_lane_[next_]);
    }
  }

  void add_task(std::uint32_t at) {
    const TimedTask& task = timeline_.tasks[at];
    protozero::pbf_writer event = start_event(EventType::Begin, lane_track(task.lane));
    event.add_uint64(event_field::kCategoryId, categories_.number_of(ink_of(task.kind), texts_));
    event.add_uint64(event_field::kNameId, names_.number_of(timeline_.label(task.id), texts_));
    if (task.microbatch != kNoMicrobatch) annotate(event, "microbatch", task.microbatch);
    if (task.stage) annotate(event, "stage", *task.stage);
    add_flows(event, event_field::kFlow, starts_, at);
    add_flows(event, event_field::kFlowEnd, ends_, at);
    put_event(task.begin);
    const double quantizing = quantizing_together(timeline_, at);
    if (quantizing > 0) add_quantizing(task, quantizing);
    start_event(EventType::End, lane_track(task.lane));
    put_event(task.end);
  }

  // A slice within that of its task.
  void add_quantizing(const TimedTask& task, double takes) {
    protozero::pbf_writer event = start_event(EventType::Begin, lane_track(task.lane));
    event.add_uint64(event_field::kCategoryId, categories_.number_of(kQuantization, texts_));
    event.add_uint64(event_field::kNameId,
                     names_.number_of("quantize " + timeline_.label(task.id), texts_));
    put_event(task.begin);
    start_event(EventType::End, lane_track(task.lane));
    put_event(task.begin + takes);
  }

  using Flows = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

  static void add_flows(protozero::pbf_writer& event, protozero::pbf_tag_type field,
                        const Flows& flows, std::uint32_t task) {
    auto flow = std::lower_bound(flows.begin(), flows.end(), std::pair(task, std::uint64_t{0}));
    for (; flow != flows.end() && flow->first == task; ++flow) {
      event.add_fixed64(field, flow->second);
    }
  }

  // --- memory, findings, verdict ---

  void add_memory(std::size_t rank) {
    const std::vector<HeldMemory>& course = timeline_.memory[rank];
    for (std::size_t at = 0; at < course.size(); ++at) {
      // A task that ends makes room for one that begins at the same moment.
      if (at + 1 < course.size() && course[at + 1].time <= course[at].time) continue;
      start_event(EventType::Counter, memory_track(rank))
          .add_double(event_field::kDoubleCounter, course[at].held);
      put_event(course[at].time);
    }
  }

  void add_alarm(const Alarm& alarm) {
    for (const Spot& spot : alarm.places) {
      protozero::pbf_writer event = start_event(EventType::Instant, lane_track(spot.lane));
      event.add_string(event_field::kName, alarm.rule);
      annotate(event, "finding", alarm.words);
      put_event(spot.begin);
    }
  }

  void add_verdict() {
    protozero::pbf_writer event = start_event(EventType::Instant, kStep);
    event.add_string(event_field::kName, picture_.verdict);
    annotate(event, "nanoseconds for a unit of time", fmt::format("{}", ticks_));
    for (const std::string& line : picture_.setting) annotate(event, "setting", line);
    for (const Alarm& alarm : picture_.alarms) annotate(event, "finding", alarm.words);
    put_event(0);
  }

  const Picture& picture_;
  const Timeline& timeline_;
  double ticks_;
  std::string bytes_;
  protozero::pbf_writer trace_;
  std::string packet_;
  std::string event_;
  std::string texts_;  // that the packet in the making says first
  Interned categories_{Table::Category};
  Interned names_{Table::Name};
  Interned annotations_{Table::Annotation};
  Flows starts_;                        // tasks that others wait for, with the flow's number
  Flows ends_;                          // tasks that wait
  std::vector<std::uint32_t> by_lane_;  // positions of tasks, lane by lane by their beginning
  std::size_t next_ = 0;                // of by_lane_
};

}  // namespace

std::string perfetto_trace(const Picture& picture) {
  return PerfettoTrace(picture).write();
}

}  // namespace capo
