// Drives a fuzz target without libFuzzer, which needs clang.
//
//   replay FILE…                             runs each file once
//   replay --mutate N --seed S FILE…         runs N mutated copies of the files
//
// Prints the count and the slowest input. Fails when an input takes more than 10 s or asks for one allocation
// above 4 × its size + 16 MiB; a crash, or a sanitizer's finding, ends it by itself. The input that failed is
// in failed.bin.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::atomic<size_t> allocation_limit{0};  ///< 0: none

void* limited_allocation(size_t bytes) {
  const size_t limit = allocation_limit.load(std::memory_order_relaxed);
  if (limit != 0 && bytes > limit) {
    std::fprintf(stderr, "one allocation of %zu bytes, the limit for this input is %zu (see failed.bin)\n",
                 bytes, limit);
    std::abort();
  }
  void* memory = std::malloc(std::max<size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// NOLINTBEGIN: the replaceable functions of the language
void* operator new(size_t bytes) { return limited_allocation(bytes); }
void* operator new[](size_t bytes) { return limited_allocation(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {  // std::stable_sort asks this way
  return std::malloc(std::max<size_t>(bytes, 1));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
// NOLINTEND

namespace {

using Input = std::vector<uint8_t>;
using Random = std::mt19937_64;
constexpr double kSlowestAllowed = 10.0;  // seconds
constexpr size_t kMaxInput = size_t{1} << 22;

/// Values that lengths, counts and offsets go wrong at.
constexpr uint64_t kInteresting[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     15,
                                     16,
                                     31,
                                     32,
                                     33,
                                     63,
                                     64,
                                     255,
                                     256,
                                     65535,
                                     65536,
                                     0x7FFFFFFF,
                                     0x80000000,
                                     0xFFFFFFFF,
                                     0x100000000,
                                     uint64_t{1} << 40,
                                     uint64_t{1} << 61,
                                     INT64_MAX,
                                     uint64_t{1} << 63,
                                     UINT64_MAX - 31,
                                     UINT64_MAX - 7,
                                     UINT64_MAX};

size_t below(Random& random, size_t n) {
  return n == 0 ? 0 : std::uniform_int_distribution<size_t>(0, n - 1)(random);
}

/// Headers are short and stand first: the magnitude of the place is uniform, not the place.
size_t place(Random& random, const Input& input) {
  size_t reach = input.size();
  for (size_t halvings = below(random, 8); halvings > 0 && reach > 64; halvings--) reach /= 2;
  return below(random, reach);
}

void flip_bit(Input& input, Random& random) {
  input[place(random, input)] ^= static_cast<uint8_t>(1 << below(random, 8));
}
void set_byte(Input& input, Random& random) { input[place(random, input)] = static_cast<uint8_t>(random()); }
void truncate(Input& input, Random& random) { input.resize(place(random, input)); }

/// A field of 1, 2, 4 or 8 bytes gets an interesting value, or one near the old or near the size of the
/// input.
void edit_field(Input& input, Random& random) {
  const size_t width = size_t{1} << below(random, 4), at = place(random, input);
  if (at + width > input.size()) return;
  uint64_t value = 0;
  std::memcpy(&value, input.data() + at, width);
  switch (below(random, 4)) {
    case 0:
      value += below(random, 65) - 32;
      break;
    case 1:
      value = input.size() + below(random, 65) - 32;
      break;
    default:
      value = kInteresting[below(random, std::size(kInteresting))];
  }
  std::memcpy(input.data() + at, &value, width);
}

/// Up to 256 bytes of another (or the same) seed over, or between, what is there.
void splice(Input& input, const Input& other, Random& random) {
  if (other.empty()) return;
  const size_t from = place(random, other), n = std::min(other.size() - from, 1 + below(random, 256));
  const size_t at = place(random, input);
  const auto begin = other.begin() + static_cast<ptrdiff_t>(from), end = begin + static_cast<ptrdiff_t>(n);
  if (below(random, 2) == 0 && input.size() + n < kMaxInput) {
    input.insert(input.begin() + static_cast<ptrdiff_t>(at), begin, end);
  } else {
    std::copy_n(begin, std::min(n, input.size() - at), input.begin() + static_cast<ptrdiff_t>(at));
  }
}

void cut_out(Input& input, Random& random) {
  const size_t at = place(random, input), n = std::min(input.size() - at, 1 + below(random, 64));
  input.erase(input.begin() + static_cast<ptrdiff_t>(at), input.begin() + static_cast<ptrdiff_t>(at + n));
}

Input mutated(const std::vector<Input>& seeds, Random& random) {
  Input input = seeds[below(random, seeds.size())];
  for (size_t changes = 1 + below(random, 4); changes > 0 && !input.empty(); changes--) {
    switch (below(random, 12)) {
      case 0:
      case 1:
      case 2:
        flip_bit(input, random);
        break;
      case 3:
      case 4:
        set_byte(input, random);
        break;
      case 5:
        splice(input, seeds[below(random, seeds.size())], random);
        break;
      case 6:
        cut_out(input, random);
        break;
      case 7:
        truncate(input, random);
        break;
      default:
        edit_field(input, random);
    }
  }
  return input;
}

Input read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot open the file\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(in), {}};
}

void keep(const Input& input) {
  std::ofstream("failed.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
}

/// Runs one input in a block of exactly its size, so that a sanitizer sees the first byte too far. Returns
/// seconds.
double run(const Input& input) {
  const auto exact = std::make_unique<uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), exact.get());
  const auto start = std::chrono::steady_clock::now();
  allocation_limit = 4 * input.size() + (size_t{16} << 20);
  LLVMFuzzerTestOneInput(exact.get(), input.size());
  allocation_limit = 0;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Options {
  size_t mutations = 0;
  uint64_t seed = 1;
  std::vector<const char*> files;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i++) {
    if (std::strcmp(argv[i], "--mutate") == 0 && i + 1 < argc) {
      options.mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      options.files.push_back(argv[i]);
    }
  }
  if (options.files.empty()) {
    std::fprintf(stderr, "usage: replay [--mutate N] [--seed S] FILE...\n");
    std::exit(2);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::vector<Input> seeds;
  for (const char* file : options.files) seeds.push_back(read_file(file));
  Random random(options.seed);
  const size_t runs = options.mutations > 0 ? options.mutations : seeds.size();
  double slowest = 0;
  for (size_t i = 0; i < runs; i++) {
    const Input input = options.mutations > 0 ? mutated(seeds, random) : seeds[i];
    keep(input);  // before the run: a crash leaves no time afterwards
    slowest = std::max(slowest, run(input));
    if (slowest > kSlowestAllowed) {
      std::fprintf(stderr, "input %zu took %.1f s, the limit is %.0f s (see failed.bin)\n", i, slowest,
                   kSlowestAllowed);
      return 1;
    }
  }
  std::remove("failed.bin");
  std::printf("%zu inputs, slowest %.3f s\n", runs, slowest);
  return 0;
}
