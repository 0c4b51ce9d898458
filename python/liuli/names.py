"""Names of values: Liuli's own, TransformerLens's spelling, and its shorthand ("pattern", 3)."""

from __future__ import annotations

import difflib
import fnmatch
import re
from typing import Callable, Iterable, Optional, Sequence, Tuple, Union

from .errors import NotFoundError

#: What selects points: a name, an alias, a wildcard ("blocks.*.resid_post"), several of these, or a function of the name.
NamesFilter = Union[None, str, Sequence[str], Callable[[str], bool]]
#: What looks up one point: a name, an alias, a shorthand ("q3", "scale4ln1"), or (shorthand, layer, "attn" | "mlp" | "ln1").
Key = Union[str, Tuple]

_PART = {"a": "attn", "m": "mlp", "b": "", "block": "", "blocks": "", "attention": "attn"}
_WORD = {"attn": "pattern", "attn_logits": "attn_scores", "key": "k", "query": "q", "value": "v",
         "mlp_pre": "pre", "mlp_mid": "mid", "mlp_post": "post"}
_IN_ATTENTION = {"q", "k", "v", "z", "rot_q", "rot_k", "result", "pattern", "attn_scores", "q_normed", "k_normed",
                 "scores", "scores_raw", "out_proj"}
_IN_MLP = {"pre", "post", "mid", "pre_linear"}
_OF_NORM = {"scale", "normalized", "mean", "var", "sigma", "centered", "scaled"}


def get_act_name(name: str, layer: Optional[int] = None, layer_type: Optional[str] = None) -> str:
    """The full name behind TransformerLens's shorthand, in Liuli's spelling.

    >>> get_act_name("pattern", 3)
    'blocks.3.attn.pattern'
    >>> get_act_name("scale4ln1"), get_act_name("normalized")
    ('blocks.4.ln1.sigma', 'ln_final.normalized')
    """
    if layer is None and layer_type is None and ("." in name or name.startswith("hook_")):
        return without_hook(name)
    match = re.fullmatch(r"([a-z_]+?)(\d+)([a-z]?.*)", name)
    if match and layer is None:
        name, layer, layer_type = match.group(1), int(match.group(2)), match.group(3)
    name = _WORD.get(name, name)
    if name in _IN_ATTENTION:
        layer_type = "attn"
    elif name in _IN_MLP:
        layer_type = "mlp"
    else:
        layer_type = _PART.get(layer_type or "", layer_type)
    if name in _OF_NORM and layer is None:
        layer_type = "ln_final"
    parts = [] if layer is None else [f"blocks.{layer}"]
    return without_hook(".".join(parts + ([layer_type] if layer_type else []) + [name]))


def without_hook(name: str) -> str:
    """TransformerLens's "blocks.3.ln1.hook_scale" as "blocks.3.ln1.sigma"."""
    name = name.replace("hook_", "")
    return name[: -len("scale")] + "sigma" if name.endswith(".scale") else name


class PointNames:
    """Every value a model has, with TransformerLens's name of it."""

    def __init__(self, pairs: Iterable[Tuple[str, str]], n_layers: int):
        self.aliases = dict(pairs)
        self.n_layers = n_layers

    def resolve(self, key: Key) -> str:
        """The name a key means. Negative layers count from the end. Raises NotFoundError with the nearest names."""
        if isinstance(key, str):
            name, layer, rest = key, None, ()
        else:
            name, layer, rest = key[0], key[1] if len(key) > 1 else None, key[2:]
        if layer is not None and layer < 0:
            layer += self.n_layers
        full = name if layer is None and name in self.aliases else get_act_name(name, layer, *rest)
        if full not in self.aliases:
            raise NotFoundError(f"no point {key!r} ({full}) in this model{self.nearest(full)}")
        return full

    def nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name, self.aliases, n=3, cutoff=0.5)
        return f"; nearest: {', '.join(near)}" if near else ""

    def select(self, names_filter: NamesFilter) -> list:
        """The names a filter selects, in the order a token meets them."""
        if names_filter is None:
            return list(self.aliases)
        if callable(names_filter):
            return [name for name, alias in self.aliases.items() if names_filter(name) or (alias and names_filter(alias))]
        patterns = [names_filter] if isinstance(names_filter, str) else list(names_filter)
        chosen = set()
        for pattern in patterns:
            chosen.update(self._matching(pattern))
        return [name for name in self.aliases if name in chosen]

    def _matching(self, pattern: str) -> list:
        if not isinstance(pattern, str) or not any(c in pattern for c in "*?["):
            return [self.resolve(pattern)]
        found = [name for name, alias in self.aliases.items()
                 if fnmatch.fnmatchcase(name, pattern) or (alias and fnmatch.fnmatchcase(alias, pattern))]
        if not found:
            raise NotFoundError(f"no point of this model matches {pattern!r}{self.nearest(pattern.replace('*', '0'))}")
        return found
