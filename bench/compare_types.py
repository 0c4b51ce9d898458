#!/usr/bin/env python3
"""Every weight type at true width beside llama.cpp: prompt, generation, eight sequences together, fractions of the limits.

  bench/compare_types.py --liuli build/release/bin/liuli --peer PATH/llama-bench [--model llama-3-8b] [--layers 2] [TYPE…]

Writes one random model after another (`liuli synth`), runs `liuli bench --peer` on it and prints a line of a markdown table;
the file is deleted before the next one. Both programs run turn and turn about; medians. LIULI_ISA lowers Liuli's level (give
a peer that was built for the same one). --prefix "chrt -r 1" runs with real-time priority where the machine is shared.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

TYPES = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "iq4_nl", "f16", "bf16"]


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def measure(options, stored_type, folder):
    path = os.path.join(folder, f"{options.model}-{stored_type}.gguf")
    run([options.liuli, "synth", options.model, "--layers", str(options.layers), "--type", stored_type, "-o", path])
    prefix = shlex.split(options.prefix)
    try:
        return json.loads(run(prefix + [options.liuli, "bench", path, "--json", "-p", str(options.prompt), "-n", str(options.generate),
                                        "-b", f"1,{options.together}", "-r", str(options.repetitions), "--threads", str(options.threads),
                                        "--prompt-products", options.prompt_products, "--peer", options.peer]))
    finally:
        os.remove(path)


def cells(test, fraction):
    rate, peer = test["tokens_per_second"]["median"], test.get("peer_tokens_per_second")
    beside = f"{peer['median']:.3g} | {rate / peer['median']:.2f}" if peer else "– | –"
    return f"{rate:.3g} | {beside} | {100 * test[fraction]:.0f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", metavar="TYPE", help="stored types (default: " + " ".join(TYPES) + ")")
    parser.add_argument("--liuli", required=True)
    parser.add_argument("--peer", required=True, help="llama.cpp's llama-bench")
    parser.add_argument("--model", default="llama-3-8b", help="a name of `liuli shape --list`")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--together", type=int, default=8, help="sequences that generate together")
    parser.add_argument("--prompt-products", default="bf16", choices=["bf16", "int8"])
    parser.add_argument("--prefix", default="", help="words before each command that is timed")
    parser.add_argument("--folder", help="where the files go for a while (default: a temporary folder)")
    options = parser.parse_args()
    print("| type | prompt | llama.cpp | ratio | of peak | generation | llama.cpp | ratio | of stream | together | × one | others |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for stored_type in options.types or TYPES:
            result = measure(options, stored_type, folder)
            tests = {(t["test"], t["batch"]): t for t in result["tests"]}
            one, most = tests["generation", 1], tests["generation", options.together]
            gain = most["tokens_per_second"]["median"] / one["tokens_per_second"]["median"]
            print(f"| {stored_type.upper()} | {cells(tests['prompt', 1], 'peak_fraction')} | {cells(one, 'stream_fraction')} | "
                  f"{most['tokens_per_second']['median']:.3g} | {gain:.1f} | {100 * result['other_load']:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
