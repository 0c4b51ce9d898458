// Whole files: what changes, what must not, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "convert/imatrix.h"
#include "core/rng.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "formats/temporary_folder.h"
#include "kernels/kernels.h"
#include "liuli/convert.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using Values = std::map<std::string, std::vector<float>>;

/// Two layers of a model that no family runs, of F32 tensors: rows of 256, of 96 (no K-quants), and of 40 (no blocks).
class QuantizeFile : public testing::Test {
 protected:
  QuantizeFile() {
    add("token_embd.weight", {32, 256});
    add("output.weight", {32, 256});
    for (const std::string block : {"blk.0.", "blk.1."}) {
      add(block + "attn_norm.weight", {256});
      add(block + "attn_q.weight", {64, 256});
      add(block + "attn_v.weight", {32, 256});
      add(block + "attn_output.weight", {256, 96});
      add(block + "ffn_down.weight", {256, 40});
      add(block + "ffn_up_exps.weight", {2, 8, 256});
    }
  }

  void add(const std::string& name, std::vector<int64_t> shape) {
    Rng rng(7, specs_.size());
    GgufTensorSpec spec{name, DType::f32, std::move(shape)};
    std::vector<float>& values = values_[name];
    values.resize(static_cast<size_t>(spec.bytes()) / sizeof(float));
    for (float& v : values) v = static_cast<float>(0.05 * rng.normal());
    specs_.push_back(std::move(spec));
  }

  std::string write(const std::string& name = "in.gguf") const {
    GgufKeys keys;
    keys.text("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .u32("llama.attention.head_count", 4);
    keys.u32("general.file_type", 0)
        .texts("tokenizer.ggml.tokens", {"a", "\xC3\xA9", ""})
        .f32("x.eps", 1e-5f);
    keys.u16("x.narrow", 3).i32s("tokenizer.ggml.token_type", {1, 1, 3}).boolean("x.flag", true);
    GgufWriter writer(folder_.file(name), keys, specs_);
    for (const GgufTensorSpec& spec : specs_) {
      const std::vector<float>& values = values_.at(spec.name);
      writer.append(values.data(), values.size() * sizeof(float));
    }
    writer.finish();
    return folder_.file(name);
  }

  std::string out(const std::string& name = "out.gguf") const { return folder_.file(name); }

  /// The one line a failing call gives; the folder holds nothing but the input afterwards.
  std::string refusal(ErrorCode code, const QuantizeSettings& settings, const std::string& input) const {
    try {
      quantize_file(input, out("refused.gguf"), settings);
    } catch (const Error& e) {
      EXPECT_EQ(to_string(e.code()), std::string(to_string(code))) << e.what();
      for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(input).parent_path()))
        EXPECT_EQ(file.path().filename().string().find("refused"), std::string::npos) << file.path();
      return e.what();
    }
    return "no error";
  }

  TemporaryFolder folder_{"quantize"};
  std::vector<GgufTensorSpec> specs_;
  Values values_;
};

QuantizeSettings type(const char* name) {
  QuantizeSettings settings;
  settings.type = name;
  return settings;
}

std::map<std::string, std::string> types_of(const QuantizeReport& report) {
  std::map<std::string, std::string> types;
  for (const QuantizedTensor& tensor : report.tensors) types[tensor.name] = tensor.to;
  return types;
}

