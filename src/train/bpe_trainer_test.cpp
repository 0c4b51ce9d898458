// Vocabularies against those of Hugging Face's own trainer, and against what they must do.
#include "train/bpe_trainer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "liuli/error.h"
#include "tokenizers/hugging_face.h"

namespace liuli {
namespace {

nlohmann::json golden() {
  std::ifstream file(LIULI_SOURCE_DIR "/tests/golden/train/bpe.json");
  return nlohmann::json::parse(file);
}

std::unique_ptr<Tokenizer> load(const std::string& json, const std::string& config) {
  return read_hugging_face_text(
             [&](std::string_view name) -> std::optional<std::string> {
               if (name == "tokenizer.json") return json;
               if (name == "tokenizer_config.json") return config;
               return std::nullopt;
             },
             "")
      .tokenizer;
}

TEST(BpeTrainer, MakesTheVocabularyAndMergesOfTheReference) {
  const nlohmann::json g = golden();
  for (const auto& run : g["runs"]) {
    TokenizerTraining settings;
    settings.kind = run["kind"];
    settings.vocab_size = run["vocab_size"];
    settings.special = {"<|endoftext|>", "<|pad|>"};
    WordCounts counts(settings.kind);
    for (const std::string document : g["documents"]) counts.add(document);
    const TrainedVocabulary ours = train_bpe(counts, settings);
    EXPECT_EQ(ours.tokens, run["tokens"].get<std::vector<std::string>>()) << settings.kind;
    EXPECT_EQ(ours.merges, (run["merges"].get<std::vector<std::pair<std::string, std::string>>>()))
        << settings.kind;
  }
}

TEST(BpeTrainer, WritesATokenizerThatGivesEveryTextBack) {
  const nlohmann::json g = golden();
  for (const char* kind : {"gpt-2", "qwen2", "characters"}) {
    SCOPED_TRACE(kind);
    TokenizerTraining settings;
    settings.kind = kind;
    settings.vocab_size = 600;
    WordCounts counts(kind);
    for (const std::string document : g["documents"]) counts.add(document);
    const TrainedVocabulary vocabulary =
        settings.kind == "characters" ? train_characters(counts, settings) : train_bpe(counts, settings);
    const auto tokenizer = load(tokenizer_json(vocabulary, settings), tokenizer_config_json(settings, 64));
    EXPECT_EQ(tokenizer->data().eos, 0);
    EXPECT_EQ(tokenizer->vocab_size(), static_cast<int>(vocabulary.tokens.size()));
    for (const std::string document : g["documents"])
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(document, false, false)), document);
    const std::string strange = "a ▂ b  龘🙂\t<|endoftext|>";  // nothing of it was seen
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(strange, false, false)), strange);
  }
}

TEST(CharacterTrainer, GivesEachFrequentCharacterOneToken) {
  TokenizerTraining settings;
  settings.kind = "characters";
  settings.vocab_size = 262;  // <|endoftext|>, <unk>, 256 bytes, four characters
  WordCounts counts("characters");
  counts.add("春春春春 春夏夏夏秋秋冬冬a");
  const TrainedVocabulary v = train_characters(counts, settings);
  const std::vector<std::string> last(v.tokens.end() - 4, v.tokens.end());
  EXPECT_EQ(last,
            (std::vector<std::string>{"春", "夏", "冬", "▁"}));  // U+51AC before U+79CB; a place for " "
}

TEST(CharacterTrainer, GivesSpacesBackThatNoTextHad) {
  TokenizerTraining settings;
  settings.kind = "characters";
  WordCounts counts("characters");
  counts.add("春春夏");
  const auto tokenizer =
      load(tokenizer_json(train_characters(counts, settings), settings), tokenizer_config_json(settings, 64));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("春 a 夏", false, false)), "春 a 夏");
}

TEST(BpeTrainer, RefusesAVocabularyWithoutRoomForTheBytes) {
  TokenizerTraining settings;
  settings.vocab_size = 256;  // one special token more than fits
  EXPECT_THROW(train_bpe(WordCounts("qwen2"), settings), Error);
  settings.vocab_size = 257;
  EXPECT_EQ(train_bpe(WordCounts("qwen2"), settings).tokens.size(), 257u);
}

TEST(BpeTrainer, RefusesAKindNobodyKnows) {
  TokenizerTraining settings;
  settings.kind = "words";
  EXPECT_THROW(tokenizer_json({}, settings), Error);
}

}  // namespace
}  // namespace liuli
