"""A model one can run, watch and change."""

from __future__ import annotations

import json
import os
import queue
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from .cache import ActivationCache
from .config import Config
from .errors import InvalidArgumentError, ModelNotFoundError, NotFoundError
from .names import NamesFilter, PointNames
from .weights import Weights

#: A text, or token ids: a list, or an array [pos] or [1, pos].
Input = Union[str, Sequence[int], np.ndarray]
#: (which points, function(value, hook) -> new value or None)
FwdHook = Tuple[NamesFilter, Callable[[np.ndarray, "HookPoint"], Any]]


@dataclass(frozen=True)
class HookPoint:
    """Where a hook is called."""

    name: str  #: "blocks.3.attn.pattern"
    first_position: int = 0  #: position of the value's token 0: > 0 while a text is being generated
    tokens: Optional[List[int]] = None  #: of one expert's values: row i is of the pass's token tokens[i]

    def layer(self) -> int:
        """The block's number. Raises InvalidArgumentError outside the blocks."""
        for part in self.name.split("."):
            if part.isdigit():
                return int(part)
        raise InvalidArgumentError(f"{self.name} is outside the blocks")


@dataclass(frozen=True)
class Generation:
    """What a generation gave."""

    text: str
    tokens: np.ndarray  #: new token ids
    logprobs: np.ndarray  #: of each, in nats, of the untouched distribution
    reason: str  #: "end_of_text", "stop_string", "max_tokens", "context_full", "cancelled"
    prompt_tokens: int
    prompt_seconds: float
    decode_seconds: float


