#!/usr/bin/env python3
"""How does the model come to its answer? Layers, heads and attention of one prediction.

    exploratory_analysis.py MODEL ["PROMPT"] ["ANSWER"]        default: The capital of France is / " Paris"

Every number is raw: norm weights are not folded into matrices (TransformerLens folds by default).
"""
import sys

import numpy as np

import liuli


def main(path, prompt="The capital of France is", answer=" Paris"):
    model = liuli.Model.load(path)
    token = model.to_single_token(answer)
    words = model.to_str_tokens(prompt)
    logits, cache = model.run_with_cache(prompt)
    print(model, "\n", cache, sep="")

    print("\nWhat comes next")
    p = np.exp(logits[-1] - logits[-1].max())
    p /= p.sum()
    for best in np.argsort(-p)[:5]:
        print(f"  {model.to_string([best])!r:>12} {p[best]:7.2%}")

    print(f"\nWhich parts add to the logit of {answer!r}, at the last position (direct attribution)")
    stack, labels = cache.decompose_resid(pos_slice=-1, return_labels=True)
    attrs = cache.logit_attrs(stack, token, pos_slice=-1)
    for i in np.argsort(-np.abs(attrs))[:8]:
        print(f"  {labels[i]:>12} {attrs[i]:+8.3f}")
    beta = float(model.norm_bias("ln_final") @ model.tokens_to_residual_directions(token))
    print(f"  {'sum':>12} {attrs.sum() + beta:+8.3f}   (the logit is {logits[-1, token]:+.3f})")

    print("\nThe heads that add most")
    heads, names = cache.stack_head_results(pos_slice=-1, return_labels=True)
    by_head = cache.logit_attrs(heads, token, pos_slice=-1)
    for i in np.argsort(-by_head)[:5]:
        layer, head = divmod(i, model.cfg.n_heads)
        row = cache["pattern", layer][head, -1]
        seen = ", ".join(f"{words[k]!r} {row[k]:.0%}" for k in np.argsort(-row)[:3])
        print(f"  {names[i]:>7} {by_head[i]:+7.3f}   looks at {seen}")


if __name__ == "__main__":
    main(*sys.argv[1:])
