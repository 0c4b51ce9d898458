// Generating allocates nothing per token: counted by the program's own operator new and malloc's relatives.
#include <atomic>
#include <cstdlib>
#include <new>

#include "golden_support.h"

namespace {
std::atomic<int64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = alignment > 0
                     ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                     : std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 0); }
void* operator new[](std::size_t bytes) { return counted(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace liuli::golden {
namespace {

int64_t allocations_of_feeding(Session& session, int tokens) {
  const int id = 7;
  const int64_t before = allocations;
  for (int i = 0; i < tokens; i++) session.feed({&id, 1}, true);
  return allocations - before;
}

class AllocationsOf : public testing::TestWithParam<const char*> {};

TEST_P(AllocationsOf, AGeneratedTokenAllocatesNothing) {
  const std::string name = GetParam();
  Engine engine =
      load(name == "smollm2" ? real_model(name) : golden_path(name), ProductClassChoice::automatic, false, 1);
  Session session(engine);
  const std::vector<int> prompt(64, 5);
  session.feed(prompt);
  session.feed({prompt.data(), 1}, true);  // a new page of the cache, scratch of the decode class
  EXPECT_EQ(allocations_of_feeding(session, 20), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, AllocationsOf,
                         testing::Values("tiny/llama/gguf/llama.Q4_0.gguf",
                                         "tiny/gemma3/gguf/gemma3.Q8_0.gguf",
                                         "tiny/qwen2moe/gguf/qwen2moe.F16.gguf",
                                         "tiny/deepseek_v3/gguf/deepseek_v3.Q8_0.gguf", "smollm2"),
                         [](const auto& i) {
                           std::string name = i.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

// Sampling and text: what is left per token is the record of it (its text, and the list it is put into).
TEST(Allocations, DrawingATokenAllocatesOnlyItsRecord_smollm2) {
  Engine engine = load(real_model("smollm2"), ProductClassChoice::automatic, false, 1);
  GenerateSettings settings;
  settings.ignore_eos = true;
  settings.sampling.temperature = 0.8f;
  settings.sampling.top_k = 40;
  settings.sampling.top_p = 0.9f;
  const auto allocations_of = [&](int tokens) {
    Session session(engine);
    settings.max_tokens = tokens;
    const std::vector<int> prompt(64, 5);
    const int64_t before = allocations;
    session.generate(prompt, settings);
    return allocations - before;
  };
  allocations_of(30);
  const int64_t ten = allocations_of(10), thirty = allocations_of(30);
  EXPECT_LT(thirty - ten, 20) << "allocations of 20 tokens more";
}

}  // namespace
}  // namespace liuli::golden
