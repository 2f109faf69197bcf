// Bytes as a person reads them: "82.5 MiB". For messages; JSON has the number.

#pragma once

#include <cstdint>
#include <string>

namespace capo {

/// In the largest binary unit of which there is at least one, to two decimals: "1.25 GiB", "512 B".
[[nodiscard]] std::string byte_words(std::int64_t bytes);

}  // namespace capo
