#!/usr/bin/env python3
"""Liuli and llama.cpp side by side: the same files, turn and turn about, medians and ratios.

  bench/compare_peer.py --liuli build/release/bin/liuli --peer PATH/llama-bench MODEL.gguf…

Each round runs every program once per test, so that a slow moment of the machine hits both. Use a quiet machine; the
share of the CPUs that other processes took during the measurement is printed with the table. --prefix "chrt -r 1" runs both
with real-time priority where the machine is shared.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys


def run(prefix, command):
    done = subprocess.run(prefix + command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def liuli_speed(options, model, prompt, generated):
    out = json.loads(run(options.prefix, [options.liuli, "bench", model, "-p", str(prompt), "-n", str(generated), "-r", "1",
                                          "--threads", str(options.threads), "--json"]))
    return {test["test"]: test["tokens_per_second"]["median"] for test in out["tests"]}


def peer_speed(options, model, prompt, generated):
    out = json.loads(run(options.prefix, [options.peer, "-m", model, "-p", str(prompt), "-n", str(generated), "-r", "1",
                                          "-t", str(options.threads), "-o", "json"]))
    return {"prompt" if row["n_prompt"] else "generation": row["avg_ts"] for row in out}


def cpu_seconds():
    """Busy seconds of all CPUs since boot, and of this program's children."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(x) for x in file.readline().split()[1:]]
    busy = (sum(fields[:8]) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")
    times = os.times()
    return busy, times.children_user + times.children_system


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--liuli", default="build/release/bin/liuli")
    parser.add_argument("--peer", required=True, help="llama-bench")
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("-n", "--generated", type=int, default=64)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prefix", type=shlex.split, default=[])
    options = parser.parse_args()

    print(f"{'model':16} {'test':>10} {'Liuli':>10} {'peer':>10} {'ratio':>6}   tokens/s, medians of {options.rounds}; other load")
    for model in options.models:
        samples = {"liuli": {}, "peer": {}}
        busy, own = cpu_seconds()
        for _ in range(options.rounds):
            for name, speed in (("liuli", liuli_speed), ("peer", peer_speed)):
                for test, value in speed(options, model, options.prompt, options.generated).items():
                    samples[name].setdefault(test, []).append(value)
        busy_end, own_end = cpu_seconds()
        others = 1 - (own_end - own) / max(busy_end - busy, 1e-9)
        for test in ("prompt", "generation"):
            ours, theirs = (statistics.median(samples[name][test]) for name in ("liuli", "peer"))
            print(f"{os.path.basename(model):16} {test:>10} {ours:10.1f} {theirs:10.1f} {ours / theirs:6.2f}   {100 * others:.0f} %",
                  flush=True)


if __name__ == "__main__":
    main()
