"""A model's shape under TransformerLens's field names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional


@dataclass(frozen=True)
class Config:
    """What a model is, as data. Widths are in numbers, lengths in tokens.

    ``normalization_type`` is "LN" or "RMS", never "LNPre" or "RMSPre": Liuli's weights are the file's own. TransformerLens
    folds norm weights into the matrices behind them by default, and centres what writes into the stream.
    """

    model_name: str
    original_architecture: str  #: the family: "llama", "qwen2", "gpt2", ...
    n_layers: int
    d_model: int
    n_ctx: int  #: longest text, in tokens
    d_head: int
    n_heads: int
    n_key_value_heads: int
    d_mlp: int
    d_vocab: int
    act_fn: str  #: "silu", "gelu" (erf), "gelu_new" (tanh), "relu"
    gated_mlp: bool
    eps: float
    normalization_type: Optional[str]
    positional_embedding_type: str  #: "rotary", "standard" (learned), "sinusoidal"
    attn_scale: float  #: scores = q.k / attn_scale
    attn_scores_soft_cap: float  #: -1: off, as in TransformerLens
    output_logits_soft_cap: float
    rotary_base: Optional[float]
    rotary_dim: Optional[int]
    num_experts: Optional[int]
    experts_per_token: Optional[int]
    tie_word_embeddings: bool
    attention_dir: str  #: "causal" or "bidirectional"
    embedding_scale: float
    has_output: bool  #: False: hidden states only (BERT)
    is_encoder_decoder: bool
    is_latent: bool  #: multi-head latent attention (DeepSeek)
    layers: List[dict] = field(repr=False, default_factory=list)  #: norm kinds by place, window and experts, per layer

    @property
    def final_rms(self) -> bool:
        return self.normalization_type == "RMS"

    @property
    def d_vocab_out(self) -> int:
        return self.d_vocab

    @property
    def window_size(self) -> Optional[int]:
        """The widest sliding window of a layer, or None."""
        return max((layer["sliding_window"] for layer in self.layers), default=0) or None

    @classmethod
    def from_engine(cls, d: dict) -> "Config":
        norm = d["final_norm"] or (d["layers"][0]["attn_norm_before"] or d["layers"][0]["attn_norm_after_add"])
        rotary = d["positions"] == "rotary"
        return cls(
            model_name=d["name"], original_architecture=d["family"], n_layers=d["n_layers"], d_model=d["d_model"],
            n_ctx=d["max_seq_len"], d_head=d["head_dim"], n_heads=d["n_heads"], n_key_value_heads=d["n_kv_heads"],
            d_mlp=d["d_ff"], d_vocab=d["vocab_size"], act_fn=d["activation"], gated_mlp=d["gated_ffn"], eps=d["norm_eps"],
            normalization_type=norm or None, positional_embedding_type=d["positions"],
            attn_scale=1.0 / d["attention_scale"] if d["attention_scale"] else 1.0,
            attn_scores_soft_cap=d["attention_soft_cap"] or -1.0, output_logits_soft_cap=d["final_soft_cap"] or -1.0,
            rotary_base=d["rope_thetas"][0] if rotary else None, rotary_dim=d["rope_dims"][0] if rotary else None,
            num_experts=d["n_experts"] or None, experts_per_token=d["n_experts_active"] or None,
            tie_word_embeddings=d["tied_embeddings"], attention_dir="causal" if d["causal"] else "bidirectional",
            embedding_scale=d["embedding_scale"], has_output=d["has_output"], is_encoder_decoder=d["is_encoder_decoder"],
            is_latent=d["is_latent"], layers=d["layers"])
