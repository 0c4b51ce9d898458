#!/usr/bin/env python3
"""Seeded stacks of blocks (family "liuli_stack") with gradients from torch's autograd in float64.

    python3 -m venv V && V/bin/pip install torch==2.15.0 safetensors==0.8.0 numpy==2.4.6
    V/bin/python tools/make_golden/lab_gradients.py

writes tests/golden/lab/NAME/ for pre (LayerNorm before each branch), post (after each sum) and deepnorm (post with α on the
lane): config.json, model.safetensors (F16, exact), golden.safetensors with ids, targets, loss, stream (‖∂L/∂x‖ of what enters
the first block and leaves each), w2 (‖∂L/∂W₂‖ per block), and the last row's logits.
"""
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "lab"
DEPTH, D, HEADS, VOCAB, TOKENS, EPS, SEED = 12, 32, 4, 48, 20, 1e-5, 20261130
STACKS = {"pre": (["before"], 1.0, 1.0), "post": (["after_add"], 1.0, 1.0),
          "deepnorm": (["after_add"], (2 * DEPTH) ** 0.25, (8 * DEPTH) ** -0.25)}


def make_weights(slots, gain, rng):
    """Xavier normal with `gain` where DeepNorm has it; γ and β near 1 and 0, so that both matter."""
    weights = {"embed.weight": rng.normal(size=(VOCAB, D)), "head.weight": rng.normal(size=(VOCAB, D)) / math.sqrt(D)}

    def add_norm(name):
        weights[name + ".weight"] = 1 + 0.1 * rng.normal(size=D)
        weights[name + ".bias"] = 0.1 * rng.normal(size=D)

    for layer in range(DEPTH):
        at = f"blocks.{layer}."
        for name in ("attn.q", "attn.k", "attn.v", "attn.o", "ffn.up", "ffn.down"):
            scale = 1 if name in ("attn.q", "attn.k") else gain
            weights[f"{at}{name}.weight"] = scale * rng.normal(size=(D, D)) / math.sqrt(D)
        for slot in slots:
            add_norm(f"{at}attn_norm.{slot}")
            add_norm(f"{at}ffn_norm.{slot}")
    if "before" in slots:
        add_norm("final_norm")
    return {name: np.asarray(value, np.float16) for name, value in weights.items()}


def attention(x, w, at):
    q, k, v = (F.linear(x, w[f"{at}attn.{n}.weight"]).view(TOKENS, HEADS, -1).transpose(0, 1) for n in "qkv")
    scores = q @ k.transpose(1, 2) / math.sqrt(D / HEADS)
    hidden = torch.triu(torch.ones(TOKENS, TOKENS, dtype=torch.bool), 1)
    z = torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ v
    return F.linear(z.transpose(0, 1).reshape(TOKENS, D), w[at + "attn.o.weight"])


def feed_forward(x, w, at):
    return F.linear(torch.relu(F.linear(x, w[at + "ffn.up.weight"])), w[at + "ffn.down.weight"])


def run(w, slots, scale, ids):
    """Logits, and the stream as it enters the first block and leaves each."""
    def norm(x, name):
        return F.layer_norm(x, (D,), w[name + ".weight"], w[name + ".bias"], EPS)

    def half(x, branch, name):
        y = scale * x + branch(norm(x, f"{name}.before") if "before" in slots else x)
        return norm(y, f"{name}.after_add") if "after_add" in slots else y

    x = F.embedding(ids, w["embed.weight"])
    stream = [x]
    for layer in range(DEPTH):
        at = f"blocks.{layer}."
        x = half(x, lambda h: attention(h, w, at), at + "attn_norm")
        x = half(x, lambda h: feed_forward(h, w, at), at + "ffn_norm")
        stream.append(x)
    if "before" in slots:
        x = norm(x, "final_norm")
    return F.linear(x, w["head.weight"]), stream


def main():
    for name, (slots, scale, gain) in STACKS.items():
        rng = np.random.default_rng(SEED)
        stored = make_weights(slots, gain, rng)
        ids, targets = rng.integers(VOCAB, size=TOKENS), rng.integers(VOCAB, size=TOKENS)
        w = {key: torch.tensor(value.astype(np.float64), requires_grad=True) for key, value in stored.items()}
        logits, stream = run(w, slots, scale, torch.tensor(ids))
        for x in stream:
            x.retain_grad()
        loss = F.cross_entropy(logits, torch.tensor(targets))
        loss.backward()
        folder = ROOT / name
        folder.mkdir(parents=True, exist_ok=True)
        config = dict(model_type="liuli_stack", hidden_size=D, intermediate_size=D, num_hidden_layers=DEPTH,
                      num_attention_heads=HEADS, vocab_size=VOCAB, max_position_embeddings=4096, layer_norm_eps=EPS,
                      hidden_act="relu", norm="layer", norm_slots=slots, final_norm="before" in slots, gated=False,
                      causal=True, residual_scale=scale, tie_word_embeddings=False)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        save_file(stored, folder / "model.safetensors")
        save_file({"ids": ids, "targets": targets, "loss": np.array([loss.item()]),
                   "stream": np.array([x.grad.norm().item() for x in stream]),
                   "w2": np.array([w[f"blocks.{i}.ffn.down.weight"].grad.norm().item() for i in range(DEPTH)]),
                   "logits": logits[-1].detach().numpy().copy()}, folder / "golden.safetensors")
        print(name, "loss", loss.item())


if __name__ == "__main__":
    main()
