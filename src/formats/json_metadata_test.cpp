#include "formats/json_metadata.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "liuli/error.h"

namespace liuli {
namespace {

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return std::string(to_string(e.code())) + ": " + e.what();
  }
  return "accepted";
}
std::string parse_refusal(const std::string& text) {
  return refusal([&] { JsonMetadata::parse("c.json", text); });
}
void expect_refused(const std::string& text, const char* part) {
  const std::string message = parse_refusal(text);
  EXPECT_EQ(message.rfind("corrupt_file: c.json: ", 0), 0u) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

const JsonMetadata& sample() {
  static const JsonMetadata metadata = JsonMetadata::parse("c.json", R"({
    "model_type": "llama", "hidden_size": 576, "rms_norm_eps": 1e-05, "rope_theta": 10000, "tie": false,
    "eos": [2, 7], "factors": [1, 1.5], "names": ["a", "é"], "flags": [true, false], "mixed": [1, "a"], "empty": [],
    "pad": null, "big": 9223372036854775807, "huge": 18446744073709551615, "negative": -9007199254740993,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "deep": {"er": 1, "nothing": null}}, "labels": [{"a": 1}]})");
  return metadata;
}

TEST(JsonMetadata, ReadsEveryKindOfValue) {
  const JsonMetadata& m = sample();
  EXPECT_EQ(m.text("model_type"), "llama");
  EXPECT_EQ(m.integer("hidden_size"), 576);
  EXPECT_EQ(m.number("rms_norm_eps"), 1e-5);
  EXPECT_EQ(m.number("rope_theta"), 10000.0) << "a number may be written as an integer";
  EXPECT_EQ(m.boolean("tie"), false);
  EXPECT_EQ(m.integers("eos"), (std::vector<int64_t>{2, 7}));
  EXPECT_EQ(m.numbers("factors"), (std::vector<float>{1, 1.5f}));
  EXPECT_EQ(m.texts("names"), (std::vector<std::string>{"a", "é"}));
  EXPECT_EQ(m.booleans("flags"), (std::vector<bool>{true, false}));
}

TEST(JsonMetadata, FlattensNestedObjectsWithDots) {
  const JsonMetadata& m = sample();
  EXPECT_EQ(m.text("rope_scaling.rope_type"), "yarn");
  EXPECT_EQ(m.number("rope_scaling.factor"), 4.0);
  EXPECT_EQ(m.integer("rope_scaling.deep.er"), 1);
  EXPECT_FALSE(m.has("rope_scaling"));
}

TEST(JsonMetadata, TreatsNullAsAbsent) {
  const JsonMetadata& m = sample();
  EXPECT_FALSE(m.has("pad"));
  EXPECT_FALSE(m.has("rope_scaling.deep.nothing"));
  EXPECT_EQ(m.integer("pad"), std::nullopt);
  EXPECT_EQ(m.texts("pad"), std::nullopt);
  const auto keys = m.keys();
  EXPECT_EQ(std::count(keys.begin(), keys.end(), "pad"), 0);
}

TEST(JsonMetadata, KeepsEveryDigitOf64BitIntegers) {
  EXPECT_EQ(sample().integer("big"), INT64_MAX);
  EXPECT_EQ(sample().integer("negative"), -9007199254740993);
  const std::string message = refusal([] { sample().integer("huge"); });
  EXPECT_EQ(message,
            "corrupt_file: c.json: key \"huge\" is 18446744073709551615, the largest integer allowed is "
            "9223372036854775807");
}

