// Whole files and lines of texts, for tests that read a corpus or a page of the documentation.

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace capo::testing_support {

/// The bytes of a file; empty if it cannot be opened.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Without their ends; a text that ends with a line end has no empty line behind it.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

}  // namespace capo::testing_support
