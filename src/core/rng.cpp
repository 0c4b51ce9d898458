#include "core/rng.h"

#include <bit>
#include <cmath>

#include "core/check.h"
#include "liuli/error.h"

namespace liuli {
namespace {

/// splitmix64 (Steele, Lea & Flood 2014): a counter and a mixer; never gives xoshiro the all-zero state.
uint64_t splitmix64(uint64_t& counter) {
  uint64_t z = counter += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed, uint64_t stream) {
  // Stream 0 is the plain seeding; the others start the counter at a place mixed from the stream's number.
  uint64_t counter = seed;
  if (stream != 0) counter = seed ^ splitmix64(stream);
  for (uint64_t& word : state_) word = splitmix64(counter);
}

Rng Rng::from_state(const State& state) {
  if (state == State{})  // the one state that never leaves itself
    throw Error(ErrorCode::invalid_argument,
                "random generator: its state is all zero, which no run can have saved");
  Rng rng;
  rng.state_ = state;
  return rng;
}

uint64_t Rng::next_u64() {
  State& s = state_;
  const uint64_t result = std::rotl(s[1] * 5, 7) * 9;
  const uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

uint64_t Rng::below(uint64_t n) {
  LIULI_CHECK(n > 0);
  const uint64_t skip =
      (0 - n) % n;  // 2⁶⁴ mod n: the draws below it would make some remainders more frequent
  uint64_t draw;
  do draw = next_u64();
  while (draw < skip);
  return draw % n;
}

double Rng::normal() {
  const double radius =
      std::sqrt(-2 * std::log(1 - uniform()));  // 1 − u is in (0, 1]: the logarithm is finite
  return radius * std::cos(6.283185307179586476925 * uniform());
}

}  // namespace liuli
