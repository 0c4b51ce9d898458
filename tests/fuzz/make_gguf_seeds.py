#!/usr/bin/env python3
"""Writes the small valid files in tests/fuzz/seeds that the GGUF fuzz target starts from."""
import pathlib
import struct

SEEDS = pathlib.Path(__file__).parent / "seeds"
# id: (elements per block, bytes per block)
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
         11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 16: (256, 66), 17: (256, 74), 18: (256, 98),
         19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2),
         26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
         40: (64, 36)}
SCALARS = "BbHhIif?"  # value types 0 ... 7


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, value_type, value):
    return string(name) + struct.pack("<I", value_type) + value


def array(name, element, count, values):
    return key(name, 9, struct.pack("<IQ", element, count) + values)


def pad(data, alignment=32):
    return data + b"\0" * (-len(data) % alignment)


def build(keys, tensors, version=3, gap=0):
    """tensors: (name, dimensions in file order, type)."""
    infos, data = b"", b""
    for name, dims, dtype in tensors:
        infos += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, dtype, len(data))
        block, size = TYPES[dtype]
        elements = 1
        for d in dims:
            elements *= d
        n = elements // block * size
        data = pad(data + bytes((37 * i + 11) % 256 for i in range(n))) + b"\0" * gap
    return pad(b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join(keys) + infos) + data


SEEDS.mkdir(exist_ok=True)
scalars = [key(f"k{i}", i, struct.pack("<" + code, 1)) for i, code in enumerate(SCALARS)]
scalars += [key("k10", 10, struct.pack("<Q", 5)), key("k11", 11, struct.pack("<q", -5)), key("k12", 12, struct.pack("<d", 0.5))]
arrays = [array(f"a{i}", i, 3, struct.pack("<3" + code, 0, 1, 1)) for i, code in enumerate(SCALARS)]
arrays += [array("a8", 8, 3, string("a") + string("") + string("longer text")), array("none", 8, 0, b"")]
general = [key("general.architecture", 8, string("llama")), key("general.alignment", 4, struct.pack("<I", 32))]
(SEEDS / "keys.gguf").write_bytes(build(general + scalars + arrays, [("w", (4, 2), 0)]))
(SEEDS / "types.gguf").write_bytes(build(general[:1], [(f"t{t}", (256,), t) for t in TYPES]))
(SEEDS / "v2_gaps.gguf").write_bytes(build(general, [("a", (32, 2, 1, 2), 2), ("b", (3,), 30)], version=2, gap=64))
