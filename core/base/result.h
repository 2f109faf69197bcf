// A value or the reason why there is none; std::expected's spelling, so that C++23 is an alias
// away.
//
//   Result<Schedule> read(std::string_view text);
//   auto schedule = read(text);
//   if (!schedule) return schedule.error();
//
// Asking for the side that is not there is a bug of the caller and fails an assertion.
// Tested by result_test.cpp.

#pragma once

#include "core/base/assert.h"
#include "core/base/error.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace capo {

template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a value is a result
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): so is a reason
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& value() & { return *get(*this); }
  [[nodiscard]] const T& value() const& { return *get(*this); }
  [[nodiscard]] T&& value() && { return std::move(*get(*this)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return get(*this); }
  const T* operator->() const { return get(*this); }

  [[nodiscard]] const E& error() const {
    CAPO_ASSERT(!has_value(), "only a failed result has an error");
    return *std::get_if<1>(&state_);
  }

  /// Applies `next` to the value, or hands the error on.
  template <typename F>
  auto and_then(F&& next) && -> std::invoke_result_t<F, T&&> {
    if (!has_value()) return error();
    return std::forward<F>(next)(std::move(*this).value());
  }

 private:
  template <typename Self>
  static auto get(Self& self) {
    CAPO_ASSERT(self.has_value(), "the value of a failed result was asked for");
    return std::get_if<0>(&self.state_);
  }

  std::variant<T, E> state_;
};

}  // namespace capo
