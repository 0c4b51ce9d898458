#include "formats/fp8_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/fp8.h"
#include "formats/gguf_test_bytes.h"
#include "formats/hugging_face.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

const std::string kFolder = std::string(LIULI_SOURCE_DIR) + "/tests/golden/fp8";

float f32_at(const uint8_t* at) {
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// The values of a built tensor, read by the description of its type.
std::vector<float> values_of(const WeightSource& source, const TensorInfo& tensor) {
  const auto bytes = source.bytes_of(tensor);
  std::vector<float> values;
  for (int64_t at = 0; at < tensor.bytes;) {
    if (tensor.type == DType::f32) {
      values.push_back(f32_at(bytes.get() + at));
      at += 4;
      continue;
    }
    const float scale = f32_at(bytes.get() + at);
    for (int i = 0; i < 128; i++) values.push_back(e4m3_to_f32(bytes.get()[at + 4 + i]) * scale);
    at += 132;
  }
  return values;
}

TEST(Fp8Blocks, EqualAnotherImplementationsValues) {
  const auto source = open_weights(kFolder);
  const SafetensorsFile golden(kFolder + "/values.safetensors");
  for (const auto& expected : golden.tensors()) {
    SCOPED_TRACE(expected.name);
    const TensorInfo* tensor = source->find(expected.name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->shape, expected.shape);
    EXPECT_EQ(tensor->data, nullptr) << "nothing is built before it is asked for";
    const std::vector<float> wanted = golden.floats(expected.name), values = values_of(*source, *tensor);
    ASSERT_EQ(values.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); i++)
      ASSERT_TRUE(std::isnan(wanted[i]) ? std::isnan(values[i]) : values[i] == wanted[i])
          << "element " << i << " is " << values[i] << ", not " << wanted[i];
    source->give_back(*tensor);
    EXPECT_EQ(values_of(*source, *tensor).front(), wanted.front()) << "after giving back";
  }
}

TEST(Fp8Blocks, TakeAboutAByteAWeightUnlessARowIsRagged) {
  const auto source = open_weights(kFolder);
  EXPECT_EQ(source->find("edge_rows.weight")->type, DType::f8_e4m3_b128);
  EXPECT_EQ(source->find("edge_rows.weight")->bytes, 130 * 2 * 132);
  EXPECT_EQ(source->find("ragged.weight")->type, DType::f32);
  EXPECT_EQ(source->find("ragged.weight")->bytes, 131 * 72 * 4);
}

TEST(Fp8Blocks, TakeTheirScalesOutOfTheList) {
  const auto source = open_weights(kFolder);
  EXPECT_EQ(source->tensors().size(), 5u);
  EXPECT_EQ(source->find("edge_rows.weight_scale_inv"), nullptr);
  EXPECT_TRUE(source->set_aside().empty());
  EXPECT_EQ(source->find("norm.weight")->type, DType::bf16);
  const TensorInfo& norm = *source->find("norm.weight");
  EXPECT_EQ(source->bytes_of(norm).get(), norm.data) << "mapped bytes are not copied";
}

class Fp8Folder : public testing::Test {
 protected:
  /// A weight [1, 128] and whatever the scale's entry says, of 4 bytes.
  void write(const std::string& config, const std::string& scale) {
    folder_.write("config.json", config);
    folder_.write(
        "model.safetensors",
        testing_gguf::Bytes()
            .string(R"({"w":{"dtype":"F8_E4M3","shape":[1,128],"data_offsets":[0,128]},)" + scale + "}")
            .raw(std::string(128, '8'))
            .put(0.5f)
            .data());
  }
  std::string refusal(const std::string& config) {
    write(config, kScale);
    try {
      open_weights(folder_.file(""));
    } catch (const Error& e) {
      return std::string(to_string(e.code())) + ": " + e.what();
    }
    return "accepted";
  }
  std::string set_aside(const std::string& config, const std::string& scale) {
    write(config, scale);
    const auto source = open_weights(folder_.file(""));
    return source->set_aside().empty() ? "nothing"
                                       : source->set_aside()[0].name + " " + source->set_aside()[0].reason;
  }

  static constexpr const char* kScale =
      R"("w_scale_inv":{"dtype":"F32","shape":[1,1],"data_offsets":[128,132]})";
  static constexpr const char* kConfig =
      R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})";
  TemporaryFolder folder_{"fp8"};
};

TEST_F(Fp8Folder, IsReadWithTheScaleItNeeds) {
  EXPECT_EQ(set_aside(kConfig, kScale), "nothing");
  const auto source = open_weights(folder_.file(""));
  EXPECT_EQ(values_of(*source, *source->find("w")), std::vector<float>(128, 0.5f));
}

TEST_F(Fp8Folder, SetsAWeightAsideWhoseScalesDoNotFit) {
  EXPECT_EQ(set_aside(kConfig, R"("scale":{"dtype":"F32","shape":[1,1],"data_offsets":[128,132]})"),
            "w is stored as F8_E4M3, but there is no \"w_scale_inv\"");
  EXPECT_EQ(set_aside(kConfig, R"("w_scale_inv":{"dtype":"F32","shape":[1],"data_offsets":[128,132]})"),
            "w is stored as F8_E4M3 [1, 128], which takes scales F32 [1, 1], but \"w_scale_inv\" is F32 [1]");
  EXPECT_EQ(
      set_aside(kConfig, R"("w_scale_inv":{"dtype":"F16","shape":[1,2],"data_offsets":[128,132]})"),
      "w is stored as F8_E4M3 [1, 128], which takes scales F32 [1, 1], but \"w_scale_inv\" is F16 [1, 2]");
  EXPECT_EQ(set_aside("{}", kScale), "w is stored as F8_E4M3, which Liuli does not read");
}

TEST_F(Fp8Folder, IsRefusedByTheNameOfAnotherQuantisation) {
  const auto expect_refused = [&](const std::string& quantization, const char* part) {
    const std::string message = refusal("{" + quantization + "}");
    EXPECT_EQ(message.rfind("unsupported: ", 0), 0u) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const char* method : {"gptq", "awq", "bitsandbytes", "mxfp4", "compressed-tensors"})
    expect_refused(std::string(R"("quantization_config": {"quant_method": ")") + method + "\"}", method);
  expect_refused(R"("quantization_config": {"bits": 4})", "quant_method null");
  expect_refused(R"("quantization_config": "gptq")", "quant_method null");
  expect_refused(R"("compression_config": {"format": "pack"})", "compression_config");
  const std::string fp8 = R"("quantization_config": {"quant_method": "fp8")";
  expect_refused(fp8 + "}", "weight_block_size null");
  expect_refused(fp8 + R"(, "weight_block_size": [64, 128]})", "weight_block_size [64, 128]");
  expect_refused(fp8 + R"(, "weight_block_size": [128, 128], "fmt": "e5m2"})", "fmt \"e5m2\"");
  expect_refused(fp8 + R"(, "weight_block_size": [128, 128], "activation_scheme": "static"})", "\"static\"");
}

}  // namespace
}  // namespace liuli