std::vector<float> decoded(const TensorInfo& info) {
  std::vector<float> values(static_cast<size_t>(info.elements()));
  kernels::decode_row(info.type, info.data, info.elements(), values.data());
  return values;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(QuantizeFile, EveryKeyComesOverWithItsTypeAndTheFileTypeIsNew) {
  const std::string in = write();
  quantize_file(in, out(), type("q4_k_m"));
  const auto before = open_gguf(in), after = open_gguf(out());
  for (const std::string& key : before->metadata().keys()) {
    if (key == "general.file_type") continue;
    EXPECT_EQ(after->metadata().type_name(key), before->metadata().type_name(key)) << key;
    EXPECT_EQ(after->metadata().json(key, 100), before->metadata().json(key, 100)) << key;
  }
  EXPECT_EQ(after->metadata().integer("general.file_type"), 15);
  EXPECT_EQ(after->metadata().integer("general.quantization_version"), 2);
}

TEST_F(QuantizeFile, TensorsKeepTheirOrderNamesAndShapesAndVectorsTheirBytes) {
  const std::string in = write();
  quantize_file(in, out(), type("q4_k_m"));
  const auto before = open_gguf(in), after = open_gguf(out());
  ASSERT_EQ(after->tensors().size(), before->tensors().size());
  for (size_t i = 0; i < before->tensors().size(); i++) {
    EXPECT_EQ(after->tensors()[i].name, before->tensors()[i].name);
    EXPECT_EQ(after->tensors()[i].shape, before->tensors()[i].shape);
  }
  const TensorInfo* norm = after->find("blk.1.attn_norm.weight");
  EXPECT_EQ(norm->type, DType::f32);
  EXPECT_EQ(decoded(*norm), values_.at("blk.1.attn_norm.weight"));
}

TEST_F(QuantizeFile, TheMixDecidesAndSmallerBlocksStepIn) {
  const auto types = types_of(plan_quantize(write(), type("q4_k_m")));
  EXPECT_EQ(types.at("blk.0.attn_q.weight"), "Q4_K");
  EXPECT_EQ(types.at("output.weight"), "Q6_K");
  EXPECT_EQ(types.at("token_embd.weight"), "Q4_K");
  EXPECT_EQ(types.at("blk.0.attn_output.weight"), "Q5_0");  // rows of 96
  EXPECT_EQ(types.at("blk.0.ffn_down.weight"), "F16");      // rows of 40
  EXPECT_EQ(types.at("blk.0.attn_norm.weight"), "F32");
}

TEST_F(QuantizeFile, RulesAreStrongerThanTheMixAndTheFirstMatchCounts) {
  QuantizeSettings settings = type("q4_k_m");
  settings.tensor_types = {{"blk\\.1\\..*attn_q", "q8_0"}, {"attn_q", "q6_K"}, {"attn_norm", "bf16"}};
  settings.output_type = "q5_k";
  settings.embedding_type = "iq4_xs";
  const auto types = types_of(plan_quantize(write(), settings));
  EXPECT_EQ(types.at("blk.1.attn_q.weight"), "Q8_0");
  EXPECT_EQ(types.at("blk.0.attn_q.weight"), "Q6_K");
  EXPECT_EQ(types.at("blk.0.attn_norm.weight"), "BF16");
  EXPECT_EQ(types.at("output.weight"), "Q5_K");
  EXPECT_EQ(types.at("token_embd.weight"), "IQ4_XS");
}

TEST_F(QuantizeFile, PureIsOneTypeForEveryMatrix) {
  QuantizeSettings settings = type("q3_k_m");
  settings.pure = true;
  const auto types = types_of(plan_quantize(write(), settings));
  for (const char* name :
       {"output.weight", "token_embd.weight", "blk.0.attn_v.weight", "blk.1.ffn_up_exps.weight"})
    EXPECT_EQ(types.at(name), "Q3_K") << name;
  EXPECT_EQ(types.at("blk.1.attn_norm.weight"), "F32");
}

TEST_F(QuantizeFile, ThePlanKnowsTheSizesOfTheFile) {
  const std::string in = write();
  const QuantizeReport plan = plan_quantize(in, type("q5_k_s")),
                       done = quantize_file(in, out(), type("q5_k_s"));
  EXPECT_EQ(plan.file_bytes, static_cast<int64_t>(std::filesystem::file_size(out())));
  EXPECT_EQ(plan.to_bytes, done.to_bytes);
  EXPECT_EQ(plan.parameters, done.parameters);
  EXPECT_LT(done.to_bytes, done.from_bytes);
}

TEST_F(QuantizeFile, ThePrintedErrorIsTheOneTheFileHas) {
  const QuantizeReport report = quantize_file(write(), out(), type("q4_k_m"));
  const auto file = open_gguf(out());
  for (const QuantizedTensor& tensor : report.tensors) {
    const std::vector<float> y = decoded(*file->find(tensor.name)), &x = values_.at(tensor.name);
    double error = 0, total = 0;
    for (size_t i = 0; i < x.size(); i++) {
      error += std::pow(double{x[i]} - y[i], 2);
      total += std::pow(double{x[i]}, 2);
    }
    EXPECT_NEAR(tensor.error, std::sqrt(error / total), 1e-12) << tensor.name;
    EXPECT_EQ(tensor.error > 0, tensor.to != "F32") << tensor.name;
  }
  EXPECT_GT(report.error, 0.01);
  EXPECT_LT(report.error, 0.09);
}

TEST_F(QuantizeFile, ThreadsChangeNoByteAndNoError) {
  const std::string in = write();
  QuantizeSettings settings = type("q2_k");
  settings.threads = 1;
  const QuantizeReport one = quantize_file(in, out("t1.gguf"), settings);
  for (int threads : {2, 3}) {
    settings.threads = threads;
    const QuantizeReport more = quantize_file(in, out("t.gguf"), settings);
    EXPECT_EQ(folder_.read("t.gguf"), folder_.read("t1.gguf")) << threads;
    EXPECT_EQ(more.error, one.error);
  }
}

TEST_F(QuantizeFile, QuantisingAgainIsDoneWithAWarningAndCopiesWhatKeepsItsType) {
  const std::string in = write();
  EXPECT_TRUE(quantize_file(in, out("q8.gguf"), type("q8_0")).warnings.empty());
  const QuantizeReport again = quantize_file(out("q8.gguf"), out("q4.gguf"), type("q4_0"));
  ASSERT_EQ(again.warnings.size(), 1u);
  EXPECT_TRUE(contains(again.warnings[0], "Q8_0")) << again.warnings[0];
  const QuantizeReport same = quantize_file(out("q8.gguf"), out("same.gguf"), type("q8_0"));
  EXPECT_TRUE(same.warnings.empty());
  EXPECT_EQ(same.error, 0);
  EXPECT_EQ(folder_.read("same.gguf"), folder_.read("q8.gguf"));
}

TEST_F(QuantizeFile, ANumberThatIsNoneIsNamedAndNothingIsLeftBehind) {
  values_["blk.1.attn_q.weight"][5 * 256 + 17] = std::numeric_limits<float>::quiet_NaN();
  const std::string text = refusal(ErrorCode::corrupt_file, type("q4_k_m"), write());
  EXPECT_TRUE(contains(text, "blk.1.attn_q.weight: row 5 column 17 is")) << text;
  values_["blk.1.attn_q.weight"][5 * 256 + 17] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(contains(refusal(ErrorCode::corrupt_file, type("q4_k_m"), write()), "row 5 column 17 is -inf"));
}

TEST_F(QuantizeFile, AValueBeyondF16IsRefusedThereAndFineElsewhere) {
  values_["blk.0.attn_q.weight"][3] = 70000;
  const std::string in = write();
  const std::string text = refusal(ErrorCode::invalid_argument, type("f16"), in);
  EXPECT_TRUE(contains(text, "blk.0.attn_q.weight: row 0 column 3 is 70000")) << text;
  EXPECT_NO_THROW(quantize_file(in, out(), type("bf16")));
}

TEST_F(QuantizeFile, StoppingLeavesNoFile) {
  QuantizeSettings settings = type("q4_0");
  settings.on_progress = [](int64_t done, int64_t total) {
    if (2 * done > total) throw Error(ErrorCode::cancelled, "stopped");
  };
  EXPECT_EQ(refusal(ErrorCode::cancelled, settings, write()), "stopped");
}

TEST_F(QuantizeFile, ProgressEndsAtTheSizeOfTheInput) {
  int64_t last = 0, all = 0;
  QuantizeSettings settings = type("q4_0");
  settings.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  };
  const QuantizeReport report = quantize_file(write(), out(), settings);
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, report.from_bytes);
}

