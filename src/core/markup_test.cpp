#include "core/markup.h"

#include <gtest/gtest.h>

namespace liuli {
namespace {

TEST(Markup, NamesWhatMarkupWouldReadAsItsOwn) {
  EXPECT_EQ(escaped("<a href=\"x\">&amp;"), "&lt;a href=&quot;x&quot;&gt;&amp;amp;");
}

TEST(Markup, LeavesOutWhatXmlForbidsAndKeepsLinesAndOtherAlphabets) {
  const std::string text = std::string("a\0b\x1b[0m", 7) + "\tc\n\r琉璃";
  EXPECT_EQ(escaped(text), "ab[0m\tc\n\r琉璃");
}

}  // namespace
}  // namespace liuli
