#include "core/project/project_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace capo {
namespace {

Read<Project> read(const std::string& text) {
  return read_project({.name = "capo.toml", .text = text});
}

// "3:8: the message", as a report shows it.
std::string refusal(const std::string& text) {
  const Source source{.name = "capo.toml", .text = text};
  const auto project = read_project(source);
  if (project) return "";
  const Diagnostic& finding = project.error().finding;
  const Span span = finding.labels.front().span;
  return fmt::format("`{}`: {}", source.slice(span), finding.message);
}

constexpr const char* kSuppression =
    "[[suppress]]\nfile = 'a/b.order'\nrule = 'B01'\nreason = 'why'\n";

TEST(ProjectFile, HasDefaultsOfFlags) {
  const auto project = read(
      "profile = ['te', 'torch@2.15']\nformat = 'sarif'\nplan = 'te'\nmodules = 'linear'\n"
      "comm = 'per-pair'\ntransfers = 'buffered'\nmodel = 'model.json'\n");
  ASSERT_TRUE(project);
  EXPECT_EQ(project->profiles, (std::vector<std::string>{"te", "torch@2.15"}));
  EXPECT_EQ(project->format, ReportFormat::Sarif);
  EXPECT_EQ(project->plan, PlanKind::Te);
  EXPECT_EQ(project->modules, std::vector{ModuleKind::Linear});
  EXPECT_EQ(project->communicators, Communicators::PerPair);
  EXPECT_EQ(project->transfers, TransferMode::Buffered);
  EXPECT_EQ(project->model, "model.json");
}

TEST(ProjectFile, DeclaresNothingIfItIsEmpty) {
  const auto project = read("# nothing yet\n");
  ASSERT_TRUE(project);
  EXPECT_TRUE(project->profiles.empty() && project->modules.empty() && project->model.empty());
  EXPECT_FALSE(project->plan || project->communicators || project->transfers || project->format);
  EXPECT_TRUE(project->suppressions_of("a.order").empty());
}

TEST(ProjectFile, KnowsEveryWordOfAReportFormat) {
  for (const ReportFormat format : {ReportFormat::Text, ReportFormat::Json, ReportFormat::Sarif})
    EXPECT_EQ(read(fmt::format("format = '{}'", name_of(format)))->format, format);
}

TEST(ProjectFile, HasSuppressionsOfAFile) {
  const auto project =
      read("\n" + std::string(kSuppression) + "rank = 0\nindex = 7\nentry = 'W1.0'\n");
  ASSERT_TRUE(project);
  const auto found = project->suppressions_of("a/b.order");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule->id, "B01");
  EXPECT_EQ(found[0].reason, "why");
  EXPECT_EQ(found[0].written_at, "capo.toml:2:1");
  EXPECT_EQ(found[0].rank, 0);
  EXPECT_EQ(found[0].index, 7u);
  EXPECT_EQ(found[0].entry, "W1.0");
  EXPECT_FALSE(found[0].span || found[0].line);
  EXPECT_TRUE(project->suppressions_of("b.order").empty());
}

TEST(ProjectFile, RefusesAtItsPlace) {
  EXPECT_EQ(refusal("plan = 'te'\nplans = 'te'"), "`plans`: capo.toml has no key `plans`");
  EXPECT_EQ(refusal("\nplan = 'tee'"), "`'tee'`: `tee` is no `plan`");
  EXPECT_EQ(refusal("comm = 'pairs'"), "`'pairs'`: `pairs` is no `comm`");
  EXPECT_EQ(refusal("model = ''"), "`''`: `model` is a text");
  EXPECT_EQ(refusal("profile = ['te', 1]"), "`1`: `profile` is a text, or a list of texts");
  EXPECT_EQ(refusal("modules = 'conv'"), "`'conv'`: `conv` is no kind of module");
  EXPECT_EQ(refusal("modules = []"), "`[]`: `modules` names no kind of module");
  EXPECT_EQ(refusal("suppress = []"), "`[]`: a suppression begins with `[[suppress]]`");
  EXPECT_EQ(refusal("[[suppress]]\nrule = 'B01'\nreason = 'why'"),
            "`[[suppress]]`: the suppression has no `file`");
  EXPECT_EQ(refusal(std::string(kSuppression) + "rank = -1"),
            "`-1`: `rank` is a whole number from 0");
  EXPECT_EQ(refusal(std::string(kSuppression) + "rank = 2147483648"),
            "`2147483648`: `rank` is a whole number from 0");
  EXPECT_EQ(refusal(std::string(kSuppression) + "rank = 2147483647"), "");
  EXPECT_EQ(refusal(std::string(kSuppression) + "ranks = 1"),
            "`ranks`: capo.toml has no key `ranks`");
  EXPECT_EQ(refusal(std::string(kSuppression) + "index = 1"),
            "`1`: `index` needs the `rank` that it counts in");
  EXPECT_NE(refusal("plan = \"te\nx = 1"), "");
}

}  // namespace
}  // namespace capo
