// What the article prints, and nothing that can be computed from it.
#pragma once
#include <vector>

namespace liuli::worked {

/// The worked row: the token 西安 in four dimensions.
inline const std::vector<double> kArticleRow = {-1.079, 0.004, 0.277, -0.717};
inline const std::vector<double> kArticleGamma = {1.2, 0.8, 1.0, 1.1};
inline const std::vector<double> kArticleBeta = {0.1, -0.1, 0.05, 0.2};
constexpr const char* kArticleToken = "西安";
constexpr int kArticleTokenRow = 1;  ///< index of 西安 among the printed rows

constexpr int kArticleDecimals = 3;  ///< of every number below
constexpr double kArticleMean = -0.379;
constexpr double kArticleVariance = 0.295;
constexpr double kArticleSigma = 0.543;
inline const std::vector<double> kArticleNormalized = {-1.289, 0.704, 1.207, -0.622};

/// The outputs of all six tokens. The inputs of the other five rows, their μ and σ are not printed as text.
inline const std::vector<std::vector<double>> kArticleOutputs = {
    {0.565, -1.356, 1.226, 0.208},  {-1.446, 0.463, 1.257, -0.485}, {-1.218, 0.026, 1.599, -0.469},
    {0.740, -1.353, -0.038, 1.433}, {0.133, -0.539, -1.025, 1.955}, {1.265, 0.170, 0.417, -1.643}};

/// The explosion: x ← 1.5 x + 0.5, ten times from 1.
constexpr double kArticleFactor = 1.5, kArticleShift = 0.5, kArticleStart = 1.0;
constexpr int kArticleSteps = 10;
constexpr double kArticleExplosion = 114.33;  ///< the printed result
constexpr int kArticleExplosionDecimals = 2;

/// The article's code has no ε; PyTorch's default is the usual one.
constexpr double kUsualEps = 1e-5;

}  // namespace liuli::worked
