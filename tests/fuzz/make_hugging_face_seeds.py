#!/usr/bin/env python3
"""Writes the small valid files in tests/fuzz/seeds that the safetensors and Hugging Face fuzz targets start from."""
import json
import pathlib
import struct

SEEDS = pathlib.Path(__file__).parent / "seeds"
BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F4": 4, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
        "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64}


def safetensors(tensors, metadata=None):
    """tensors: name -> (dtype, shape)."""
    header = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        bits = BITS[dtype]
        for d in shape:
            bits *= d
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + bits // 8]}
        at += bits // 8
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes((37 * i + 11) % 251 for i in range(at))


def folder(config, weight_map, shard):
    index = json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}).encode() if weight_map else b""
    return json.dumps(config).encode() + b"\xff" + index + b"\xff" + shard


SEEDS.mkdir(exist_ok=True)
every_type = safetensors({f"t.{name}": (name, [2, 3] if bits > 4 else [2, 4]) for name, bits in BITS.items()}, {"format": "pt"})
(SEEDS / "every_type.safetensors").write_bytes(every_type)
(SEEDS / "shapes.safetensors").write_bytes(safetensors({"scalar": ("F64", []), "none": ("F32", [0, 4]), "row": ("BF16", [5]), "deep": ("I8", [1, 2, 3, 1, 2])}))

config = {"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "rms_norm_eps": 1e-5, "eos_token_id": [1, 2], "pad_token_id": None,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "long": [1, 2.5]}, "big": 9223372036854775807, "tie": True, "mixed": [1, "a", {"b": 2}]}
(SEEDS / "one_file.hf").write_bytes(folder(config, None, every_type))
two = {"a": ("F32", [4, 2]), "b": ("F16", [3]), "stray": ("U8", [1])}
(SEEDS / "two_shards.hf").write_bytes(folder(config, {"a": "one", "b": "two"}, safetensors(two)))
fp8 = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}}
weights = {"w": ("F8_E4M3", [3, 256]), "w_scale_inv": ("F32", [1, 2]), "ragged": ("F8_E4M3", [2, 5]), "ragged_scale_inv": ("F32", [1, 1])}
(SEEDS / "fp8.hf").write_bytes(folder(fp8, None, safetensors(weights)))
(SEEDS / "fp8_shards.hf").write_bytes(folder(fp8, {name: "one" if name != "w_scale_inv" else "two" for name in weights}, safetensors(weights)))
