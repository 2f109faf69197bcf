// A check does as much for each task, however many tasks a step has.
//
//   1F1B of 64 ranks    100,000 tasks and a million: at most 1.5 times as much for each
//
// No clock is read. Counted are the bytes that operator new gives out and the most of them at once,
// for which this program has its own, and, where the kernel lets a process count them, the
// instructions of all its threads. Figures are printed; bench/scale.py measures ten million tasks
// as whole processes.

#include "core/rules/check.h"
#include "schedules/catalogue.h"
#include "schedules/generators.h"

#include <gtest/gtest.h>

#include <linux/perf_event.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace {

std::atomic<std::uint64_t> given_out{0};
std::atomic<std::uint64_t> in_use{0};
std::atomic<std::uint64_t> most_in_use{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  void* memory = alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, bytes)
                                                       : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  const std::uint64_t usable = malloc_usable_size(memory);
  given_out += usable;
  const std::uint64_t now = in_use += usable;
  std::uint64_t most = most_in_use;
  while (most < now && !most_in_use.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void give_back(void* memory) noexcept {
  if (memory != nullptr) in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return counted((bytes + step - 1) / step * step, step);
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

namespace capo {
namespace {

// Instructions of this process and the threads that it starts from now on; it counts nothing where
// the kernel refuses.
class Instructions {
 public:
  Instructions() {
    perf_event_attr asked{};
    asked.type = PERF_TYPE_HARDWARE;
    asked.size = sizeof(asked);
    asked.config = PERF_COUNT_HW_INSTRUCTIONS;
    asked.inherit = 1;
    asked.exclude_kernel = 1;
    asked.exclude_hv = 1;
    counter_ = static_cast<int>(syscall(SYS_perf_event_open, &asked, 0, -1, -1, 0));
  }
  Instructions(const Instructions&) = delete;
  Instructions& operator=(const Instructions&) = delete;
  ~Instructions() {
    if (counter_ >= 0) close(counter_);
  }

  [[nodiscard]] std::optional<double> so_far() const {
    std::uint64_t count = 0;
    if (counter_ < 0 || read(counter_, &count, sizeof(count)) != sizeof(count)) return std::nullopt;
    return static_cast<double>(count);
  }

 private:
  int counter_ = -1;
};

struct Shape {
  std::int32_t ranks;
  std::int32_t chunks;
  std::int32_t microbatches;

  [[nodiscard]] double tasks() const { return 2.0 * ranks * chunks * microbatches; }
};

// A check took so much for each task.
struct Taken {
  double bytes = 0;
  double most = 0;
  std::optional<double> instructions;
};

Input input_of(const Shape& shape) {
  const schedules::Setting setting{
      .ranks = shape.ranks, .microbatches = shape.microbatches, .chunks = shape.chunks};
  const auto orders =
      shape.chunks == 1 ? schedules::one_f_one_b(setting) : schedules::looped_bfs(setting);
  return {.form = Form::OrderFile,
          .schedule = schedules::schedule_of(orders.value(), Topology::Loop, shape.chunks)};
}

std::string counted_words(const Taken& taken) {
  return taken.instructions ? std::to_string(std::lround(*taken.instructions)) : "no count of";
}

Taken taken_by(const Shape& shape, std::optional<PlanKind> plan) {
  const Input input = input_of(shape);
  CheckOptions options;
  options.plan.kind = plan;
  options.environment.assume_defaults = true;
  const Instructions instructions;
  const auto before = instructions.so_far();
  const std::uint64_t given_before = given_out;
  const std::uint64_t held_before = in_use;
  most_in_use = held_before;
  const CheckResult result = check(input, options);
  EXPECT_TRUE(result.finishes.value_or(false));
  const auto after = instructions.so_far();
  Taken taken{.bytes = static_cast<double>(given_out - given_before) / shape.tasks(),
              .most = static_cast<double>(most_in_use - held_before) / shape.tasks()};
  if (before && after && *after > *before) taken.instructions = (*after - *before) / shape.tasks();
  std::printf("%8.0f tasks of %4d ranks: %6.1f bytes a task, %6.1f at once, %s instructions\n",
              shape.tasks(), shape.ranks, taken.bytes, taken.most, counted_words(taken).c_str());
  return taken;
}

void expect_no_growth(const Shape& small, const Shape& large, std::optional<PlanKind> plan) {
  constexpr double kMost = 1.5;
  const Taken before = taken_by(small, plan);
  const Taken after = taken_by(large, plan);
  EXPECT_GT(before.bytes, 0);
  EXPECT_LE(after.bytes, kMost * before.bytes);
  EXPECT_LE(after.most, kMost * before.most);
  if (before.instructions && after.instructions) {
    EXPECT_LE(*after.instructions, kMost * *before.instructions);
  }
}

using PlanWord = std::optional<PlanKind>;

TEST(Growth, OfATaskWithTasksIsBounded) {
  for (const PlanWord plan : {PlanWord(), PlanWord(PlanKind::Te), PlanWord(PlanKind::Safe)})
    expect_no_growth({64, 1, 780}, {64, 1, 7800}, plan);
}

// Under TransformerEngine's plan this step has hazards, whose order takes the graph of a small
// step.
TEST(Growth, OfATaskWithRanksIsBounded) {
  for (const PlanWord plan : {PlanWord(), PlanWord(PlanKind::Safe)})
    expect_no_growth({64, 2, 800}, {1024, 2, 50}, plan);
}

}  // namespace
}  // namespace capo
