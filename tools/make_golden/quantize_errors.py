#!/usr/bin/env python3
"""Writes tests/golden/quantize_errors.json: the errors of llama.cpp's block encoders on a small sample that any program
can make again, without and with an importance matrix.

    quantize_errors.py LIBGGML_BASE.so OUTPUT.json      (needs numpy; the package gguf decodes)

The library is llama.cpp's ggml-base, built shared. Sample: 24 rows of 1024 values from a 64-bit linear congruential
generator (sample() below; the same lines stand in src/convert/encode_test.cpp).
"""
import ctypes
import json
import sys

import gguf
import numpy as np

ROWS, COLUMNS = 24, 1024
TYPES = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"]


def uniforms(seed):
    """u in [-1/2, 1/2), 24 bits each."""
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 40) / 2**24 - 0.5


def sample():
    """Sums of three uniforms, nearly normal; every 97th value four times as large, as weights have outliers."""
    u = uniforms(1)
    values = [(next(u) + next(u) + next(u)) * (0.2 if i % 97 == 0 else 0.05) for i in range(ROWS * COLUMNS)]
    return np.array(values, np.float32).reshape(ROWS, COLUMNS)


def importance():
    u = uniforms(2)
    return np.array([0.01 + 16 * next(u) ** 4 for _ in range(COLUMNS)], np.float32)


def relative_error(x, decoded, weights):
    difference = x.astype(np.float64) - decoded
    return float(np.sqrt((weights * difference**2).sum() / (weights * x.astype(np.float64) ** 2).sum()))


def main(library, output):
    encode = ctypes.CDLL(library).ggml_quantize_chunk
    encode.restype = ctypes.c_size_t
    encode.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
                       ctypes.c_void_p]
    x, w = sample(), importance()
    errors = {}
    for name in TYPES:
        qtype = gguf.GGMLQuantizationType[name]
        block, size = gguf.GGML_QUANT_SIZES[qtype]

        def encoded(weights):
            out = np.zeros((ROWS, COLUMNS // block * size), np.uint8)
            encode(int(qtype), x.ctypes.data, out.ctypes.data, 0, ROWS, COLUMNS,
                   None if weights is None else weights.ctypes.data)
            return gguf.quants.dequantize(out, qtype)

        errors[name] = {"plain": round(relative_error(x, encoded(None), np.ones(COLUMNS)), 8),
                        "weighted": round(relative_error(x, encoded(w), w), 8)}
    with open(output, "w", encoding="utf-8") as file:
        json.dump(errors, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
