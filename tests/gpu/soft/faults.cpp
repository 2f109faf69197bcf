#include "tests/gpu/soft/faults.h"

#include "tests/gpu/soft/errors.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace capo::soft_cuda {

namespace {

// After these a context is of no use any more.
bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorAssert:
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
      return true;
    default:
      return false;
  }
}

Fault parse_fault(std::string_view text) {
  const auto wrong = [&] {
    return std::invalid_argument("CAPO_SOFT_CUDA: `" + std::string(text) +
                                 "` is not FUNCTION:CALL:ERROR");
  };
  const std::size_t first = text.find(':');
  const std::size_t last = text.rfind(':');
  if (first == text.npos || first == last) throw wrong();
  Fault fault{.function = std::string(text.substr(0, first))};
  const std::string_view call = text.substr(first + 1, last - first - 1);
  const auto read = std::from_chars(call.data(), call.data() + call.size(), fault.call);
  if (read.ec != std::errc{} || read.ptr != call.data() + call.size()) throw wrong();
  const auto error = error_named(text.substr(last + 1));
  if (!error) throw wrong();
  fault.error = *error;
  return fault;
}

}  // namespace

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    faults.push_back(parse_fault(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return faults;
}

cudaError_t Faults::told(std::string_view function, std::uint64_t call) const {
  for (const Fault& fault : faults_) {
    if (fault.function == function && fault.call == call) return fault.error;
  }
  return cudaSuccess;
}

cudaError_t Faults::failed(std::string_view function, cudaError_t error) {
  if (first_failed_.empty()) first_failed_ = function;
  if (is_sticky(error)) broken_ = error;
  return note(error);
}

cudaError_t Faults::count(std::string_view function) {
  const std::uint64_t call = ++calls_[std::string(function)];
  ++all_calls_;
  if (broken_ != cudaSuccess) return note(broken_);
  if (const auto error = told(function, call); error != cudaSuccess) return failed(function, error);
  if (const auto error = told("any", all_calls_); error != cudaSuccess) {
    return failed(function, error);
  }
  return cudaSuccess;
}

bool Faults::kernel_runs() {
  if (on_device_ == cudaSuccess) on_device_ = told("kernel", ++kernels_);
  return on_device_ == cudaSuccess;
}

cudaError_t Faults::wait(std::string_view function) {
  return on_device_ == cudaSuccess ? cudaSuccess : failed(function, on_device_);
}

cudaError_t Faults::note(cudaError_t error) {
  if (error != cudaSuccess) last_ = error;
  return error;
}

void Faults::forget_last() {
  last_ = broken_;
}

int Faults::driver_version() const {
  const bool old = std::any_of(faults_.begin(), faults_.end(), [](const Fault& fault) {
    return fault.error == cudaErrorInsufficientDriver;
  });
  return old ? CUDART_VERSION - 1000 : CUDART_VERSION;
}

}  // namespace capo::soft_cuda
