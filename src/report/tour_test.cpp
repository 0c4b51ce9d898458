#include "report/tour.h"

#include <gtest/gtest.h>

#include "liuli/tour.h"

namespace liuli {
namespace {

TEST(Tour, NumbersBecomeBase64OfTheirLittleEndianBytes) {
  // 1.0f is 00 00 80 3f, −2.0f is 00 00 00 c0.
  EXPECT_EQ(to_base64(std::vector<float>{1.0F}), "AACAPw==");
  EXPECT_EQ(to_base64(std::vector<float>{1.0F, -2.0F}), "AACAPwAAAMA=");
  EXPECT_EQ(to_base64(std::vector<float>{1.0F, -2.0F, 1.0F}), "AACAPwAAAMAAAIA/");
  EXPECT_EQ(to_base64({}), "");
}

TEST(Tour, EqualTensorsAreKeptOnceAndNamed) {
  TensorPack pack;
  pack.add({"blocks.0.resid_post", {1, 2}, {1, 2}});
  pack.add({"blocks.1.resid_pre", {1, 2}, {1, 2}});
  pack.add({"blocks.1.resid_post", {1, 2}, {1, 3}});
  const auto json = pack.take();
  EXPECT_TRUE(json["blocks.0.resid_post"].contains("f32"));
  EXPECT_EQ(json["blocks.1.resid_pre"]["as"], "blocks.0.resid_post");
  EXPECT_FALSE(json["blocks.1.resid_pre"].contains("f32"));
  EXPECT_TRUE(json["blocks.1.resid_post"].contains("f32"));
}

TEST(Tour, RowNormsAreTheEuclideanLengthsOfTheRows) {
  EXPECT_EQ(row_norms({"x", {2, 2}, {3, 4, 0, -2}}), (std::vector<double>{5, 2}));
}

TEST(Tour, ATokenThatEndsAScriptDoesNotEndThePagesData) {
  const std::string page = tour_page({{"tokens", {{{"text", "</script><b>"}}}}});
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cb>"), std::string::npos);
  EXPECT_EQ(page.find("LIULI_TOUR_DATA"), std::string::npos);
}

TEST(Tour, ThePageLoadsNothingFromElsewhere) {
  const std::string page = tour_page({{"tokens", nullptr}});
  EXPECT_EQ(page.find("<link"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

}  // namespace
}  // namespace liuli