class Model(Weights):
    """A language model in a GGUF file or a Hugging Face folder.

    >>> model = liuli.Model.load("smollm2.gguf")
    >>> logits, cache = model.run_with_cache("The capital of France is")
    >>> cache["pattern", 3].shape  # [n_heads, pos, key]

    Arrays have no batch dimension (one text at a time); ``batch_dim=True`` puts TransformerLens's 1 in front of everything:
    logits [1, pos, d_vocab], cached values, what hooks get.

    Numbers are the file's own model: no norm is folded, nothing is centred. Threads: the GIL is released while the
    engine computes; calls of several threads run one after another.
    """

    def __init__(self, core: "_core.Model", batch_dim: bool = False):
        self._core = core
        self.cfg: Config = Config.from_engine(core.config())
        self.batch_dim = batch_dim
        self._points = PointNames(core.point_names(), self.cfg.n_layers)
        self._decoded: Dict[str, np.ndarray] = {}
        self._weight_set: Optional[set] = None
        self._hooks: List[FwdHook] = []

    @classmethod
    def load(cls, path: Union[str, os.PathLike], *, threads: int = 0, exact: bool = False, product_class: str = "auto",
             chat_template: str = "", cache_type: str = "auto", prompt_products: str = "bf16",
             panels: Union[str, os.PathLike] = "", batch_dim: bool = False) -> "Model":
        """Loads a GGUF file, a Hugging Face folder or a safetensors file in one.

        threads: 0: every usable CPU. exact: the slow second opinion, sums in double. product_class: how products round:
        "auto" (f32 for files that are F32 throughout, else fast rounded ones), "prompt", "decode", "f32".
        chat_template: "" the file's own, or chatml, llama3, gemma, plain. cache_type: how keys and values are kept:
        "auto", "f32", "f16", "bf16", "q8_0", "q4_0". prompt_products: what prompts multiply quantised weights by: "bf16", or
        "int8": 8-bit activations, coarser, and faster where there is no matrix unit. panels: a file that `liuli pack` wrote,
        mapped instead of packing the weights; "" the one beside the model, if it is there and of this model; "none": packed.

        Raises ModelNotFoundError (a FileNotFoundError), CorruptFileError, UnsupportedError, OutOfMemoryError.
        """
        try:
            core = _core.Model.load(os.fspath(path), threads, exact, product_class, chat_template, cache_type,
                                     prompt_products, os.fspath(panels))
        except NotFoundError as error:
            raise ModelNotFoundError(str(error)) from None
        return cls(core, batch_dim)

    def __repr__(self) -> str:
        c = self.cfg
        return f"<liuli.Model {c.original_architecture} {c.model_name!r}: {c.n_layers} layers, d_model {c.d_model}>"

    # ---- text ----

    def to_tokens(self, text: str, prepend_bos: Optional[bool] = None, parse_special: bool = False) -> np.ndarray:
        """Token ids, int64 [pos] ([1, pos] with batch_dim).

        prepend_bos: None: what the model's own files prescribe (TransformerLens always prepends one unless told not to);
        True or False: with or without. parse_special: "<|im_end|>" in the text means the control token.
        """
        ids = self._core.tokenize(text, prepend_bos is not False, parse_special)
        bos = self._core.bos_id()
        if prepend_bos and bos is None:
            raise InvalidArgumentError("prepend_bos: this vocabulary has no BOS token")
        if prepend_bos and ids[:1] != [bos]:
            ids = [bos] + ids
        return self._batched(np.asarray(ids, np.int64))

    def to_string(self, tokens: Input) -> str:
        """The text of token ids."""
        return self._core.detokenize(self._ids(tokens))

    def to_str_tokens(self, tokens: Input, prepend_bos: Optional[bool] = None) -> List[str]:
        """The text of each token (of a text, or of ids). Half a character is shown as U+FFFD."""
        ids = self._ids(self.to_tokens(tokens, prepend_bos) if isinstance(tokens, str) else tokens)
        return [self._core.token_text(i) for i in ids]

    def to_single_token(self, text: str) -> int:
        """The id of a text that is one token. Raises InvalidArgumentError if it is not."""
        ids = self._core.tokenize(text, False, True)
        if len(ids) != 1:
            raise InvalidArgumentError(f"{text!r} is {len(ids)} tokens: {self.to_str_tokens(ids)}")
        return ids[0]

    def tokens_to_residual_directions(self, tokens: Union[str, int, Input]) -> np.ndarray:
        """W_U's column of a token, [d_model]; of several ids, [n, d_model]."""
        if isinstance(tokens, str):
            tokens = self.to_single_token(tokens)
        ids = np.asarray(tokens)
        return self.weight("unembed.weight")[ids.reshape(-1) if ids.ndim > 1 else ids]

    def render_chat(self, messages: Sequence[dict], add_generation_prompt: bool = True) -> Tuple[str, np.ndarray]:
        """The prompt of a conversation by the model's chat template: (text, ids [pos]).

        messages: [{"role": "user", "content": "…"}, …]. User text is never read as control tokens.
        """
        text, ids = self._core.render_chat(json.dumps(list(messages)), add_generation_prompt)
        return text, np.asarray(ids, np.int64)

    def _batched(self, array: np.ndarray) -> np.ndarray:
        return array[None] if self.batch_dim else array

    def _ids(self, tokens: Input) -> List[int]:
        if isinstance(tokens, str):
            tokens = self.to_tokens(tokens)
        ids = np.asarray(tokens)
        if ids.ndim == 2 and ids.shape[0] == 1:
            ids = ids[0]
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise InvalidArgumentError(f"tokens are {ids.dtype} of shape {list(ids.shape)}, expected integers [pos] or [1, pos]")
        return ids.tolist()

    # ---- running ----

    def __call__(self, input: Input, return_type: Optional[str] = "logits", stop_at_layer: Optional[int] = None, **beside):
        """Logits float32 [pos, d_vocab], or the loss; see run_with_hooks."""
        return self.run_with_hooks(input, return_type=return_type, stop_at_layer=stop_at_layer, **beside)

    def run_with_cache(self, input: Input, names_filter: NamesFilter = None, stop_at_layer: Optional[int] = None,
                       return_type: Optional[str] = "logits", fwd_hooks: Sequence[FwdHook] = (),
                       max_bytes: int = 4 << 30, **beside) -> Tuple[Any, ActivationCache]:
        """Runs a text; what it returns, and every value that names_filter chooses.

        names_filter: None: every point; a name, alias or wildcard ("blocks.*.resid_post"), several of them, or a function
        of the name (called with Liuli's and with TransformerLens's). stop_at_layer: blocks from here on are not run: the
        first result is then the stream [pos, d_model] that would enter it; negative counts from the end. return_type:
        "logits", "loss" (mean −log p of the next token, a float), None. fwd_hooks: as run_with_hooks; the cache holds
        what they left. max_bytes: a larger capture is refused before it runs. beside: source (of an encoder-decoder),
        token_types (BERT).

        Raises NotFoundError (a KeyError, with the nearest names), OutOfMemoryError, InvalidArgumentError.
        """
        names = self._before(self._points.select(names_filter), stop_at_layer)
        result, kept = self._run(input, names, fwd_hooks, stop_at_layer, return_type, max_bytes, **beside)
        values = {name: self._batched(kept[name]) for name in names}
        return result, ActivationCache(values, self, has_batch_dim=self.batch_dim)

    def run_with_hooks(self, input: Input, fwd_hooks: Sequence[FwdHook] = (), return_type: Optional[str] = "logits",
                       stop_at_layer: Optional[int] = None, **beside):
        """Runs a text while functions change values on the way; returns as run_with_cache.

        fwd_hooks: [(points, function)]; function(value, hook) gets a float32 array of its own, in the point's shape, and
        returns the new value, or None: then what it left in the array counts. hook.name says where, hook.layer() which
        block. An edit that never took place is a NotFoundError; what a hook raises ends the run.
        """
        return self._run(input, [], fwd_hooks, stop_at_layer, return_type, 4 << 30, **beside)[0]

    @contextmanager
    def hooks(self, fwd_hooks: Sequence[FwdHook]) -> Iterator["Model"]:
        """Within the block every run and generation goes through these hooks, too."""
        before = self._hooks
        self._hooks = before + list(fwd_hooks)
        try:
            yield self
        finally:
            self._hooks = before

    def _run(self, input, names, fwd_hooks, stop_at_layer, return_type, max_bytes, source=None, token_types=None):
        if return_type not in ("logits", "loss", None):
            raise InvalidArgumentError(f"return_type is {return_type!r}, expected \"logits\", \"loss\" or None")
        ids = self._ids(input)
        options = _core.Model.RunOptions()
        results = self._result_names(stop_at_layer, return_type)
        options.points = list(dict.fromkeys(list(names) + results))
        options.hooks = self._native_hooks(fwd_hooks)
        options.stop_at_layer = -1 if stop_at_layer is None else self._layer(stop_at_layer)
        options.max_bytes = max_bytes
        options.source = [] if source is None else self._ids(source)
        options.token_types = [] if token_types is None else self._ids(token_types)
        kept = dict(self._core.trace(ids, options))
        return self._result(results, kept, return_type, ids), kept

    def _layer(self, layer: int) -> int:
        n = self.cfg.n_layers
        if not -n <= layer <= n:
            raise InvalidArgumentError(f"stop_at_layer is {layer}, expected {-n}…{n}")
        return layer + n if layer < 0 else layer

    # The values that a run's result is made of.
    def _result_names(self, stop_at_layer: Optional[int], return_type: Optional[str]) -> List[str]:
        if stop_at_layer is None:
            if return_type is None:
                return []
            return ["logits" if self.cfg.has_output else self._stream_after(self.cfg.n_layers)[0]]
        return self._stream_after(self._layer(stop_at_layer))

    def _stream_after(self, n_blocks: int) -> List[str]:
        if n_blocks == 0:
            return [n for n in ("embed", "pos_embed") if n in self._points.aliases]
        at = self._block(n_blocks - 1)
        normed = at + "normalized_resid_post"  # a post-norm family's stream
        return [normed if normed in self._points.aliases else at + "resid_post"]

    def _result(self, names: List[str], kept: Dict[str, np.ndarray], return_type: Optional[str], ids: List[int]):
        if return_type is None and names != ["logits"] or not names:
            return None
        value = sum((kept[name] for name in names[1:]), kept[names[0]])
        if return_type == "loss" and names == ["logits"]:
            return self.loss(value, ids)
        return self._batched(value)

    # What a run that stops early can show: everything before that block.
    def _before(self, names: List[str], stop_at_layer: Optional[int]) -> List[str]:
        if stop_at_layer is None:
            return names
        stop = self._layer(stop_at_layer)

        def runs(name: str) -> bool:
            if name.startswith("encoder.") or name.startswith("enc."):
                return True
            if "blocks." in name:
                return HookPoint(name).layer() < stop
            return not name.startswith("ln_final.") and name not in ("logits", "pooler")

        return [name for name in names if runs(name)]

    def _native_hooks(self, fwd_hooks: Sequence[FwdHook]) -> list:
        return [(self._points.select(points), self._adapted(function)) for points, function in self._hooks + list(fwd_hooks)]

    def _adapted(self, function: Callable) -> Callable:
        batch = self.batch_dim

        def call(values: np.ndarray, name: str, first_position: int, tokens: Optional[List[int]]):
            result = function(values[None] if batch else values, HookPoint(name, first_position, tokens))
            if result is None:
                return None
            result = np.asarray(result, np.float32)
            return result[0] if batch and result.ndim == values.ndim + 1 else result

        return call

    def loss(self, logits: np.ndarray, tokens: Input, per_token: bool = False):
        """Mean −log p of each next token, in nats; per_token: [pos − 1]."""
        ids = np.asarray(self._ids(tokens))
        rows = np.asarray(logits, np.float32).reshape(len(ids), -1)[:-1]
        top = rows.max(axis=-1, keepdims=True)
        total = np.log(np.exp(rows - top).sum(axis=-1, dtype=np.float64)) + top[:, 0]
        losses = total - rows[np.arange(len(rows)), ids[1:]]
        return losses if per_token else float(losses.mean())

    # ---- generating ----

    def generate(self, input: Input, max_new_tokens: int = 64, temperature: float = 0.0, *, return_type: str = "text",
                 **settings) -> Union[str, np.ndarray, Generation]:
        """Continues a text. Greedy unless temperature > 0 (TransformerLens samples at 1 by default).

        settings: top_k (0: off), top_p, min_p, seed, repetition_penalty, stop (strings before which to end),
        stop_at_eos, fwd_hooks (called for the prompt, then for each token), source. return_type: "text" the new text,
        "tokens" the new ids, "all" a Generation. Ctrl-C ends it between two tokens.
        """
        options = self._generate_options(max_new_tokens, temperature, **settings)
        return self._returned(self._core.generate(self._ids(input), options), return_type)

    def chat(self, messages: Union[str, Sequence[dict]], max_new_tokens: int = 256, temperature: float = 0.0, *,
             return_type: str = "text", **settings):
        """The model's answer to a conversation, by its chat template. A plain string is one user message."""
        return self.generate(self._chat_ids(messages), max_new_tokens, temperature, return_type=return_type, **settings)

    def stream(self, input: Union[Input, Sequence[dict]], max_new_tokens: int = 64, temperature: float = 0.0,
               **settings) -> Iterator[str]:
        """The new text piece by piece, while it is being generated; messages of a chat are taken, too.

        Leaving the loop stops the generation.
        """
        chat = not isinstance(input, (str, np.ndarray)) and len(input) > 0 and isinstance(input[0], dict)
        ids = self._chat_ids(input) if chat else self._ids(input)
        options = self._generate_options(max_new_tokens, temperature, **settings)
        pieces: "queue.SimpleQueue" = queue.SimpleQueue()
        flag = _core.Model.StopFlag()

        def work() -> None:
            try:
                self._core.generate(ids, options, lambda _id, text, _logprob: pieces.put(text), flag)
                pieces.put(None)
            except BaseException as error:  # goes to whoever reads the pieces
                pieces.put(error)

        thread = threading.Thread(target=work, name="liuli-generate", daemon=True)
        thread.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                if piece:
                    yield piece
        finally:
            flag.stop()
            thread.join()

    def _chat_ids(self, messages: Union[str, Sequence[dict]]) -> List[int]:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return self.render_chat(messages)[1].tolist()

    def _generate_options(self, max_new_tokens: int, temperature: float, *, top_k: int = 0, top_p: float = 1.0,
                          min_p: float = 0.0, seed: int = 0, repetition_penalty: float = 1.0,
                          stop: Union[str, Sequence[str]] = (), stop_at_eos: bool = True,
                          fwd_hooks: Sequence[FwdHook] = (), source: Optional[Input] = None) -> "_core.Model.GenerateOptions":
        options = _core.Model.GenerateOptions()
        options.max_tokens, options.temperature = max_new_tokens, temperature
        options.top_k, options.top_p, options.min_p, options.seed = top_k, top_p, min_p, seed
        options.repetition_penalty = repetition_penalty
        options.stop = [stop] if isinstance(stop, str) else list(stop)
        options.ignore_eos = not stop_at_eos
        options.hooks = self._native_hooks(fwd_hooks)
        options.source = [] if source is None else self._ids(source)
        return options

    def _returned(self, d: dict, return_type: str) -> Union[str, np.ndarray, Generation]:
        if return_type == "text":
            return d["text"]
        tokens = np.asarray(d["tokens"], np.int64)
        if return_type == "tokens":
            return tokens
        if return_type != "all":
            raise InvalidArgumentError(f'return_type is "{return_type}", expected text, tokens or all')
        return Generation(**{**d, "tokens": tokens, "logprobs": np.asarray(d["logprobs"], np.float32)})

    # ---- asking ----

    def embed(self, texts: Union[str, Sequence[str]], pooling: str = "", normalise: Optional[bool] = None) -> np.ndarray:
        """Texts as vectors, [n, d_model] (one text: [d_model]). pooling: "" the model's own, mean, cls, last."""
        one = isinstance(texts, str)
        rows = [row for row, _, _ in self._core.embed([texts] if one else list(texts), pooling, normalise)]
        return rows[0] if one else np.stack(rows)

    def points(self) -> List[Tuple[str, str, str, str]]:
        """The table of points: (name, shape, formula, TransformerLens's name or "")."""
        return self._core.points()

    def point_names(self, names_filter: NamesFilter = None) -> List[str]:
        """The names a filter selects."""
        return self._points.select(names_filter)

    def cache_bytes(self, n_tokens: int, names_filter: NamesFilter = None) -> int:
        """What run_with_cache would hold for a text of so many tokens."""
        return self._core.trace_bytes(n_tokens, self._points.select(names_filter))

    @property
    def threads(self) -> int:
        return self._core.threads()

    # "LN", "RMS", or "" where no norm stands before a branch (post-norm).
    def _norm_kind(self, place: str) -> str:
        if place == "ln_final":
            return self.cfg.normalization_type or ""
        return self.cfg.layers[HookPoint(place).layer()]["attn_norm_before"]
