// The choices that a fuzzer makes beside the text: the first bytes of its input, so that seeds stay
// readable. They are taken from letters and digits as well as from anything else.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace capo::fuzz {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size)
      : text_(size == 0 ? "" : reinterpret_cast<const char*>(data), size) {}

  /// 0 to count - 1 by the next byte; 0 where there is none left. `0` to `9` are 0 to 9.
  [[nodiscard]] std::size_t below(std::size_t count) {
    if (text_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(text_.front());
    text_.remove_prefix(1);
    return static_cast<std::size_t>(byte - '0' + 256) % 256 % count;
  }
  [[nodiscard]] bool flag() { return below(2) == 1; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  [[nodiscard]] std::string rest() const { return std::string(text_); }

 private:
  std::string_view text_;
};

}  // namespace capo::fuzz
