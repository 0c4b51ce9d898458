// Models whose panels are mapped from a file are the same models; a file that is not of the model is not used.
#include <filesystem>
#include <fstream>
#include <functional>

#include "formats/temporary_folder.h"
#include "formats/weight_source.h"
#include "golden_support.h"
#include "liuli/pack.h"

namespace liuli::golden {
namespace {

namespace fs = std::filesystem;

const std::vector<int> kIds = {3, 17, 40, 9, 2, 55, 31};

Engine load_panels(const std::string& model, const std::string& panels, bool exact = false) {
  LoadSettings settings;
  settings.panels = panels;
  settings.exact = exact;
  settings.threads = 2;
  return Engine::load(model, settings);
}

std::vector<std::vector<float>> logits_of(const std::string& model, const std::string& panels) {
  Engine engine = load_panels(model, panels);
  return all_logits(engine, kIds);
}

/// A copy of a golden model, file or folder, that may be written to.
class OwnModel {
 public:
  explicit OwnModel(const std::string& name, const std::string& folder = "pack")
      : folder_(folder), path_(folder_.file(fs::path(name).filename().string())) {
    fs::copy(golden_path("tiny/" + name), path_, fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.file("")))
      fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  }
  const std::string& path() const { return path_; }
  std::string panels() const { return path_ + ".panels"; }
  std::string file(const std::string& name) const { return folder_.file(name); }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

void change_byte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int old = file.get();
  ASSERT_NE(old, EOF) << path << " is shorter than " << at;
  file.seekp(at);
  file.put(static_cast<char>(old ^ 1));
}

class MappedPanels : public testing::TestWithParam<const char*> {};

TEST_P(MappedPanels, GiveTheSameBits) {
  const OwnModel model(GetParam());
  const auto packed = logits_of(model.path(), "none");
  PackSettings settings;
  int64_t announced = 0, last = 0, total = -1;
  settings.on_start = [&](const PanelFileInfo& file) { announced = file.bytes; };
  settings.on_progress = [&](int64_t done, int64_t all) { last = done, total = all; };
  const PanelFileInfo file = pack_model(model.path(), settings);
  EXPECT_EQ(file.path, model.panels());
  EXPECT_EQ(static_cast<uintmax_t>(file.bytes), fs::file_size(model.panels()));
  EXPECT_EQ(announced, file.bytes);
  EXPECT_EQ(last, total);

  const Engine mapped = load_panels(model.path(), "");
  EXPECT_EQ(mapped.plan().panel_file, model.panels());
  EXPECT_TRUE(mapped.notices().empty());
  EXPECT_EQ(logits_of(model.path(), ""), packed);
  EXPECT_EQ(load_panels(model.path(), "none").plan().panel_file, "");
  // Stored rows come back out of the panels.
  const Engine plain = load_panels(model.path(), "none");
  for (const WeightInfo& info : plain.weights())
    EXPECT_EQ(mapped.weight(info.name).values, plain.weight(info.name).values) << info.name;
}

INSTANTIATE_TEST_SUITE_P(TinyModels, MappedPanels,
                         testing::Values("llama/gguf/llama.F32.gguf", "llama/gguf/llama.F16.gguf",
                                         "llama/gguf/llama.Q4_0.gguf", "llama/gguf/llama.Q8_0.gguf",
                                         "llama/gguf/llama.MXFP4.gguf", "gemma3/gguf/gemma3.Q4_0.gguf",
                                         "llama", "llama_sharded", "gpt2", "mixtral", "deepseek_v3"),
                         [](const auto& p) {
                           std::string name = p.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

constexpr const char* kLlama = "llama/gguf/llama.Q4_0.gguf";

TEST(PanelFiles, MayLieElsewhereUnderAnyName) {
  const OwnModel model(kLlama);
  PackSettings settings;
  settings.output = model.file("other");
  settings.threads = 1;
  EXPECT_EQ(pack_model(model.path(), settings).path, model.file("other"));
  EXPECT_FALSE(fs::exists(model.panels()));
  EXPECT_EQ(logits_of(model.path(), model.file("other")), logits_of(model.path(), "none"));
  EXPECT_EQ(load_panels(model.path(), model.file("other")).plan().panel_file, model.file("other"));
  EXPECT_EQ(load_panels(model.path(), "").plan().panel_file, "");
}

TEST(PanelFiles, StayWithFilesThatAreRenamedTogether) {
  const OwnModel model(kLlama);
  pack_model(model.path());
  fs::rename(model.path(), model.file("b.gguf"));
  fs::rename(model.panels(), model.file("b.gguf.panels"));
  EXPECT_EQ(load_panels(model.file("b.gguf"), "").plan().panel_file, model.file("b.gguf.panels"));
}

TEST(PanelFiles, AFolderWithASlashHasTheSame) {
  const OwnModel model("llama_sharded");
  pack_model(model.path() + "/");
  EXPECT_TRUE(fs::exists(model.panels()));
  EXPECT_EQ(load_panels(model.path() + "/", "").plan().panel_file, model.panels());
}

TEST(PanelFiles, ExactRunsReadTheModelsRows) {
  const OwnModel model(kLlama);
  pack_model(model.path());
  const Engine engine = load_panels(model.path(), "", true);
  EXPECT_EQ(engine.plan().panel_file, "");
  EXPECT_EQ(engine.plan().weights[0].layout, "file");
  EXPECT_THROW(load_panels(model.path(), model.panels(), true), Error);
}

TEST(PanelFiles, NeverReplaceTheModel) {
  const OwnModel model(kLlama);
  const auto bytes = fs::file_size(model.path());
  PackSettings settings;
  settings.output = model.path();
  EXPECT_THROW(pack_model(model.path(), settings), Error);
  EXPECT_EQ(fs::file_size(model.path()), bytes);
}

TEST(PanelFiles, LeaveTheOldOneWhenPackingIsStopped) {
  const OwnModel model(kLlama);
  pack_model(model.path());
  const auto before = fs::last_write_time(model.panels());
  PackSettings settings;
  settings.on_progress = [](int64_t, int64_t) { throw Error(ErrorCode::cancelled, "enough"); };
  EXPECT_THROW(pack_model(model.path(), settings), Error);
  EXPECT_EQ(fs::last_write_time(model.panels()), before);
  EXPECT_EQ(load_panels(model.path(), "").plan().panel_file, model.panels());
}

TEST(PanelFiles, ANamedOneThatIsMissingIsAnError) {
  const OwnModel model(kLlama);
  try {
    load_panels(model.path(), model.file("missing.panels"));
    ADD_FAILURE() << "was loaded";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
  }
}

/// Something that makes a panel file wrong for its model.
struct Staleness {
  const char* name;
  std::function<void(const OwnModel&)> happen;
  ErrorCode code;      ///< when the file is named
  const char* reason;  ///< a part of the message
  const char* model = kLlama;
};

std::streamoff data_of(const OwnModel& model, const std::string& tensor) {
  return static_cast<std::streamoff>(open_weights(model.path())->find(tensor)->file_offset);
}

/// Rewrites the file without a trace in its size and time.
void change_unseen(const std::string& path, std::streamoff at) {
  const auto time = fs::last_write_time(path);
  change_byte(path, at);
  fs::last_write_time(path, time);
}

void replace_in_header(const std::string& path, const std::string& from, const std::string& to) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string head(1 << 16, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  const size_t at = head.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  ASSERT_EQ(from.size(), to.size());
  file.seekp(static_cast<std::streamoff>(at));
  file << to;
}

const Staleness kStale[] = {
    {"ATouchedModel",
     [](const OwnModel& m) {
       fs::last_write_time(m.path(), fs::last_write_time(m.path()) + std::chrono::nanoseconds(1000));
     },
     ErrorCode::invalid_argument, "was packed before"},
    {"ALongerModel", [](const OwnModel& m) { std::ofstream(m.path(), std::ios::app) << "more"; },
     ErrorCode::invalid_argument, "bytes"},
    {"ARowOfAFirstPanel",
     [](const OwnModel& m) { change_unseen(m.path(), data_of(m, "blk.1.ffn_up.weight") + 5); },
     ErrorCode::invalid_argument, "holds other rows of blk.1.ffn_up.weight"},
    {"AByteOfAPanel",
     [](const OwnModel& m) {
       change_byte(m.panels(), static_cast<std::streamoff>(fs::file_size(m.panels())) - 70);
     },
     ErrorCode::invalid_argument, "holds other rows of"},
    {"ATruncatedFile",
     [](const OwnModel& m) { fs::resize_file(m.panels(), fs::file_size(m.panels()) - 4096); },
     ErrorCode::corrupt_file, "it was cut off"},
    {"AFileWithoutData", [](const OwnModel& m) { fs::resize_file(m.panels(), 1 << 20); },
     ErrorCode::corrupt_file, "it was cut off"},
    {"AnEmptyFile", [](const OwnModel& m) { fs::resize_file(m.panels(), 0); }, ErrorCode::corrupt_file,
     "0 bytes"},
    {"Garbage", [](const OwnModel& m) { std::ofstream(m.panels()) << "This is a text of no meaning."; },
     ErrorCode::corrupt_file, "is no panel file"},
    {"AnotherFormat", [](const OwnModel& m) { change_byte(m.panels(), 8); }, ErrorCode::unsupported,
     "panel file of version"},
    {"AnotherList", [](const OwnModel& m) { replace_in_header(m.panels(), "blk.1.ffn_up", "blk.7.ffn_up"); },
     ErrorCode::invalid_argument, "where the model has blk.1.ffn_up.weight"},
    {"AnotherModel",
     [](const OwnModel& m) {
       const OwnModel other("llama/gguf/llama.Q8_0.gguf", "pack-other");
       pack_model(other.path());
       fs::copy_file(other.panels(), m.panels(), fs::copy_options::overwrite_existing);
     },
     ErrorCode::invalid_argument, "was packed from"},
    {"AnotherShard",
     [](const OwnModel& m) {
       const std::string shard = m.path() + "/model-00002-of-00003.safetensors";
       fs::last_write_time(shard, fs::last_write_time(shard) - std::chrono::seconds(1));
     },
     ErrorCode::invalid_argument, "model-00002-of-00003.safetensors was last written", "llama_sharded"},
    // Nothing is compared with rows that no file holds; the version stands for them.
    {"AnotherVersionWithTransposedRows",
     [](const OwnModel& m) { replace_in_header(m.panels(), "\"liuli\":\"0.", "\"liuli\":\"9."); },
     ErrorCode::invalid_argument, "was packed by Liuli 9.", "gpt2"},
};

class StalePanels : public testing::TestWithParam<Staleness> {};

TEST_P(StalePanels, AreNoticedAndNotUsed) {
  const Staleness& stale = GetParam();
  const OwnModel model(stale.model);
  pack_model(model.path());
  ASSERT_EQ(load_panels(model.path(), "").plan().panel_file, model.panels());
  stale.happen(model);
  if (HasFatalFailure()) return;

  Engine found = load_panels(model.path(), "");
  EXPECT_EQ(found.plan().panel_file, "");
  ASSERT_EQ(found.notices().size(), 1u);
  EXPECT_NE(found.notices()[0].find(stale.reason), std::string::npos) << found.notices()[0];
  EXPECT_EQ(all_logits(found, kIds), logits_of(model.path(), "none"));
  try {
    load_panels(model.path(), model.panels());
    ADD_FAILURE() << "a file that does not fit was used";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), stale.code) << e.what();
    EXPECT_NE(std::string(e.what()).find(stale.reason), std::string::npos) << e.what();
  }
  EXPECT_TRUE(load_panels(model.path(), "none").notices().empty());

  pack_model(model.path());  // renews it
  EXPECT_EQ(load_panels(model.path(), "").plan().panel_file, model.panels());
}

INSTANTIATE_TEST_SUITE_P(Everything, StalePanels, testing::ValuesIn(kStale),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(PanelFiles, OfAnotherVersionServeWhereRowsCanBeCompared) {
  const OwnModel model(kLlama);
  pack_model(model.path());
  replace_in_header(model.panels(), "\"liuli\":\"0.", "\"liuli\":\"9.");
  EXPECT_EQ(load_panels(model.path(), "").plan().panel_file, model.panels());
}

}  // namespace
}  // namespace liuli::golden
