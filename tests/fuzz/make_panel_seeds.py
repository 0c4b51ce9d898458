#!/usr/bin/env python3
"""Writes the seeds of fuzz_panel_file in tests/fuzz/seeds: headers of panel files, whose data the target adds."""
import json
import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent / "seeds"


def header(description):
    text = json.dumps(description, separators=(",", ":")).encode()
    return b"LIULIPNL" + struct.pack("<II", 1, len(text)) + text


def matrix(name, kind, d_out, d_in, size):
    return {"name": name, "type": kind, "shape": [d_out, d_in], "bytes": size}


def source(name, size):
    return {"name": name, "bytes": size, "modified_ns": 1700000000123456789}


SEEDS = {
    "two_matrices.panels": {"liuli": "0.1.0", "files": [source("m.gguf", 12345)],
                            "matrices": [matrix("a", "Q4_K", 16, 256, 2240), matrix("b", "F32", 3, 5, 4096)]},
    "shards.panels": {"liuli": "0.1.0", "files": [source("m-00001-of-00002.safetensors", 7), source("m-00002-of-00002.safetensors", 8)],
                      "matrices": [matrix("a", "BF16", 16, 64, 2048), matrix("a", "Q8_0", 16, 64, 2176),
                                   matrix("\u7409", "F8_E4M3_B128", 16, 128, 2112)]},
}

for name, description in SEEDS.items():
    (FOLDER / name).write_bytes(header(description))
