#!/usr/bin/env python3
"""Pushing the stream in a direction while the model writes.

    steering.py MODEL [LAYER] [STRENGTH]

The direction is the difference of two texts' streams ("Love" − "Hate", the last position after a layer), times a strength;
it is added at every position of every pass. STRENGTH 0 shows that an edit that changes nothing changes no letter.
"""
import sys

import liuli

PROMPT = "I think that you are"


def main(path, layer=None, strength=0.3):
    model = liuli.Model.load(path)
    layer = model.cfg.n_layers * 2 // 5 if layer is None else int(layer)
    point = f"blocks.{layer}.resid_post"

    def stream(text):
        return model.run_with_cache(text, names_filter=point, stop_at_layer=layer + 1)[1][point][-1]

    direction = stream(" I love this, it is wonderful") - stream(" I hate this, it is terrible")
    print(f"direction at {point}: length {float((direction ** 2).sum()) ** 0.5:.2f}")

    def push(factor):
        return [(point, lambda value, hook: value + factor * direction)]

    print(f"as it is  : {PROMPT}{model.generate(PROMPT, 24)!r}")
    assert model.generate(PROMPT, 24, fwd_hooks=push(0.0)) == model.generate(PROMPT, 24)
    for factor in (float(strength), -float(strength)):
        print(f"{factor:+10.1f}: {PROMPT}{model.generate(PROMPT, 24, fwd_hooks=push(factor))!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
