#include "tests/support/check_text.h"

#include <gtest/gtest.h>

namespace capo {
namespace {

using testing_support::check_csv;
using testing_support::Checked;
using Findings = std::vector<std::string>;

TEST(CompositeForm, NamesTheCompositeOfAnotherType) {
  const Checked checked = check_csv("0F0,(0F1;0B0)B,0B1\n");
  ASSERT_EQ(checked.findings(), Findings{"S09@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`(0F1;0B0)B` at index 1 of rank 0 is a composite of a type other than OVERLAP_F_B");
  EXPECT_EQ(finding.labels, (std::vector<Label>{{{4, 10}, ""}}));
  EXPECT_EQ(finding.help,
            (Help{.text = "write `(<a>;<b>)OVERLAP_F_B`; PyTorch reads it and does not know "
                          "what to run"}));
}

TEST(CompositeForm, NamesTheCompositeWithoutMembers) {
  const Checked checked = check_csv("0F0,()OVERLAP_F_B,0B0\n");
  ASSERT_EQ(checked.findings(), Findings{"S09@1"});
  const Diagnostic& finding = checked.result.diagnostics.kept().front();
  EXPECT_EQ(finding.message,
            "`()OVERLAP_F_B` at index 1 of rank 0 is a composite without members, which "
            "PyTorch reads as `-1OVERLAP_F_B`");
  EXPECT_EQ(finding.help, (Help{.text = "leave the cell empty for an idle slot"}));
}

TEST(CompositeForm, TakesEveryOtherTypeForWrong) {
  for (const std::string type :
       {"F", "B", "I", "W", "UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F"}) {
    EXPECT_EQ(check_csv("0F0,(0F1;0B0)" + type + ",0B1\n").findings(), Findings{"S09@1"}) << type;
  }
}

TEST(CompositeForm, ReportsOnceWhatHasNeitherMembersNorTheRightType) {
  EXPECT_EQ(check_csv("0F0,()B,0B0\n").findings(), Findings{"S09@1"});
  EXPECT_EQ(check_csv("0F0,( ; )OVERLAP_F_B,0B0\n").findings(), Findings{"S09@1"});
}

TEST(CompositeForm, AcceptsAComposite) {
  EXPECT_TRUE(check_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n").accepted());
  EXPECT_TRUE(check_csv("(0F0)OVERLAP_F_B,0B0\n").accepted()) << "one member is enough";
}

TEST(CompositeForm, LeavesATypeThatPyTorchDoesNotKnowToTheReader) {
  EXPECT_EQ(check_csv("0F0,(0F1;0B0)FB,0B1\n").findings(), Findings{"I01@-"});
  EXPECT_EQ(check_csv("0F0,(0F1;0B0),0B1\n").findings(), Findings{"I01@-"});
}

}  // namespace
}  // namespace capo
