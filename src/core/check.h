// Invariants of our own code. User input must never be able to reach one: it gets an Error instead.
#pragma once
#include <cstdio>
#include <cstdlib>

#define LIULI_CHECK(condition)                                                                           \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (0)
