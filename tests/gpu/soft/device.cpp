#include "tests/gpu/soft/device.h"

#include "run/engine/engine.h"
#include "run/host/host_engine.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace capo::soft_cuda {

namespace {

constexpr auto kAligned = static_cast<std::align_val_t>(run::kAlignment);

std::vector<Fault> faults_of_the_environment() {
  const char* text = std::getenv("CAPO_SOFT_CUDA");
  return text == nullptr ? std::vector<Fault>{} : parse_faults(text);
}

std::unique_ptr<Device>& device_or_null() {
  static std::unique_ptr<Device> device;
  return device;
}

bool is_of_captures(cudaError_t error) {
  return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorCapturedEvent;
}

}  // namespace

// --- memory --------------------------------------------------------------------------------------

Memory::~Memory() {
  for (const auto& [memory, bytes] : allocated_) {
    ::operator delete(const_cast<std::byte*>(memory), kAligned);
  }
}

std::byte* Memory::allocate(std::size_t bytes) {
  if (bytes > kBytes - bytes_) return nullptr;
  auto* memory = static_cast<std::byte*>(
      ::operator new(std::max<std::size_t>(bytes, 1), kAligned, std::nothrow));
  if (memory == nullptr) return nullptr;
  allocated_.emplace(memory, bytes);
  bytes_ += bytes;
  return memory;
}

bool Memory::release(std::byte* memory) {
  const auto found = allocated_.find(memory);
  if (found == allocated_.end()) return false;
  bytes_ -= found->second;
  allocated_.erase(found);
  ::operator delete(memory, kAligned);
  return true;
}

bool Memory::holds(const void* begin, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(begin);
  const auto behind = allocated_.upper_bound(first);
  if (behind == allocated_.begin()) return false;
  const auto& [memory, size] = *std::prev(behind);
  return first + bytes <= memory + size;
}

// --- the device ----------------------------------------------------------------------------------

void Device::execute(const run::Call& call) {
  if (faults.kernel_runs()) run::host::execute(call);
}

Capture* Device::capture_of(const CUstream_st& stream) {
  const auto found = captures.find(stream.capture);
  return found == captures.end() ? nullptr : &found->second;
}

void Device::invalidate_captures() {
  for (auto& [id, capture] : captures) capture.valid = false;
}

Device& device() {
  auto& device = device_or_null();
  if (device == nullptr) device = std::make_unique<Device>(faults_of_the_environment());
  return *device;
}

cudaError_t enter(const char* function) {
  const cudaError_t error = device().faults.count(function);
  if (is_of_captures(error)) device().invalidate_captures();
  return error;
}

cudaError_t enter_outside_captures(const char* function) {
  if (const auto error = enter(function); error != cudaSuccess) return error;
  if (device().captures.empty()) return cudaSuccess;
  device().invalidate_captures();
  return note(cudaErrorStreamCaptureUnsupported);
}

cudaError_t enter_and_wait(const char* function) {
  if (const auto error = enter_outside_captures(function); error != cudaSuccess) return error;
  return device().faults.wait(function);
}

cudaError_t note(cudaError_t error) {
  return device().faults.note(error);
}

// --- for tests -----------------------------------------------------------------------------------

void begin(std::vector<Fault> faults) {
  device_or_null() = std::make_unique<Device>(std::move(faults));
}

std::map<std::string, std::uint64_t> calls() {
  return device().faults.calls();
}

std::string first_failed() {
  return device().faults.first_failed();
}

Live live() {
  const Device& all = device();
  return {.memory = all.memory.count(),
          .streams = all.streams.count(),
          .events = all.events.count(),
          .graphs = all.graphs.count(),
          .execs = all.execs.count(),
          .captures = all.captures.size()};
}

}  // namespace capo::soft_cuda
