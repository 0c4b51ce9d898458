#!/usr/bin/env python3
"""Where is the fact kept? The stream of a clean run is put, place by place, into a run that says something else.

    activation_patching.py MODEL

Clean: "The capital of France is"; corrupted: "The capital of Italy is". For every third layer and each position the corrupted run gets
the clean run's resid_pre; printed is how much of the difference between " Paris" and " Rome" comes back (0: nothing, 1: all).
"""
import sys
import time

import liuli

CLEAN, CORRUPTED = "The capital of France is", "The capital of Italy is"
RIGHT, WRONG = " Paris", " Rome"


def main(path):
    model = liuli.Model.load(path)
    right, wrong = model.to_single_token(RIGHT), model.to_single_token(WRONG)
    clean, corrupted = model.to_tokens(CLEAN), model.to_tokens(CORRUPTED)
    assert len(clean) == len(corrupted), "the two prompts must have the same number of tokens"

    def difference(logits):
        return float(logits[-1, right] - logits[-1, wrong])

    clean_logits, cache = model.run_with_cache(clean, names_filter="blocks.*.resid_pre")
    best, worst = difference(clean_logits), difference(model(corrupted))
    print(f"{RIGHT!r} − {WRONG!r}: clean {best:+.2f}, corrupted {worst:+.2f}")
    print("layer  " + "  ".join(f"{word:>8}" for word in model.to_str_tokens(corrupted)))

    start, runs = time.perf_counter(), 0
    for layer in range(0, model.cfg.n_layers, 3):
        row = []
        for position in range(len(corrupted)):

            def patch(value, hook):
                value[position] = cache[hook.name][position]

            logits = model.run_with_hooks(corrupted, [(f"blocks.{layer}.resid_pre", patch)])
            row.append((difference(logits) - worst) / (best - worst))
            runs += 1
        print(f"{layer:5}  " + "  ".join(f"{back:8.2f}" for back in row))
    print(f"{runs} runs in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
