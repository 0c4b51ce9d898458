#!/usr/bin/env python3
"""What would the model say if it stopped after each layer?

    logit_lens.py MODEL ["PROMPT"]

Each layer's stream goes through the final norm and the output matrix; a row shows the likeliest token at each position. The
last row is the model's own prediction, but for the rounding of the run's products (bf16, unless the model is loaded with
product_class="f32"); here they are formed in NumPy from the decoded weights.
"""
import sys

import numpy as np

import liuli


def main(path, prompt="The capital of France is the city of"):
    model = liuli.Model.load(path)
    logits, cache = model.run_with_cache(prompt, names_filter=["blocks.*.resid_pre", "blocks.*.resid_post"])
    lens, labels = cache.logit_lens(pos_slice=None, return_labels=True)

    words = model.to_str_tokens(prompt)
    print(f"{'':>10}  " + "  ".join(f"{word.strip()[:9]:>9}" for word in words))
    for label, row in zip(labels, lens):
        best = [model.to_string([token]) for token in row.argmax(axis=-1)]
        print(f"{label:>10}  " + "  ".join(f"{word.strip()[:9]!r:>9}" for word in best))

    final = int(logits[-1].argmax())
    ranks = [int((row[-1] > row[-1, final]).sum()) for row in lens]
    first = next(i for i in range(len(ranks)) if all(rank == 0 for rank in ranks[i:]))
    print(f"\n{model.to_string([final])!r}: first place for good from {labels[first]}; ranks {ranks}")
    print(f"last row against the run's logits: {np.abs(lens[-1] - logits).max():.1e} apart")


if __name__ == "__main__":
    main(*sys.argv[1:])
