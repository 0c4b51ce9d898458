"""What a run showed, and the questions one asks of it.

Everything here is raw: norm weights (gamma) stay in the norm, nothing is centred. TransformerLens folds gamma into the
matrices behind a norm by default; the sums and logits are the same, single numbers (a component's size before the final
norm, W_U's columns) are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from .errors import InvalidArgumentError, NotFoundError, UnsupportedError
from .names import Key

if TYPE_CHECKING:
    from .model import Model

#: Positions: all (None), one (an int: the axis goes away), (start, stop[, step]), a slice, or a list of positions.
PosSlice = Union[None, int, slice, Tuple[int, ...], Sequence[int], np.ndarray]
Labelled = Union[np.ndarray, Tuple[np.ndarray, List[str]]]


def take(array: np.ndarray, pos: PosSlice, axis: int) -> np.ndarray:
    """The chosen positions of an axis."""
    if pos is None:
        return array
    if isinstance(pos, tuple):
        pos = slice(*pos)
    index: list = [slice(None)] * array.ndim
    index[axis] = pos
    return array[tuple(index)]


class ActivationCache(Mapping):
    """Values of one run by name: a mapping from "blocks.3.attn.pattern" to read-only NumPy arrays.

    Also accepted: TransformerLens's spelling (``cache["blocks.3.attn.hook_pattern"]``) and shorthand
    (``cache["pattern", 3]``, ``cache["resid_post", -1]``, ``cache["scale", 4, "ln1"]``, ``cache["q3"]``);
    ``cache["result", 3]`` is formed from z and W_O on demand.

    Shapes: [pos, …] for a value per token, [head, pos, key] for scores and patterns; with ``has_batch_dim`` a 1 in front.
    ``liuli.Model.points()`` prints them all with their formulas.

    Lifetime: no run touches an array's memory again; it is valid as long as it or a view of it is held, also without the
    cache and the model. Arrays of up to 4 MiB share blocks of 16 MiB, which live as long as one of them. ``.copy()`` gives
    a writable array with memory of its own.
    """

    def __init__(self, cache_dict: Dict[str, np.ndarray], model: "Model", has_batch_dim: bool = False):
        self.cache_dict = cache_dict
        self.model = model
        self.has_batch_dim = has_batch_dim

    # ---- a mapping ----

    def __getitem__(self, key: Key) -> np.ndarray:
        if isinstance(key, str) and key in self.cache_dict:
            return self.cache_dict[key]
        words = (key,) if isinstance(key, str) else key
        if words[0] in ("result", "hook_result"):
            return self._head_results(words[1])
        name = self.model._points.resolve(key)
        if name not in self.cache_dict:
            raise NotFoundError(f"{name} was not captured; this cache holds {len(self.cache_dict)} values (names_filter?)")
        return self.cache_dict[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.cache_dict)

    def __len__(self) -> int:
        return len(self.cache_dict)

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except (NotFoundError, TypeError, IndexError):
            return False
        return True

    def __repr__(self) -> str:
        return f"ActivationCache of {len(self)} values, {self.nbytes / 2**20:.1f} MiB, norms raw"

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in self.cache_dict.values())

    def remove_batch_dim(self) -> "ActivationCache":
        """The same values without the 1 in front (views)."""
        if not self.has_batch_dim:
            return self
        return ActivationCache({name: value[0] for name, value in self.cache_dict.items()}, self.model)

    # ---- the residual stream ----

    def _plain(self, key: Key, pos: PosSlice = None, axis: int = -2) -> np.ndarray:
        return take(self[key], pos, axis)

    def _last_layer(self, layer: Optional[int]) -> int:
        n = self.model.cfg.n_layers
        if layer is None or layer == -1:
            return n
        if not 0 <= layer <= n:
            raise InvalidArgumentError(f"layer is {layer}, expected 0…{n} (or -1: all)")
        return layer

    def accumulated_resid(self, layer: Optional[int] = None, incl_mid: bool = False, apply_ln: bool = False,
                          pos_slice: PosSlice = None, mlp_input: bool = False, return_labels: bool = False) -> Labelled:
        """The residual stream at each block's entrance up to `layer`: what a logit lens reads.

        layer: None, -1 or n_layers: up to the stream before the final norm ("final_post"). incl_mid: also resid_mid of
        the blocks before `layer`; mlp_input: also that of `layer`. apply_ln: each stream through the norm of `layer`,
        with statistics of its own at the final norm and the run's sigma elsewhere (as TransformerLens).

        Shapes: [n_streams, pos, d_model] (batch dimension after n_streams, if there is one). Labels: "0_pre", "0_mid", …
        """
        layer = self._last_layer(layer)
        keys, labels = [], []
        for at in range(layer + 1):
            if at == self.model.cfg.n_layers:
                keys.append(("resid_post", at - 1))
                labels.append("final_post")
                break
            keys.append(("resid_pre", at))
            labels.append(f"{at}_pre")
            if (incl_mid and at < layer) or (mlp_input and at == layer):
                keys.append(("resid_mid", at))
                labels.append(f"{at}_mid")
        stack = np.stack([self._plain(key, pos_slice) for key in keys])
        if apply_ln:
            stack = self.apply_ln_to_stack(stack, layer, mlp_input, pos_slice, recompute_ln=layer == self.model.cfg.n_layers)
        return (stack, labels) if return_labels else stack

    def decompose_resid(self, layer: Optional[int] = None, mlp_input: bool = False, mode: str = "all",
                        apply_ln: bool = False, pos_slice: PosSlice = None, incl_embeds: bool = True,
                        return_labels: bool = False) -> Labelled:
        """What was added up to make the stream that enters `layer`: embeddings, and each block's attn_out and mlp_out.

        Their sum is resid_pre of `layer` (resid_mid with mlp_input; resid_post of the last block for layer None), where
        the family adds plainly (not BERT's and 2017's post-norm). mode: "all", "attn", "mlp".

        Shapes: [n_components, pos, d_model]. Labels: "embed", "pos_embed", "0_attn_out", "0_mlp_out", …
        """
        if mode not in ("all", "attn", "mlp"):
            raise InvalidArgumentError(f'mode is "{mode}", expected all, attn or mlp')
        layer = self._last_layer(layer)
        keys: list = [name for name in ("embed", "pos_embed") if incl_embeds and name in self.model._points.aliases]
        labels = list(keys)
        for at in range(layer):
            for part in ("attn_out", "mlp_out"):
                if mode in ("all", part[: part.index("_")]):
                    keys.append((part, at))
                    labels.append(f"{at}_{part}")
        if mlp_input and mode != "mlp":
            keys.append(("attn_out", layer))
            labels.append(f"{layer}_attn_out")
        stack = np.stack([self._plain(key, pos_slice) for key in keys])
        if apply_ln:
            stack = self.apply_ln_to_stack(stack, layer, mlp_input, pos_slice)
        return (stack, labels) if return_labels else stack

    # ---- heads and neurons ----

    def _head_results(self, layer: int, pos: PosSlice = None) -> np.ndarray:
        """What each head adds, [pos, n_heads, d_model]: z @ W_O[head], through the branch's norm where there is one.

        Summed over heads, plus b_O: attn_out.
        """
        layer %= self.model.cfg.n_layers
        z = self._plain(("z", layer), pos, axis=-3)
        results = np.einsum("...hd,hdm->...hm", z, self.model.W_O[layer], optimize=True)
        return self._through_branch_norm(results, f"blocks.{layer}.ln1_post", pos, extra_axes=1)

    # Gemma 3 and OLMo 2 normalise a branch before it is added: with the run's sigma that is a factor per row.
    def _through_branch_norm(self, parts: np.ndarray, place: str, pos: PosSlice, extra_axes: int) -> np.ndarray:
        if f"{place}.sigma" not in self.model._points.aliases:
            return parts
        sigma = self._plain(f"{place}.sigma", pos)
        return parts / sigma.reshape(sigma.shape[:-1] + (1,) * (extra_axes + 1)) * self.model.norm_weight(place)

    def stack_head_results(self, layer: Optional[int] = None, return_labels: bool = False, incl_remainder: bool = False,
                           pos_slice: PosSlice = None, apply_ln: bool = False) -> Labelled:
        """What every head before `layer` adds to the stream, computed from z and the decoded W_O.

        incl_remainder: one more component, so that the sum is the stream entering `layer` (embeddings, MLPs, biases).

        Shapes: [layer · n_heads (+ 1), pos, d_model]. Labels: "L0H0", …, "remainder".
        """
        layer = self._last_layer(layer)
        parts = [np.moveaxis(self._head_results(at, pos_slice), -2, 0) for at in range(layer)]
        labels = [f"L{at}H{head}" for at in range(layer) for head in range(self.model.cfg.n_heads)]
        key = ("resid_post", layer - 1) if layer > 0 else ("resid_pre", 0)
        like = self._plain(key, pos_slice)
        stack = np.concatenate(parts) if parts else np.zeros((0,) + like.shape, np.float32)
        if incl_remainder:
            stack = np.concatenate([stack, (like - stack.sum(axis=0))[None]])
            labels.append("remainder")
        if apply_ln:
            stack = self.apply_ln_to_stack(stack, layer, pos_slice=pos_slice)
        return (stack, labels) if return_labels else stack

    def stack_neuron_results(self, layer: int, neurons: Union[slice, Sequence[int]] = slice(None), pos_slice: PosSlice = None,
                             return_labels: bool = False) -> Labelled:
        """What single neurons of one dense layer add: post[neuron] · W_out[neuron]. Summed, plus b_out: mlp_out.

        Shapes: [n_neurons, pos, d_model]; all neurons of a layer take d_mlp · pos · d_model floats. Labels: "L0N0", …
        """
        layer %= self.model.cfg.n_layers
        post = self._plain(("post", layer), pos_slice)[..., neurons]
        results = np.moveaxis(post[..., None] * self.model.W_out[layer][neurons], -2, 0)
        results = self._through_branch_norm(results, f"blocks.{layer}.ln2_post", pos_slice, extra_axes=0)
        chosen = np.arange(self.model.cfg.d_mlp)[neurons]
        return (results, [f"L{layer}N{n}" for n in chosen]) if return_labels else results

    def get_full_resid_decomposition(self, layer: Optional[int] = None, pos_slice: PosSlice = None, apply_ln: bool = False,
                                     return_labels: bool = False) -> Labelled:
        """Heads, MLPs, embeddings and attention's biases: every part of the stream entering `layer` but single neurons.

        Shapes: [n_components, pos, d_model]; the sum is that stream. Labels: "L0H0", "0_mlp_out", "embed", "bias".
        """
        layer = self._last_layer(layer)
        heads, labels = self.stack_head_results(layer, True, pos_slice=pos_slice)
        rest, rest_labels = self.decompose_resid(layer, mode="mlp", pos_slice=pos_slice, return_labels=True)
        attention = self.decompose_resid(layer, mode="attn", incl_embeds=False, pos_slice=pos_slice) if layer else heads[:0]
        bias = attention.sum(axis=0) - heads.sum(axis=0)
        stack = np.concatenate([heads, rest, bias[None]])
        if apply_ln:
            stack = self.apply_ln_to_stack(stack, layer, pos_slice=pos_slice)
        labels = labels + rest_labels + ["bias"]
        return (stack, labels) if return_labels else stack

    # ---- through a norm, towards the logits ----

    def apply_ln_to_stack(self, residual_stack: np.ndarray, layer: Optional[int] = None, mlp_input: bool = False,
                          pos_slice: PosSlice = None, recompute_ln: bool = False) -> np.ndarray:
        """What each component contributes to a norm's output: (x − mean(x)) / sigma · gamma, sigma the run's own.

        The norm is ln1 of `layer` (ln2 with mlp_input), the final one for layer None, -1 or n_layers. An RMS norm takes
        no mean off. beta, which belongs to no component, is left out. recompute_ln: a full norm of each component by
        itself, with its own sigma and with beta: what a logit lens wants.

        gamma is applied here because Liuli's weights are raw; TransformerLens has it in the matrices behind the norm.

        Shapes: [n, pos, d_model] in and out. pos_slice: the positions the stack was taken at.
        """
        layer = self._last_layer(layer)
        final = layer == self.model.cfg.n_layers
        place = "ln_final" if final else f"blocks.{layer}.{'ln2' if mlp_input else 'ln1'}"
        self._require_pre_norm(place)
        centred = residual_stack
        if self.model._norm_kind(place) == "LN":
            centred = residual_stack - residual_stack.mean(axis=-1, keepdims=True)
        gamma = self.model.norm_weight(place)
        if recompute_ln:
            own = np.sqrt(np.mean(np.square(centred), axis=-1, keepdims=True) + np.float32(self.model.cfg.eps))
            return centred / own * gamma + self.model.norm_bias(place)
        return centred / self._plain(f"{place}.sigma", pos_slice) * gamma

    def _require_pre_norm(self, place: str) -> None:
        if f"{place}.sigma" not in self.model._points.aliases or not self.model._norm_kind(place):
            raise UnsupportedError(f"this {self.model.cfg.original_architecture} model has no norm {place} before a branch")

    def logit_attrs(self, residual_stack: np.ndarray, tokens, incorrect_tokens=None, pos_slice: PosSlice = None) -> np.ndarray:
        """How much each component adds to a token's logit (or to the difference to another token's).

        Each component goes through the final norm with the run's sigma, then against the token's column of W_U. Over a
        complete decomposition the sum is the logit, but for the final norm's beta and a soft cap.

        tokens: a token (text or id) for every position, or one per position. Shapes: [n, pos, d_model] in, [n, pos] out.
        """
        direction = self.model.tokens_to_residual_directions(tokens)
        if incorrect_tokens is not None:
            direction = direction - self.model.tokens_to_residual_directions(incorrect_tokens)
        scaled = self.apply_ln_to_stack(residual_stack, pos_slice=pos_slice)
        if direction.ndim == 1:
            return scaled @ direction
        return np.einsum("...pd,pd->...p", scaled, direction)

    def logit_lens(self, pos_slice: PosSlice = -1, incl_mid: bool = False, return_labels: bool = False) -> Labelled:
        """The logits the model would give if it stopped at each block: final norm and W_U on the stream there.

        The last row equals the run's logits to the rounding of its product class. Shapes: [n_streams, (pos,) d_vocab].
        """
        streams, labels = self.accumulated_resid(incl_mid=incl_mid, apply_ln=True, pos_slice=pos_slice, return_labels=True)
        logits = streams @ self.model.W_U
        cap = self.model.cfg.output_logits_soft_cap
        if cap > 0:
            logits = cap * np.tanh(logits / np.float32(cap))
        return (logits, labels) if return_labels else logits
