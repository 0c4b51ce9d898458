"""What the tests share: where the reference numbers are, and a reader of safetensors files."""

import json
import os
import struct
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "tiny"
LOGITS, ACTIVATIONS, PATTERNS = 2e-4, 1e-4, 1e-5
_TYPES = {"F64": "<f8", "F32": "<f4", "I32": "<i4", "I64": "<i8"}


def read_safetensors(path) -> dict:
    """Every array of a file. Raises KeyError for a type that NumPy lacks."""
    data = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def golden(name: str) -> dict:
    return read_safetensors(GOLDEN / name / "golden.safetensors")


def files(name: str) -> list:
    """A tiny model's folder and, where there is one, its GGUF twin."""
    twin = GOLDEN / name / "gguf" / f"{name}.F32.gguf"
    return [GOLDEN / name] + ([twin] if twin.exists() else [])


def smollm2() -> str:
    return os.path.join(os.environ["LIULI_MODELS"], "smollm2.gguf")