TEST_F(QuantizeFile, WhatMakesNoSenseIsRefusedByName) {
  const std::string in = write();
  EXPECT_TRUE(contains(refusal(ErrorCode::not_found, type("q9_z"), in), "q9_z"));
  QuantizeSettings settings = type("q4_k_m");
  settings.tensor_types = {{"attn_(", "q8_0"}};
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, settings, in), "attn_("));
  settings.tensor_types = {{"attn_q", "q9"}};
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, settings, in), "\"q9\" is no element type"));
  settings.tensor_types = {{"nowhere", "q8_0"}};
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, settings, in), "\"nowhere\" matches no tensor"));
  settings.tensor_types = {{"attn_output", "q4_k"}};
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, settings, in), "rows of 96"));
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, type("iq2_xs"), in), "does not write"));
}

TEST_F(QuantizeFile, TheInputIsNotOverwritten) {
  const std::string in = write(), before = folder_.read("in.gguf");
  EXPECT_THROW(quantize_file(in, in, type("q8_0")), Error);
  EXPECT_EQ(folder_.read("in.gguf"), before);
}

TEST_F(QuantizeFile, AnImportanceMatrixLowersTheErrorWhereItLooks) {
  const std::string in = write();
  ImportanceMatrix matrix;
  std::vector<float> sums(256, 1.0f);
  for (size_t i = 0; i < 32; i++) sums[8 * i] = 400;
  matrix.entries["blk.0.attn_q.weight"] = {sums, {10}};
  std::vector<float> two = sums;
  two.insert(two.end(), 256, 1.0f);
  matrix.entries["blk.0.ffn_up_exps.weight"] = {two, {10, 0}};  // the second expert was never used
  matrix.datasets = {"words.txt"};
  matrix.chunk_count = 3;
  write_imatrix(folder_.file("im.gguf"), matrix);
  QuantizeSettings settings = type("q3_k_s");
  const QuantizeReport plain = quantize_file(in, out("plain.gguf"), settings);
  settings.imatrix = folder_.file("im.gguf");
  const QuantizeReport weighted = quantize_file(in, out(), settings);
  for (size_t i = 0; i < plain.tensors.size(); i++) {
    const bool has_entry = matrix.entries.contains(plain.tensors[i].name);
    ASSERT_EQ(weighted.tensors[i].weighted_error.has_value(), has_entry) << plain.tensors[i].name;
    if (!has_entry) continue;
    EXPECT_GT(weighted.tensors[i].error, plain.tensors[i].error);
    EXPECT_LT(*weighted.tensors[i].weighted_error, 0.9 * plain.tensors[i].error);
  }
  EXPECT_TRUE(contains(weighted.warnings.at(0), "no entry in the importance matrix"));
  const auto file = open_gguf(out());
  EXPECT_EQ(file->metadata().text("quantize.imatrix.dataset"), "words.txt");
  EXPECT_EQ(file->metadata().integer("quantize.imatrix.entries_count"), 2);
  EXPECT_EQ(file->metadata().integer("quantize.imatrix.chunks_count"), 3);
}

TEST_F(QuantizeFile, AnImportanceMatrixOfAnotherModelIsRefused) {
  ImportanceMatrix matrix;
  matrix.entries["blk.0.attn_q.weight"] = {std::vector<float>(128, 1.0f), {10}};
  write_imatrix(folder_.file("im.gguf"), matrix);
  QuantizeSettings settings = type("q4_0");
  settings.imatrix = folder_.file("im.gguf");
  const std::string text = refusal(ErrorCode::invalid_argument, settings, write());
  EXPECT_TRUE(contains(text, "blk.0.attn_q.weight has 1 × 128 columns there")) << text;
  settings.imatrix = write();
  EXPECT_TRUE(contains(refusal(ErrorCode::invalid_argument, settings, write()), "is no importance matrix"));
}

TEST(ListQuantizeTypes, EveryListedTypeIsAccepted) {
  const std::vector<QuantizeType> types = list_quantize_types();
  EXPECT_GE(types.size(), 20u);
  for (size_t i = 1; i < types.size(); i++) EXPECT_GE(types[i].bits, types[i - 1].bits);
  for (const QuantizeType& t : types) EXPECT_FALSE(contains(t.name, "iq2")) << t.name;
}

}  // namespace
}  // namespace liuli
