// `capo profiles`: the versions of the frameworks that predictions are made for, one a line.

#include "cli/commands/commands.h"
#include "cli/options/files.h"
#include "core/frameworks/megatron/version.h"
#include "core/frameworks/te/version.h"
#include "core/frameworks/torch/version.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <string>
#include <string_view>

namespace capo::cli {

namespace {

std::string line_of(std::string_view framework, std::string_view release, std::string_view number,
                    std::string_view date, std::string_view commit) {
  return fmt::format("{:<10}  {:<6}  {}  {}\n", fmt::format("{}@{}", framework, release), number,
                     date, commit);
}

std::string profiles() {
  std::string out;
  for (const auto& of : te::kVersions)
    out += line_of("te", of.release, of.release, of.date, of.commit);
  for (const auto& of : megatron::kVersions)
    out += line_of("mcore", of.release, of.release, of.date, of.commit);
  for (const auto& of : torch::kVersions)
    out += line_of("torch", of.release, of.number, of.date, of.commit);
  return out;
}

}  // namespace

Run add_profiles(CLI::App& command) {
  command.footer("Example: capo profiles");
  return [] { return exit_code_after(write_stdout(profiles())); };
}

}  // namespace capo::cli
