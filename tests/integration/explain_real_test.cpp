// Norms of real models, worked out from stored rows: SmolLM2's first RMSNorm and MiniLM's embedding LayerNorm
// for 西安. The references were computed in float64 by an independent implementation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "formats/safetensors.h"
#include "liuli/explain.h"

namespace liuli {
namespace {

using Doubles = std::vector<double>;

// Row t of a [rows, width] array.
Doubles row_of(const Doubles& array, size_t t, size_t width) {
  return {array.begin() + static_cast<std::ptrdiff_t>(t * width),
          array.begin() + static_cast<std::ptrdiff_t>((t + 1) * width)};
}

void expect_relative(double got, double expected, double scale, const char* what) {
  EXPECT_LE(std::fabs(got - expected), 1e-12 * std::fabs(scale)) << what << ": " << got << " " << expected;
}

// Each element against itself, or against `scale` where the element is a difference or sum that may cancel.
void expect_row(const Doubles& got, const Doubles& expected, const char* what, double scale = 0) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    expect_relative(got[i], expected[i], scale == 0 ? expected[i] : scale, what);
  }
}

TEST(ExplainRealModel, RmsNormOfSmolLm2sFirstBlockIsReproduced) {
  const SafetensorsFile file(LIULI_SOURCE_DIR "/tests/golden/real/smollm2_norm_layer0.safetensors");
  const Doubles x = file.doubles("x"), normalized = file.doubles("normalized"), out = file.doubles("out");
  const Doubles mean_square = file.doubles("mean_square"), rms = file.doubles("rms_with_eps");
  const Doubles rms_without = file.doubles("rms_without_eps");
  ASSERT_EQ(mean_square.size(), 5u);  // 西安 is five byte-level tokens
  for (size_t t = 0; t < mean_square.size(); ++t) {
    NormInputs in;
    in.kind = NormKind::rms;
    in.row = row_of(x, t, 576);
    in.gamma = file.doubles("weight");
    in.eps = 1e-5;
    in.observed = row_of(out, t, 576);
    const Explanation e = explain_norm(in, Language::zh);
    expect_relative(e.step("mean_square")->values[0], mean_square[t], mean_square[t], "mean_square");
    expect_relative(e.step("sigma")->values[0], rms[t], rms[t], "rms");
    expect_row(e.step("normalized")->values, row_of(normalized, t, 576), "normalized");
    expect_row(e.step("out")->values, row_of(out, t, 576), "out");
    in.eps = 0;
    expect_relative(explain_norm(in, Language::en).step("sigma")->values[0], rms_without[t], rms_without[t],
                    "rms");
  }
}

TEST(ExplainRealModel, LayerNormOfMiniLmsEmbeddingIsReproduced) {
  const SafetensorsFile file(LIULI_SOURCE_DIR "/tests/golden/real/minilm_norm_embed.safetensors");
  const Doubles x = file.doubles("x"), x_hat = file.doubles("xhat"), out = file.doubles("out");
  const Doubles mu = file.doubles("mu"), variance = file.doubles("sigma2"), sigma = file.doubles("sigma");
  ASSERT_EQ(mu.size(), 4u);  // [CLS] 西 安 [SEP]
  for (size_t t = 0; t < mu.size(); ++t) {
    NormInputs in;
    in.row = row_of(x, t, 384);
    in.gamma = file.doubles("gamma");
    in.beta = file.doubles("beta");
    in.eps = 1e-12;
    const Explanation e = explain_norm(in, Language::en);
    expect_relative(e.step("mean_var")->values[0], mu[t], sigma[t], "mu");
    expect_relative(e.step("mean_var")->values[1], variance[t], variance[t], "sigma2");
    expect_relative(e.step("sigma")->values[0], sigma[t], sigma[t], "sigma");
    expect_row(e.step("normalized")->values, row_of(x_hat, t, 384), "xhat", 1);
    expect_row(e.step("out")->values, row_of(out, t, 384), "out", 1);
  }
}

TEST(ExplainRealModel, ARealRowFitsOnAScreen) {
  const SafetensorsFile file(LIULI_SOURCE_DIR "/tests/golden/real/smollm2_norm_layer0.safetensors");
  NormInputs in;
  in.kind = NormKind::rms;
  in.row = row_of(file.doubles("x"), 0, 576);
  in.gamma = file.doubles("weight");
  in.eps = 1e-5;
  in.subject = "blocks.0.ln1";
  in.model = "SmolLM2";
  const std::string text = render_text(explain_norm(in, Language::zh));
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60);
  EXPECT_NE(text.find("SmolLM2 用的是 RMSNorm，不是 LayerNorm"), std::string::npos);
}

}  // namespace
}  // namespace liuli
