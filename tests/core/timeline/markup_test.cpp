#include "core/timeline/markup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace capo {
namespace {

template <typename... Pieces>
std::string written(const Pieces&... pieces) {
  Markup markup;
  markup.add(pieces...);
  return markup.take();
}

TEST(Markup, PiecesStandOneAfterAnother) {
  EXPECT_EQ(written("<g id=\"", 7, "\">", Escaped{"a < b"}, '!', std::string("</g>")),
            "<g id=\"7\">a &lt; b!</g>");
}

TEST(Markup, ALengthHasTwoDecimalsAtMost) {
  EXPECT_EQ(written(Length{0}), "0");
  EXPECT_EQ(written(Length{-0.001}), "0");
  EXPECT_EQ(written(Length{12}), "12");
  EXPECT_EQ(written(Length{12.5}), "12.5");
  EXPECT_EQ(written(Length{0.05}), "0.05");
  EXPECT_EQ(written(Length{-0.254}), "-0.25");
  EXPECT_EQ(written(Length{99.996}), "100");
  EXPECT_EQ(written(Length{1e15}), "1e+15") << "a number of no page";
}

TEST(Markup, ANumberIsReadBackAsTheSame) {
  const std::vector<double> numbers{0,       0.1,  12.1,     0.1 + 0.2, 1e-9,     1e9,  -2.5,
                                    1.0 / 3, 1e21, 123456.7, 0.000001,  1 - 1e-7, 1e15, 5e-324};
  for (const double number : numbers) {
    EXPECT_EQ(std::strtod(written(ExactNumber{number}).c_str(), nullptr), number);
  }
  EXPECT_EQ(written(ExactNumber{12.1}), "12.1");
  EXPECT_EQ(written(ExactNumber{100000}), "100000");
  EXPECT_EQ(written(ExactNumber{0.1 + 0.2}), "0.30000000000000004");
}

}  // namespace
}  // namespace capo
