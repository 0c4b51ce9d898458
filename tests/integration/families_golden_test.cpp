// Families beside the first ones (mixtures of experts, fused matrices, layers without positions) against float64 runs of
// the reference implementation, from both file formats; what their files may not ask for.
#include "golden_compare.h"

namespace liuli::golden {
namespace {

class TinyFamily : public testing::TestWithParam<const char*> {};

TEST_P(TinyFamily, MatchesTheReferenceInEveryStoredNumberFromBothFormats) {
  const std::string folder = golden_path(std::string("tiny/") + GetParam());
  const SafetensorsFile golden(folder + "/golden.safetensors");
  expect_everything(folder, golden, 50);
  expect_everything(folder + "/gguf/" + GetParam() + ".F16.gguf", golden, 50);
}
INSTANTIATE_TEST_SUITE_P(Families, TinyFamily,
                         testing::Values("qwen2moe", "qwen3moe", "mixtral", "phi3", "smollm3"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace liuli::golden
