"""A small Llama in NumPy, float64, written from the formulas: what hooks are checked against."""

import numpy as np


def rms_norm(x, gamma, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * gamma


def rope(x, theta):
    """x [pos, heads, d]: pairs (i, i + d/2) turn by position · theta^(−2i/d)."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[0])[:, None] * theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


class NumpyLlama:
    """forward(ids, edits): edits[name](value) -> value replaces the value of that name on its way."""

    def __init__(self, model):
        self.cfg = model.cfg
        self.w = {row[0]: np.asarray(model.weight(row[0]), np.float64) for row in model.weight_names()}

    def forward(self, ids, edits):
        self.edits, self.seen = edits, set()
        x = self.at("embed", self.w["embed.weight"][list(ids)])
        for layer in range(self.cfg.n_layers):
            x = self.block(f"blocks.{layer}.", x)
        x = self.norm("ln_final", x)
        logits = self.at("logits", x @ self.w["unembed.weight"].T)
        assert self.seen == set(edits), set(edits) - self.seen
        return logits

    def at(self, name, value):
        if name not in self.edits:
            return value
        self.seen.add(name)
        return np.asarray(self.edits[name](value.copy()), np.float64)

    def norm(self, name, x):
        """Stage by stage, so that each stage can be replaced."""
        var = self.at(f"{name}.var", np.mean(x * x, axis=-1, keepdims=True))
        sigma = self.at(f"{name}.sigma", np.sqrt(var + self.cfg.eps))
        normalized = self.at(f"{name}.normalized", x / sigma)
        scaled = self.at(f"{name}.scaled", normalized * self.w[f"{name}.weight"])
        return self.at(f"{name}.out", scaled)

    def linear(self, name, x):
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def block(self, at, x):
        x = self.at(f"{at}resid_pre", x)
        attn_out = self.at(f"{at}attn_out", self.attention(f"{at}attn.", self.norm(f"{at}ln1", x)))
        x = self.at(f"{at}resid_mid", x + attn_out)
        h = self.norm(f"{at}ln2", x)
        pre = self.at(f"{at}mlp.pre", self.linear(f"{at}mlp.gate", h))
        up = self.at(f"{at}mlp.pre_linear", self.linear(f"{at}mlp.up", h))
        post = self.at(f"{at}mlp.post", pre / (1 + np.exp(-pre)) * up)
        x = x + self.at(f"{at}mlp_out", self.linear(f"{at}mlp.down", post))
        return self.at(f"{at}resid_post", x)

    def attention(self, at, h):
        c, n = self.cfg, len(h)
        q, k, v = (self.at(at + p, self.linear(at + p, h).reshape(n, -1, c.d_head)) for p in "qkv")
        q, k = (self.at(f"{at}rot_{p}", rope(value, c.rotary_base)) for p, value in (("q", q), ("k", k)))
        group = c.n_heads // c.n_key_value_heads
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / c.attn_scale
        scores = self.at(f"{at}attn_scores", np.where(np.tri(n, dtype=bool), scores, -np.inf))
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        pattern = self.at(f"{at}pattern", e / e.sum(axis=-1, keepdims=True))
        z = self.at(f"{at}z", np.einsum("hqk,khd->qhd", pattern, v))
        return self.linear(f"{at}o", z.reshape(n, -1))
