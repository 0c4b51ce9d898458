"""Liuli (琉璃): language models one can see through.

>>> import liuli
>>> model = liuli.Model.load("smollm2.gguf")
>>> logits, cache = model.run_with_cache("The capital of France is")
>>> cache["blocks.3.attn.pattern"].shape
"""

from ._core import active_isa, available_isas
from .cache import ActivationCache
from .config import Config
from .errors import (CancelledError, CorruptFileError, Error, InvalidArgumentError, IoError, ModelNotFoundError, NotFoundError,
                     OutOfMemoryError, UnsupportedError)
from .model import Generation, HookPoint, Model
from .names import get_act_name

__all__ = ["ActivationCache", "CancelledError", "Config", "CorruptFileError", "Error", "Generation", "HookPoint",
           "InvalidArgumentError", "IoError", "Model", "ModelNotFoundError", "NotFoundError", "OutOfMemoryError",
           "UnsupportedError", "active_isa", "available_isas", "get_act_name"]
