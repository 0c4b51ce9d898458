#include "core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "liuli/error.h"

namespace liuli {
namespace {

uintptr_t address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

TEST(AlignedBuffer, IsZeroedAndAlignedAtEverySize) {
  for (size_t bytes : {size_t{1}, size_t{63}, size_t{4096}, AlignedBuffer::kHugeThreshold - 1,
                       AlignedBuffer::kHugeThreshold, AlignedBuffer::kHugeThreshold + 1, size_t{9} << 20}) {
    AlignedBuffer buffer(bytes);
    ASSERT_EQ(buffer.size(), bytes);
    const size_t unit = bytes >= AlignedBuffer::kHugeThreshold ? AlignedBuffer::kHugePage : 64;
    EXPECT_EQ(address(buffer.data()) % unit, 0u) << bytes;
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + bytes, [](uint8_t b) { return b == 0; })) << bytes;
    std::fill(buffer.data(), buffer.data() + bytes, uint8_t{0xff});  // all of it is ours to write
  }
}

TEST(AlignedBuffer, MovesItsMemoryAndLeavesNothingBehind) {
  AlignedBuffer a(100);
  a.data()[99] = 7;
  const uint8_t* data = a.data();
  AlignedBuffer b(std::move(a));
  EXPECT_EQ(b.data(), data);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(a.data(), nullptr);
  AlignedBuffer c(AlignedBuffer::kHugeThreshold);
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.as<uint8_t>()[99], 7);
}

TEST(AlignedBuffer, SaysHowMuchWasRefused) {
  for (size_t bytes : {size_t{1} << 60, ~size_t{0}}) {
    try {
      AlignedBuffer buffer(bytes);
      FAIL() << "no error for " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos) << error.what();
    }
  }
}

TEST(Arena, ArraysAreAlignedAndDoNotOverlap) {
  Arena arena;
  std::vector<std::pair<uint8_t*, int64_t>> taken;
  for (int64_t n : {1, 63, 64, 65, 1000, 0, 2000000, 5, 3000000}) {
    auto* p = arena.array<uint8_t>(n);
    EXPECT_EQ(address(p) % 64, 0u);
    std::fill(p, p + n, static_cast<uint8_t>(taken.size() + 1));
    taken.emplace_back(p, n);
  }
  for (size_t i = 0; i < taken.size(); i++) {
    const auto [p, n] = taken[i];
    EXPECT_TRUE(std::all_of(p, p + n, [i](uint8_t b) { return b == i + 1; })) << "array " << i;
  }
}

TEST(Arena, AReleasedMarkGivesTheSameMemoryAgain) {
  Arena arena;
  arena.floats(10);
  const Arena::Mark mark = arena.mark();
  float* first = arena.floats(1000);
  arena.release(mark);
  EXPECT_EQ(arena.floats(1000), first);
}

TEST(Arena, ScopesNest) {
  Arena arena;
  float *outer, *inner;
  {
    Arena::Scope a(arena);
    outer = arena.floats(16);
    {
      Arena::Scope b(arena);
      inner = arena.floats(16);
    }
    EXPECT_EQ(arena.floats(16), inner);
  }
  EXPECT_EQ(arena.floats(16), outer);
}

TEST(Arena, AWarmStepAllocatesNothing) {
  Arena arena;
  const auto step = [&] {
    Arena::Scope scope(arena);
    for (int64_t n : {100, 300000, 40, 900000, 100, 5000000}) arena.floats(n);
  };
  step();
  const size_t warm = arena.capacity();
  for (int i = 0; i < 100; i++) step();
  EXPECT_EQ(arena.capacity(), warm);
}

TEST(Arena, RefusesSizesThatOverflow) {
  Arena arena;
  EXPECT_THROW(arena.array<double>(INT64_MAX), Error);
  EXPECT_THROW(arena.floats(int64_t{1} << 58), Error);
  arena.floats(8)[7] = 1.0f;  // still usable afterwards
  EXPECT_EQ(arena.capacity(), size_t{1} << 20);
}

}  // namespace
}  // namespace liuli