TEST(JsonMetadata, NamesKeyAndBothTypesWhereTheyDiffer) {
  const JsonMetadata& m = sample();
  EXPECT_EQ(refusal([&] { m.integer("model_type"); }),
            "corrupt_file: c.json: key \"model_type\" should be an integer, the file stores string");
  EXPECT_EQ(refusal([&] { m.integer("rms_norm_eps"); }),
            "corrupt_file: c.json: key \"rms_norm_eps\" should be an integer, the file stores number");
  EXPECT_EQ(refusal([&] { m.integers("mixed"); }),
            "corrupt_file: c.json: key \"mixed\" should be an array of integers, the file stores array[2]");
  for (const char* key : {"eos", "model_type", "tie"})
    EXPECT_NE(refusal([&] { m.number(key); }), "accepted") << key;
  for (const char* key : {"hidden_size", "model_type", "names"}) {
    EXPECT_NE(refusal([&] { m.boolean(key); }), "accepted") << key;
    EXPECT_NE(refusal([&] { m.booleans(key); }), "accepted") << key;
    EXPECT_NE(refusal([&] { m.numbers(key); }), "accepted") << key;
  }
  EXPECT_NE(refusal([&] { m.text("hidden_size"); }), "accepted");
  EXPECT_NE(refusal([&] { m.texts("eos"); }), "accepted");
}

TEST(JsonMetadata, DescribesTypesAndValuesForInspection) {
  const JsonMetadata& m = sample();
  EXPECT_EQ(m.type_name("hidden_size"), "integer");
  EXPECT_EQ(m.type_name("rms_norm_eps"), "number");
  EXPECT_EQ(m.type_name("names"), "string[2]");
  EXPECT_EQ(m.type_name("mixed"), "array[2]");
  EXPECT_EQ(m.type_name("empty"), "array[0]");
  EXPECT_EQ(m.type_name("pad"), "");
  EXPECT_EQ(m.json("eos", 1), "[2]");
  EXPECT_EQ(m.json("names", 9), "[\"a\", \"é\"]");
  EXPECT_EQ(m.json("rms_norm_eps", 9), "1e-05");
  EXPECT_EQ(m.json("labels", 9), "[{\"a\":1}]");
  EXPECT_EQ(m.json("pad", 9), "null");
  EXPECT_TRUE(m.is_array("empty"));
  EXPECT_EQ(m.integers("empty"), std::vector<int64_t>());
  EXPECT_FALSE(m.is_array("tie"));
}

TEST(JsonMetadata, TakesAnObjectThatWasNeverAFile) {
  const JsonMetadata m("made here", nlohmann::json{{"n", 3}, {"a", {{"b", true}}}});
  EXPECT_EQ(m.keys(), (std::vector<std::string>{"a.b", "n"}));
  EXPECT_EQ(m.integer("n"), 3);
  EXPECT_NE(refusal([] { JsonMetadata("made here", nlohmann::json(3)); }), "accepted");
}

TEST(JsonMetadata, RefusesWhatIsNotOneObject) {
  expect_refused("", "not JSON");
  expect_refused("[1]", "is array, not an object");
  expect_refused("{} {}", "not JSON");
  expect_refused(R"({"a": NaN})", "not JSON");
  expect_refused(R"({"a": -Infinity})", "not JSON");
  expect_refused(R"({"a": 1e999})", "not JSON");
  expect_refused("{\"a\": \"\xff\"}", "not JSON");
}

TEST(JsonMetadata, RefusesAKeyTwice) {
  expect_refused(R"({"a": 1, "a": 2})", "key \"a\" appears twice");
  expect_refused(R"({"x": {"a": 1, "b": 1, "a": 1}})", "key \"a\" appears twice");
  expect_refused(R"({"x": [{"a": 1, "a": null}]})", "key \"a\" appears twice");
  expect_refused(R"({"x.a": 1, "x": {"a": 2}})", "key \"x.a\" appears twice");
  EXPECT_EQ(parse_refusal(R"({"x": {"a": 1}, "y": {"a": 1}, "a": 1, "z": [{"a": 1}, {"a": 2}]})"),
            "accepted");
}

TEST(JsonMetadata, RefusesAbsurdNestingAndNames) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; i++) text += "{\"a\":";
    return text + "1" + std::string(static_cast<size_t>(depth), '}');
  };
  EXPECT_EQ(parse_refusal(nested(16)), "accepted");
  expect_refused(nested(17), "nests deeper than 16 levels");
  expect_refused(nested(100000), "nests deeper than 16 levels");
  expect_refused("{\"a\":" + std::string(100000, '['), "JSON");
  expect_refused("{\"" + std::string(1025, 'k') + "\": 1}", "has 1025 bytes, the limit is 1024");
}

}  // namespace
}  // namespace liuli
