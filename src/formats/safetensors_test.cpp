#include "formats/safetensors.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/gguf_test_bytes.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

using testing_gguf::Bytes;
using testing_gguf::bytes_of;

std::string file_of(const std::string& header, const std::string& data) {
  return Bytes().string(header).raw(data).data();
}
std::string refusal(const std::string& bytes) {
  try {
    SafetensorsFile("s", bytes_of(bytes));
  } catch (const Error& e) {
    return std::string(to_string(e.code())) + ": " + e.what();
  }
  return "accepted";
}
void expect_refused(const std::string& bytes, const char* part) {
  const std::string message = refusal(bytes);
  EXPECT_EQ(message.rfind("corrupt_file: s: ", 0), 0u) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Safetensors, ReadsBackWhatItStreamedToDisk) {
  const TemporaryFolder folder("safetensors");
  const std::string path = folder.file("a.safetensors");
  const float weights[6] = {1, 2, 3, 4, 5, 6};
  const double loss = 0.1;
  const int32_t ids[2] = {-7, 9};
  SafetensorsWriter writer(path,
                           {{"w", DType::f32, {2, 3}},
                            {"loss", DType::f64, {}},
                            {"ids", DType::i32, {2}},
                            {"none", DType::f32, {0, 4}}},
                           {{"model", "tiny"}});
  writer.append(weights, 8);
  writer.append(weights + 2, 16);
  writer.append(&loss, sizeof loss);
  writer.append(ids, sizeof ids);
  EXPECT_FALSE(std::filesystem::exists(path)) << "a reader could see half a file";
  writer.finish();

  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("model"), "tiny");
  EXPECT_EQ(file.floats("w"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file.find("w")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.doubles("loss"), std::vector<double>{0.1});
  EXPECT_EQ(file.integers("ids"), (std::vector<int64_t>{-7, 9}));
  EXPECT_TRUE(file.floats("none").empty());
  const std::string bytes = folder.read("a.safetensors");
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]) % 8, 0) << "data starts at a multiple of 8";
}

TEST(Safetensors, ReadsGoldenFilesOfAnotherWriter) {
  const SafetensorsFile file(std::string(LIULI_SOURCE_DIR) + "/tests/golden/quant/Q4_0.safetensors");
  EXPECT_EQ(file.metadata().at("block"), "32");
  EXPECT_EQ(file.raw("blocks").size(), 68u * 18);
  EXPECT_EQ(file.floats("values").size(), 68u * 32);
  EXPECT_EQ(file.integers("blocks").size(), 68u * 18);
}

TEST(Safetensors, WriterRefusesWhatWasNotAnnounced) {
  const TemporaryFolder folder("safetensors");
  const float values[3] = {};
  SafetensorsWriter writer(folder.file("a"), {{"w", DType::f32, {2}}});
  EXPECT_THROW(writer.finish(), Error) << "nothing was appended";
  EXPECT_THROW(writer.append(values, 12), Error) << "12 bytes for 8";
  writer.append(values, 8);
  writer.finish();
  EXPECT_EQ(SafetensorsFile(folder.file("a")).floats("w").size(), 2u);
  EXPECT_THROW(SafetensorsWriter(folder.file("b"), {{"w", DType::f32, {2}}, {"w", DType::f32, {2}}}), Error);
  EXPECT_THROW(SafetensorsWriter(folder.file("b"), {{"w", DType::q4_0, {32}}}), Error);
  EXPECT_THROW(SafetensorsWriter(folder.file("b"), {{"w", DType::f32, {-1}}}), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.file("b")));
}

TEST(Safetensors, ReaderNamesAMissingTensorAndAnotherKind) {
  const SafetensorsFile file(
      "s", bytes_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234")));
  EXPECT_THROW(file.floats("b"), Error);
  EXPECT_THROW(file.integers("a"), Error);
  EXPECT_EQ(file.find("b"), nullptr);
}

TEST(Safetensors, ReaderAcceptsAnEmptyFileOfTensorsAndPadding) {
  EXPECT_EQ(refusal(file_of("{}", "")), "accepted");
  EXPECT_EQ(refusal(file_of("{}      ", "")), "accepted");
}

TEST(Safetensors, ReaderRefusesBrokenHeaders) {
  expect_refused("1234567", "needs 8 bytes");
  expect_refused(Bytes().put<uint64_t>(100).raw("{}").data(), "needs 100 bytes, 2 are left");
  expect_refused(Bytes().put<uint64_t>(UINT64_MAX).raw("{}").data(), "100000000");
  expect_refused(file_of(" {}", ""), "begins with");
  expect_refused(file_of("{", ""), "ends with");
  expect_refused(file_of("{}\n", ""), "ends with");
  expect_refused(file_of("{\"a\":}", ""), "not JSON");
  expect_refused(file_of(R"({"a\u0000b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", ""), "NUL");
  expect_refused(file_of("{\"a\":[[[[[[1]]]]]]}", ""), "deeper than 4");
  expect_refused(file_of(R"({"a":1})", ""), "no dtype");
  expect_refused(file_of(R"({"__metadata__":{"a":1}})", ""), "not a string");
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                         "12"),
                 "appears twice");
}

TEST(Safetensors, ReaderRefusesShapesAndOffsetsThatContradict) {
  const auto entry = [](const char* shape, const char* offsets) {
    return fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})", shape, offsets);
  };
  EXPECT_EQ(refusal(file_of(entry("[2]", "[0,8]"), "12345678")), "accepted");
  expect_refused(file_of(entry("[2]", "[0,8]"), "1234567"), "7 bytes of data");
  expect_refused(file_of(entry("[2]", "[0,8]"), "123456789"), "end at byte 8");
  expect_refused(file_of(entry("[3]", "[0,8]"), "12345678"), "needs 12 bytes");
  expect_refused(file_of(entry("[1]", "[4,8]"), "12345678"), "begins at byte 4");
  expect_refused(file_of(entry("[2]", "[8,0]"), "12345678"), "do not lie");
  expect_refused(file_of(entry("[-2]", "[0,8]"), "12345678"), "whole number");
  expect_refused(file_of(entry("[2.0]", "[0,8]"), "12345678"), "whole number");
  expect_refused(file_of(entry("[4194305,4194305,211106198978564]", "[0,8]"), "12345678"), "needs more than");
  expect_refused(file_of(entry("[4611686018427387904]", "[0,8]"), "12345678"), "needs more than");
  expect_refused(file_of(entry("[1,1,1,1,1,1,1,1,2]", "[0,8]"), "12345678"), "9 dimensions");
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                         "123"),
                 "ends at 2");
}

}  // namespace
}  // namespace liuli
