// The two products of VNNI in 256-bit registers. Included first by the files here, before avx2/vector.h and the engines over
// it: where this header is, they multiply with it.
//
// AVX-VNNI and AVX-512 encode the same instructions differently, and a CPU may have only one of the encodings. The level uses the
// former; tests compile the same files for the latter (__AVX512VNNI__) under names of their own, to run them on more machines.
#pragma once
#include <immintrin.h>

#ifdef __AVXVNNI__
#define LIULI_VNNI_NAME(name) name##_avxvnni
#else
#define LIULI_VNNI_NAME(name) name##_evex
#endif

namespace liuli::kernels {
namespace {

// In assembly: GCC 12 copies and stores every accumulator of the intrinsics, in every turn of a loop.
#ifdef __AVXVNNI__
#define LIULI_VNNI_DOT(instruction) "%{vex%} " instruction " %2, %1, %0"
#else
#define LIULI_VNNI_DOT(instruction) instruction " %2, %1, %0"
#endif

/// sum + the four products of unsigned and signed bytes, in every 32-bit lane.
inline __attribute__((always_inline)) __m256i dot_bytes(__m256i sum, __m256i unsigned_bytes, __m256i bytes) {
  asm(LIULI_VNNI_DOT("vpdpbusd") : "+x"(sum) : "x"(unsigned_bytes), "x"(bytes));
  return sum;
}

/// sum + the two products of signed 16-bit integers, in every 32-bit lane.
inline __attribute__((always_inline)) __m256i dot_words(__m256i sum, __m256i a, __m256i b) {
  asm(LIULI_VNNI_DOT("vpdpwssd") : "+x"(sum) : "x"(a), "x"(b));
  return sum;
}

}  // namespace
}  // namespace liuli::kernels
