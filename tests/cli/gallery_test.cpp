// docs/gallery.md as a reader has it: each picture is there, and says what its command line draws.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace capo {
namespace {

std::string gallery_text(const std::filesystem::path& file) {
  std::ifstream in(std::filesystem::path(CAPO_SOURCE_DIR) / "docs" / file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Gallery, ShowsEveryPictureThatThereIsWithItsVerdict) {
  const std::string page = gallery_text("gallery.md");
  const std::regex picture(R"(!\[[^\]]+\]\((gallery/[\w-]+\.(?:svg|png))\))");
  std::set<std::string> shown;
  for (std::sregex_iterator at(page.begin(), page.end(), picture); at != std::sregex_iterator();
       ++at) {
    shown.insert((*at)[1]);
  }
  std::set<std::string> there;
  for (const auto& file : std::filesystem::directory_iterator(CAPO_SOURCE_DIR "/docs/gallery")) {
    there.insert("gallery/" + file.path().filename().string());
  }
  EXPECT_EQ(shown, there);
  for (const std::string& file : shown) {
    if (file.ends_with(".png")) continue;  // a screenshot of one of the others
    const bool graph = file.starts_with("gallery/graph-");
    EXPECT_NE(gallery_text(file).find(graph ? ">capo: " : "class=\"verdict\""), std::string::npos)
        << file;
  }
}

TEST(Gallery, HasEverySchedule) {
  const std::string page = gallery_text("gallery.md");
  for (const char* name : {"gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "zbv", "v-half",
                           "dualpipe", "dualpipev", "chimera", "hanayo"}) {
    EXPECT_NE(page.find(std::string("capo generate ") + name + " --ranks"), std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace capo
