// Token files, documents and windows.
#include "train/dataset.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/output_file.h"
#include "formats/temporary_folder.h"
#include "liuli/error.h"

namespace liuli {
namespace {

std::vector<int> counting(int n) {
  std::vector<int> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

void write_bytes(const std::string& path, const std::string& bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.commit();
}

std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(127 - 10 - header.size(), ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\0", 8) + std::string({static_cast<char>(header.size()), '\0'}) + header +
         data;
}

TEST(TokenFile, HoldsSmallAndLargeIds) {
  const TemporaryFolder folder("dataset");
  for (const int largest : {65535, 65536}) {
    const std::vector<int> tokens = {0, 7, largest};
    write_token_file(folder.file("a.tokens"), tokens);
    const TokenStream stream = TokenStream::open(folder.file("a.tokens"));
    EXPECT_EQ(stream.read(0, stream.size()), tokens);
    EXPECT_EQ(stream.fingerprint(), TokenStream(tokens).fingerprint());
  }
}

TEST(TokenFile, ReadsArraysOfNumpy) {
  const TemporaryFolder folder("dataset");
  write_bytes(folder.file("a.npy"), npy("<u2", "(3,)", std::string("\1\0\2\0\3\1", 6)));
  const TokenStream stream = TokenStream::open(folder.file("a.npy"));
  EXPECT_EQ(stream.read(0, 3), (std::vector<int>{1, 2, 259}));
  write_bytes(folder.file("b.npy"), npy("<i8", "(1,)", std::string("\5\0\0\0\0\0\0\0", 8)));
  EXPECT_EQ(TokenStream::open(folder.file("b.npy")).at(0), 5);
}

TEST(TokenFile, RefusesWhatContradictsItself) {
  const TemporaryFolder folder("dataset");
  write_token_file(folder.file("good.tokens"), counting(5));
  const std::vector<std::string> bad = {"LIULI",
                                        std::string("LIULITOK") + std::string(16, '\0'),
                                        npy("<u2", "(4,)", "abc"),
                                        npy("<f4", "(1,)", "abcd"),
                                        npy("<u2", "(1, 2)", "abcd"),
                                        "\x93NUMPY\x01",
                                        "something else entirely"};
  for (size_t i = 0; i < bad.size(); i++) {
    write_bytes(folder.file("bad"), bad[i]);
    EXPECT_THROW(TokenStream::open(folder.file("bad")), Error) << i;
  }
}

TEST(Documents, AreHeldOutWholeAndAlwaysTheSame) {
  for (int again = 0; again < 2; again++) {
    DatasetBuilder builder(0.3, 11);
    for (int i = 0; i < 200; i++) builder.add({i, i, i});
    const Dataset d = std::move(builder).build();
    EXPECT_EQ(d.train.size() + d.held_out.size(), 600);
    EXPECT_NEAR(static_cast<double>(d.held_out.size()), 180, 60);
    for (int64_t i = 0; i < d.held_out.size(); i += 3) {
      EXPECT_EQ(d.held_out.at(i), d.held_out.at(i + 2));
      if (again == 0) continue;
      DatasetBuilder same(0.3, 11);
      for (int j = 0; j < 200; j++) same.add({j, j, j});
      EXPECT_EQ(std::move(same).build().held_out.at(i), d.held_out.at(i));
    }
  }
}

TEST(Documents, OfWhichThereIsOneLoseTheirEnd) {
  DatasetBuilder builder(0.25, 1);
  builder.add(counting(100));
  const Dataset d = std::move(builder).build();
  EXPECT_EQ(d.train.size(), 75);
  EXPECT_EQ(d.held_out.at(0), 75);
}

TEST(Windows, FollowFromTheStepAlone) {
  const TokenStream stream(counting(1000));
  const auto a = draw_windows(stream, {8, 16}, 5, 3), b = draw_windows(stream, {8, 16}, 5, 3),
             c = draw_windows(stream, {8, 16}, 5, 4);
  for (size_t i = 0; i < a.size(); i++) {
    EXPECT_EQ(a[i].input, b[i].input);
    ASSERT_EQ(a[i].input.size(), 16u);
    EXPECT_EQ(a[i].target[0], a[i].input[1]);
    EXPECT_EQ(a[i].target.back(), a[i].input.back() + 1);
  }
  EXPECT_NE(a[0].input, c[0].input);
}

TEST(Windows, ReachBothEndsOfTheStream) {
  const TokenStream stream(counting(6));  // windows of 4 with their target begin at 0 or 1
  std::vector<int> seen(3);
  for (int64_t step = 0; step < 50; step++)
    seen[static_cast<size_t>(draw_windows(stream, {1, 4}, 1, step)[0].input[0])]++;
  EXPECT_GT(seen[0], 10);
  EXPECT_GT(seen[1], 10);
  EXPECT_EQ(seen[2], 0);
}

TEST(HeldOutWindows, DoNotOverlap) {
  const auto windows = even_windows(TokenStream(counting(101)), 10, 4);
  ASSERT_EQ(windows.size(), 4u);
  for (size_t i = 1; i < windows.size(); i++) EXPECT_GE(windows[i].input[0], windows[i - 1].input[0] + 10);
  EXPECT_EQ(even_windows(TokenStream(counting(7)), 10, 4)[0].input.size(), 6u);  // shorter than a window
  EXPECT_TRUE(even_windows(TokenStream(counting(1)), 10, 4).empty());
}

}  // namespace
}  // namespace liuli
