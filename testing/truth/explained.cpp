#include "testing/truth/explained.h"

#include <algorithm>
#include <array>

namespace capo::testing {

namespace {

struct NotShown {
  std::string_view rule;
  std::string_view why;
};

constexpr std::array kNotShown{
    NotShown{"B07", "capo's kernels write rows as they come and have no strides to lose"},
    NotShown{"B08", "a budget is a limit of the user's, and the plan is right without it"},
    NotShown{"E02", "capo's grouped products have no workspace in common"},
    NotShown{"G04", "TransformerEngine ends in an error; there is no gradient to compare"},
    NotShown{"G06", "PyTorch's split backward ends in an error; capo ties no weights"},
    NotShown{"G07", "capo's modules refuse such a main_grad before anything runs"},
    NotShown{"G08", "capo's modules have no hooks that a replay could leave out"},
    NotShown{"G09", "hooks again: the numbers are right, a reduction would start too early"},
    NotShown{"G11", "the gradient is right; it is not scattered, and capo scatters none"},
    NotShown{"G16", "gradients are read when all streams are over, whoever waited"},
    NotShown{"G17", "gradients are read when all streams are over, whoever waited"},
    NotShown{"Y02", "no run resets its graphs"},
    NotShown{"Y03", "no run resets its graphs"},
    NotShown{"Y04", "no run resets its graphs"},
    NotShown{"Y05", "no run resets its graphs"},
    NotShown{"C02", "such a capture ends in an error of CUDA's; capo's modules do not wait"},
    NotShown{"C03", "such a capture ends in an error of CUDA's; capo's modules join"},
    NotShown{"C04", "TransformerEngine ends in an error; capo's modules are called once"},
    NotShown{"C05", "capo's grouped products take any number of groups"},
    NotShown{"C06", "such a capture ends in an error of CUDA's"},
    NotShown{"C07", "capo's tensors stay on the device"},
    NotShown{"C08", "TransformerEngine ends in an error; capo takes each backward as it is"},
    NotShown{"C09", "TransformerEngine ends in an error; capo's modules have no hooks"},
    NotShown{"C10", "capo's modules have no hooks that a replay could leave out"},
    NotShown{"C12", "TransformerEngine ends in an error; capo's modules queue no bias"},
    NotShown{"C14", "capo's modules run every recipe on either architecture"},
    NotShown{"C15", "capo's grouped products take sizes from the device"},
    NotShown{"Y06", "capo's graphs have no paged stash"},
    NotShown{"C11", "Megatron ends in an error; capo captures weight gradients apart as well"},
};

}  // namespace

std::string_view why_not_shown(std::string_view rule) {
  const auto* const found = std::find_if(kNotShown.begin(), kNotShown.end(),
                                         [&](const NotShown& one) { return one.rule == rule; });
  return found == kNotShown.end() ? std::string_view{} : found->why;
}

}  // namespace capo::testing
