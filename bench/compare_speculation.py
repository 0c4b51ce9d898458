#!/usr/bin/env python3
"""Generation with and without guesses on real text: the same tokens, and how fast they came.

  bench/compare_speculation.py --liuli build/release/bin/liuli MODEL.gguf [--speculate lookup --speculate DRAFT.gguf]

Three kinds of text: a file to be printed again with one name changed, sentences to be quoted from a page, and a story that
nothing can be looked up for. Each greedy, and drawn at a temperature. Runs take turns; medians. A token that differs ends
the program with exit code 1. --prefix "chrt -r 1" runs with real-time priority where the machine is shared.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def texts():
    code = read("src/core/rng.h")
    page = "\n".join(read("docs/decisions.md").splitlines()[:40])
    return {
        "edit a file": f"Rename the class Rng to Generator in this file and print the whole file again, nothing else.\n\n```cpp\n{code}```\n",
        "quote a page": f"{page}\n\nQuote the five most important sentences of the page above, word for word, each on its own line.",
        "tell a story": "Write a short story about a lighthouse keeper who finds a letter in a bottle.",
    }


def run(options, model, prompt_file, temperature, source):
    command = options.prefix + [options.liuli, "run", model, "-f", prompt_file, "-n", str(options.generated), "--no-report", "--json",
                                "--threads", str(options.threads), "--temperature", str(temperature), "--seed", "1"]
    if source:
        command += ["--speculate", source, "--draft-max", str(options.draft_max)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def compare(options, model, prompt_file, temperature):
    """Median speeds by source, and the last run of each."""
    speeds, runs = {}, {}
    for _ in range(options.rounds):
        for source in ["", *options.speculate]:
            runs[source] = run(options, model, prompt_file, temperature, source)
            speeds.setdefault(source, []).append(runs[source]["generated_tokens_per_second"])
            if runs[source]["ids"] != runs[""]["ids"]:
                sys.exit(f"{model}, --speculate {source}: other tokens than without")
    return {source: statistics.median(values) for source, values in speeds.items()}, runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--liuli", default="build/release/bin/liuli")
    parser.add_argument("--speculate", action="append", default=[], help="lookup, or a draft model; several times")
    parser.add_argument("--draft-max", type=int, default=15)
    parser.add_argument("-n", "--generated", type=int, default=192)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 0.7])
    parser.add_argument("--prefix", type=shlex.split, default=[])
    options = parser.parse_args()
    options.speculate = options.speculate or ["lookup"]

    print("| model | text | temperature | guesses by | plain, tokens/s | with guesses | ratio | tokens per pass | right |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models:
            for name, text in texts().items():
                path = os.path.join(folder, "prompt.txt")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                for temperature in options.temperatures:
                    speeds, runs = compare(options, model, path, temperature)
                    for source in options.speculate:
                        counts = runs[source]["speculation"]
                        print(f"| {os.path.basename(model)} | {name} | {temperature:g} | {os.path.basename(source)} | {speeds['']:.1f} | "
                              f"{speeds[source]:.1f} | {speeds[source] / speeds['']:.2f} | {counts['tokens_per_pass']:.2f} | "
                              f"{counts['right']} of {counts['guessed']} |", flush=True)


if __name__ == "__main__":
    main()
