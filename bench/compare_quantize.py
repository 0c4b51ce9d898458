#!/usr/bin/env python3
"""Liuli's quantiser beside llama.cpp's: both write the same types from one file; errors are compared tensor by tensor.

    compare_quantize.py --liuli PROGRAM --peer PATH/llama-quantize MODEL-F16.gguf [--text FILE] Q4_K_M Q3_K_M …

Prints per type: the relative error ‖w − ŵ‖ / ‖w‖ of all quantised tensors, how many tensors are worse than the peer's, how
many have another type, and with --text the mean KL divergence of both files' predictions to the input's (liuli diff). Exit
code 1 if a tensor is worse. Needs numpy and gguf, which does the decoding so that neither side judges itself.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np


def tensors(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def values(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float64).ravel()


def compare(source, ours, theirs):
    """Relative errors of both, names of tensors where ours is worse, number of tensors of another type."""
    a, b = tensors(ours), tensors(theirs)
    total = error_a = error_b = others = 0
    worse = []
    for name, tensor in tensors(source).items():
        others += a[name].tensor_type != b[name].tensor_type
        x = values(tensor)
        e_a, e_b = ((x - values(a[name])) ** 2).sum(), ((x - values(b[name])) ** 2).sum()
        if e_a > 1.0001 * e_b + 1e-12:
            worse.append(name)
        if a[name].tensor_type != gguf.GGMLQuantizationType.F32:
            total, error_a, error_b = total + (x**2).sum(), error_a + e_a, error_b + e_b
    return np.sqrt(error_a / total), np.sqrt(error_b / total), worse, others


def mean_kl(liuli, path, reference, text):
    result = subprocess.run([liuli, "diff", path, reference, "--file", text, "--context", "512", "--max-tokens", "3072",
                             "--trace-positions", "0", "--json"], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["kl"]["mean"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--liuli", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--text")
    parser.add_argument("model")
    parser.add_argument("types", nargs="+")
    arguments = parser.parse_args()
    failed = False
    print("type     error, Liuli  llama.cpp   ratio  worse  other types  KL, Liuli  llama.cpp")
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours.gguf"), os.path.join(folder, "theirs.gguf")
        for name in arguments.types:
            subprocess.run([arguments.liuli, "quantize", arguments.model, "-o", ours, "--type", name], check=True,
                           capture_output=True)
            subprocess.run([arguments.peer, arguments.model, theirs, name], check=True, capture_output=True)
            a, b, worse, others = compare(arguments.model, ours, theirs)
            line = f"{name:8s} {100 * a:10.4f} % {100 * b:8.4f} %  {a / b if b else 1:6.3f}  {len(worse):5d}  {others:11d}"
            if arguments.text:
                line += "".join(f"  {mean_kl(arguments.liuli, path, arguments.model, arguments.text):9.6f}"
                                for path in (ours, theirs))
            print(line, flush=True)
            for tensor in worse:
                print(f"  worse: {tensor}")
            failed |= bool(worse)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
