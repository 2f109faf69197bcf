// `capo completion SHELL`: the scripts name every command and flag, and bash completes with them.
// zsh and fish are asked where they are installed.

#include "tests/support/run_capo.h"
#include "tests/support/scratch_folder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capo {
namespace {

using testing_support::holds;
using testing_support::Outcome;
using testing_support::run_capo;
using testing_support::ScratchFolder;

bool is_installed(const std::string& shell) {
  return run_capo({"-c", "command -v " + shell}, {.program = "/bin/sh"}).exit_code == 0;
}

// Returns the words that bash offers behind `words`, the last of which is being typed.
std::string offered(const std::vector<std::string>& words) {
  const ScratchFolder folder;
  folder.write("capo.bash", run_capo({"completion", "bash"}).out);
  std::string array;
  for (const std::string& word : words) array += " '" + word + "'";
  const std::string script = "source ./capo.bash; COMP_WORDS=(capo" + array +
                             "); COMP_CWORD=" + std::to_string(words.size()) +
                             "; _capo; echo \"${COMPREPLY[*]}\"";
  const Outcome outcome =
      run_capo({"bash", "-c", script}, {.directory = folder.path(), .program = "/usr/bin/env"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

TEST(Completion, NamesEveryCommandAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = run_capo({"completion", shell});
    EXPECT_EQ(outcome.exit_code, 0);
    for (const char* word : {"check", "simulate", "minimise", "megatron", "cost-per", "fail-on",
                             "delay-wgrad-compute", "rendezvous", "zbv", "not-finite"}) {
      EXPECT_TRUE(holds(outcome.out, word)) << shell << " " << word;
    }
  }
}

TEST(Completion, OfBashOffersCommandsFlagsAndTheirWords) {
  if (!is_installed("bash")) GTEST_SKIP() << "there is no bash";
  EXPECT_EQ(offered({"che"}), "check\n");
  EXPECT_EQ(offered({"generate", "mega"}), "megatron\n");
  EXPECT_EQ(offered({"generate", "zbv"}), "zbv\n");
  EXPECT_EQ(offered({"generate", "megatron", "--delay-"}), "--delay-wgrad-compute\n");
  EXPECT_EQ(offered({"check", "--form"}), "--form --format\n");
  EXPECT_EQ(offered({"check", "--format", ""}), "text json sarif\n");
  EXPECT_EQ(offered({"check", "--format", "js"}), "json\n");
  EXPECT_EQ(offered({"check", "x.order", "--comm", "per-p"}), "per-pair\n");
  EXPECT_EQ(offered({"check", "x"}), "\n") << "names of files are the shell's own";
  EXPECT_EQ(offered({"explain", "S0"}).substr(0, 4), "S01 ");
  EXPECT_EQ(offered({"help", "mini"}), "minimise\n");
}

TEST(Completion, OfZshAndFishIsReadByThem) {
  const ScratchFolder folder;
  for (const std::string shell : {"zsh", "fish"}) {
    if (!is_installed(shell)) continue;
    folder.write("script", run_capo({"completion", shell}).out);
    const Outcome outcome =
        run_capo({shell, "-n", "script"}, {.directory = folder.path(), .program = "/usr/bin/env"});
    EXPECT_EQ(outcome.exit_code, 0) << shell << outcome.err;
  }
}

// --- manual pages --------------------------------------------------------------------------------

TEST(ManPage, SaysWhatHelpSays) {
  const std::string page = run_capo({"man", "check"}).out;
  EXPECT_TRUE(page.starts_with(".TH CAPO\\-CHECK 1 ")) << page.substr(0, 40);
  for (const char* piece : {".SH NAME\ncapo\\-check \\- Judge an order", ".B \\-\\-fail\\-on",
                            ".SH ENVIRONMENT", ".SH NOTES", ".BR capo (1)"}) {
    EXPECT_TRUE(holds(page, piece)) << piece;
  }
  EXPECT_TRUE(holds(run_capo({"man"}).out, "Exit codes: 0 accepted"));
  EXPECT_EQ(run_capo({"man", "chek"}).exit_code, 2);
}

TEST(ManPage, OfEveryCommandIsWrittenIntoAFolder) {
  const ScratchFolder folder;
  EXPECT_EQ(run_capo({"man", "--pages", folder.path()}).exit_code, 0);
  for (const char* name : {"capo.1", "capo-check.1", "capo-generate.1", "capo-generate-megatron.1",
                           "capo-completion.1"}) {
    EXPECT_TRUE(folder.read(name).starts_with(".TH ")) << name;
  }
  EXPECT_EQ(folder.read("capo-check.1"), run_capo({"man", "check"}).out);
}

TEST(ManPage, IsReadByGroffWithoutAWord) {
  if (!is_installed("groff")) GTEST_SKIP() << "there is no groff";
  const ScratchFolder folder;
  EXPECT_EQ(run_capo({"man", "--pages", folder.path()}).exit_code, 0);
  const Outcome outcome = run_capo({"-c", "groff -man -Tutf8 -ww -z *.1"},
                                   {.directory = folder.path(), .program = "/bin/sh"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace capo
