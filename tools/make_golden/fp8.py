#!/usr/bin/env python3
"""Writes tests/golden/fp8: a folder with FP8 weights in DeepSeek's form, and what they decode to.

Needs numpy and ml_dtypes (an implementation of float8_e4m3fn of its own). Usage: fp8.py OUTPUT_FOLDER
"""
import json
import struct
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

BLOCK = 128
DTYPES = {np.dtype(np.float32): "F32", np.dtype(ml_dtypes.float8_e4m3fn): "F8_E4M3", np.dtype(ml_dtypes.bfloat16): "BF16"}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": DTYPES[array.dtype], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def dequantise(codes, scale):
    """W[r, c] = codes[r, c] · scale[r // 128, c // 128], in float32."""
    rows, columns = codes.shape
    spread = np.repeat(np.repeat(scale, BLOCK, axis=0), BLOCK, axis=1)[:rows, :columns]
    return codes.astype(np.float32) * spread


def weight(random, rows, columns):
    codes = random.normal(0, 60, (rows, columns)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    blocks = (-(-rows // BLOCK), -(-columns // BLOCK))
    return codes, random.uniform(1e-5, 3e-3, blocks).astype(np.float32)


def main(folder):
    random = np.random.default_rng(20260)
    every_code = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).reshape(2, 128)
    weights = {
        "every_code": (every_code, np.array([[1.0]], np.float32)),
        "edge_rows": weight(random, 130, 256),  # the second row of blocks has 2 rows
        "one_block": weight(random, 3, 128),
        "ragged": weight(random, 131, 72),  # columns that are no multiple of 128: read as F32
    }
    stored, values = {}, {}
    for name, (codes, scale) in weights.items():
        stored[f"{name}.weight_scale_inv"] = scale
        stored[f"{name}.weight"] = codes
        values[f"{name}.weight"] = dequantise(codes, scale)
    stored["norm.weight"] = random.normal(1, 0.1, 16).astype(ml_dtypes.bfloat16)
    config = {"model_type": "fp8_sample", "quantization_config": {
        "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK]}}
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", stored)
    write_safetensors(folder / "values.safetensors", values)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


main(Path(sys.argv[1]))
