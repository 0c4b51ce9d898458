#!/usr/bin/env python3
"""Times the Python package: a plain run, a run that keeps every value, and a sweep of single-position residual patches.

    liuli synth gpt2 --type f16 -o gpt2.gguf
    bench/run_with_cache.py gpt2.gguf [N_TOKENS]               default 512 tokens

Prints one JSON object; seconds are medians of five. LIULI_BENCH_CPU=1: one thread, and seconds of its processor time, for
machines that others use as well.
"""
import json
import os
import statistics
import sys
import time

import numpy as np

import liuli


CPU_TIME = "LIULI_BENCH_CPU" in os.environ
clock = time.process_time if CPU_TIME else time.perf_counter


def median_seconds(work, repeats=5):
    work()
    seconds = []
    for _ in range(repeats):
        start = clock()
        result = work()
        seconds.append(clock() - start)
        del result
    return round(statistics.median(seconds), 4)


def sweep_seconds(model, n_tokens, n_patches, random):
    """Patches resid_pre of one (layer, position) at a time from a clean run into another."""
    clean, corrupted = (random.integers(0, model.cfg.d_vocab, n_tokens) for _ in range(2))
    _, cache = model.run_with_cache(clean, names_filter="blocks.*.resid_pre")
    start = clock()
    for i in range(n_patches):
        name, position = f"blocks.{i % model.cfg.n_layers}.resid_pre", (i * 7) % n_tokens

        def patch(value, hook):
            value[position] = cache[name][position]

        model.run_with_hooks(corrupted, [(name, patch)])
    return round(clock() - start, 2)


def main(path, n_tokens="512"):
    figures = {}
    for product_class in ("auto", "f32"):
        model = liuli.Model.load(path, product_class=product_class, threads=1 if CPU_TIME else 0)
        random = np.random.default_rng(0)
        tokens = random.integers(0, model.cfg.d_vocab, int(n_tokens))
        cache = model.run_with_cache(tokens)[1]
        entries, mib = len(cache), round(cache.nbytes / 2**20, 1)
        del cache
        figures[product_class] = {
            "entries": entries, "mib": mib,
            "forward_s": median_seconds(lambda: model(tokens)),
            "everything_s": median_seconds(lambda: model.run_with_cache(tokens)),
            "what_transformer_lens_has_s": median_seconds(lambda: model.run_with_cache(tokens, lambda n: "hook_" in n)),
            "resid_pre_s": median_seconds(lambda: model.run_with_cache(tokens, "blocks.*.resid_pre")),
            "sweep_200_patches_16_tokens_s": sweep_seconds(model, 16, 200, random)}
    print(json.dumps({"isa": liuli.active_isa(), **figures}))


if __name__ == "__main__":
    main(*sys.argv[1:])
