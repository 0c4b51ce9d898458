"""Weights under TransformerLens's names and in its shapes, decoded to float32 when first asked for.

Every array is a read-only view of one decoded tensor: nothing is copied to turn the file's [d_out, d_in] into
TransformerLens's [d_in, d_out]. A decoded tensor stays in memory as long as the model (``Model.forget_weights`` lets go).

The values are the file's own: no norm is folded in, nothing is centred (TransformerLens does both by default). Keys and
values have ``n_key_value_heads`` heads; TransformerLens repeats them to ``n_heads``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterator

import numpy as np

from .errors import NotFoundError

if TYPE_CHECKING:
    from .model import Model


class PerLayer:
    """One weight of every layer: ``model.W_Q[3]``, ``len(model.W_Q)``, ``np.asarray(model.W_Q)`` (stacks, and copies)."""

    def __init__(self, name: str, n_layers: int, get: Callable[[int], np.ndarray]):
        self._name, self._n, self._get = name, n_layers, get

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, layer: int) -> np.ndarray:
        if not -self._n <= layer < self._n:
            raise IndexError(f"{self._name}: layer {layer} of {self._n}")
        return self._get(layer % self._n)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self._get(layer) for layer in range(self._n))

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        stacked = np.stack(list(self))
        return stacked if dtype is None else stacked.astype(dtype)

    def __repr__(self) -> str:
        return f"<{self._name} of {self._n} layers>"


class Weights:
    """The weight properties of a model (mixed into ``Model``)."""

    def weight(self: "Model", name: str) -> np.ndarray:
        """A weight by Liuli's name, [d_out, d_in] (y = W x) or [n]; ``weight_names()`` lists them. Read-only.

        Raises NotFoundError for an unknown name.
        """
        if name not in self._decoded:
            self._decoded[name] = self._core.weight(name)
        return self._decoded[name]

    def weight_names(self: "Model") -> list:
        """(name, shape, the file's tensor, stored type) of every weight, in the order a token meets them."""
        return self._core.weights()

    def forget_weights(self: "Model") -> None:
        """Lets go of decoded weights; arrays that are still held stay valid."""
        self._decoded.clear()

    def _has(self: "Model", name: str) -> bool:
        if self._weight_set is None:
            self._weight_set = {row[0] for row in self._core.weights()}
        return name in self._weight_set

    def _block(self: "Model", layer: int) -> str:
        tower = "decoder.blocks" if self.cfg.is_encoder_decoder else "blocks"
        return f"{tower}.{layer}."

    def _per_layer(self: "Model", name: str, get: Callable[[str], np.ndarray]) -> PerLayer:
        return PerLayer(name, self.cfg.n_layers, lambda layer: get(self._block(layer)))

    # ---- outside the blocks ----

    @property
    def W_E(self: "Model") -> np.ndarray:
        """Embedding, [d_vocab, d_model]; the point `embed` is cfg.embedding_scale times a row."""
        return self.weight("embed.weight")

    @property
    def W_pos(self: "Model") -> np.ndarray:
        """Learned positions, [n_ctx, d_model]."""
        return self.weight("pos_embed.weight")

    @property
    def W_U(self: "Model") -> np.ndarray:
        """Unembedding, [d_model, d_vocab]."""
        return self.weight("unembed.weight").T

    @property
    def b_U(self: "Model") -> np.ndarray:
        """Zeros [d_vocab]: no family Liuli runs has one; kept for code written for TransformerLens."""
        return np.zeros(self.cfg.d_vocab, np.float32)

    # ---- attention ----

    def _heads_in(self: "Model", name: str) -> np.ndarray:
        """[heads · d_head, d_model] as [heads, d_model, d_head]."""
        w = self.weight(name)
        return w.reshape(-1, self.cfg.d_head, w.shape[1]).transpose(0, 2, 1)

    def _bias(self: "Model", name: str, n: int) -> np.ndarray:
        return self.weight(name) if self._has(name) else np.zeros(n, np.float32)

    @property
    def W_Q(self: "Model") -> PerLayer:
        """Per layer [n_heads, d_model, d_head]: q = x @ W_Q + b_Q. Of plain attention (not DeepSeek's latent one)."""
        return self._per_layer("W_Q", lambda at: self._heads_in(at + "attn.q.weight"))

    @property
    def W_K(self: "Model") -> PerLayer:
        """Per layer [n_key_value_heads, d_model, d_head]."""
        return self._per_layer("W_K", lambda at: self._heads_in(at + "attn.k.weight"))

    @property
    def W_V(self: "Model") -> PerLayer:
        """Per layer [n_key_value_heads, d_model, d_head]."""
        return self._per_layer("W_V", lambda at: self._heads_in(at + "attn.v.weight"))

    @property
    def W_O(self: "Model") -> PerLayer:
        """Per layer [n_heads, d_head, d_model]: a head adds z @ W_O[head]."""

        def get(at: str) -> np.ndarray:
            w = self.weight(at + "attn.o.weight")
            return w.reshape(w.shape[0], self.cfg.n_heads, -1).transpose(1, 2, 0)

        return self._per_layer("W_O", get)

    def _head_bias(self: "Model", part: str, n: int) -> Callable[[str], np.ndarray]:
        return lambda at: self._bias(f"{at}attn.{part}.bias", n * self.cfg.d_head).reshape(n, -1)

    @property
    def b_Q(self: "Model") -> PerLayer:
        """Per layer [n_heads, d_head]; zeros where the model has none."""
        return self._per_layer("b_Q", self._head_bias("q", self.cfg.n_heads))

    @property
    def b_K(self: "Model") -> PerLayer:
        """Per layer [n_key_value_heads, d_head]; zeros where the model has none."""
        return self._per_layer("b_K", self._head_bias("k", self.cfg.n_key_value_heads))

    @property
    def b_V(self: "Model") -> PerLayer:
        """Per layer [n_key_value_heads, d_head]; zeros where the model has none."""
        return self._per_layer("b_V", self._head_bias("v", self.cfg.n_key_value_heads))

    @property
    def b_O(self: "Model") -> PerLayer:
        """Per layer [d_model]; zeros where the model has none."""
        return self._per_layer("b_O", lambda at: self._bias(at + "attn.o.bias", self.cfg.d_model))

    # ---- feed-forward ----

    def _dense(self: "Model", part: str) -> Callable[[str], np.ndarray]:
        return lambda at: self.weight(f"{at}mlp.{part}.weight").T

    @property
    def W_in(self: "Model") -> PerLayer:
        """Per layer [d_model, d_mlp]; of a gated one the linear half (`pre_linear` = x @ W_in). Dense layers only."""
        return self._per_layer("W_in", self._dense("up"))

    @property
    def W_gate(self: "Model") -> PerLayer:
        """Per layer [d_model, d_mlp]: `pre` = x @ W_gate of a gated feed-forward."""
        if not self.cfg.gated_mlp:
            raise NotFoundError(f"this {self.cfg.original_architecture} model's feed-forward has no gate")
        return self._per_layer("W_gate", self._dense("gate"))

    @property
    def W_out(self: "Model") -> PerLayer:
        """Per layer [d_mlp, d_model]: mlp.out = post @ W_out + b_out."""
        return self._per_layer("W_out", self._dense("down"))

    @property
    def b_in(self: "Model") -> PerLayer:
        """Per layer [d_mlp]; zeros where the model has none."""
        return self._per_layer("b_in", lambda at: self._bias(at + "mlp.up.bias", self.cfg.d_mlp))

    @property
    def b_out(self: "Model") -> PerLayer:
        """Per layer [d_model]; zeros where the model has none."""
        return self._per_layer("b_out", lambda at: self._bias(at + "mlp.down.bias", self.cfg.d_model))

    # ---- norms ----

    def norm_weight(self: "Model", place: str) -> np.ndarray:
        """gamma of a norm, [d_model]: "ln_final", "blocks.3.ln1". Ones where it has none."""
        return self._norm_vector(place, "weight", np.ones)

    def norm_bias(self: "Model", place: str) -> np.ndarray:
        """beta of a norm, [d_model]. Zeros where it has none (every RMS norm)."""
        return self._norm_vector(place, "bias", np.zeros)

    def _norm_vector(self: "Model", place: str, part: str, otherwise) -> np.ndarray:
        name = f"{place}.{part}"
        return self.weight(name) if self._has(name) else otherwise(self.cfg.d_model, np.float32)
