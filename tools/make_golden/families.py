#!/usr/bin/env python3
"""Seeded tiny models of families beside the first ones, with reference numbers from transformers run in float64.

    python3 -m venv V && V/bin/pip install torch==2.15.0 transformers==5.24.0 gguf==0.19.0 numpy==2.4.6
    V/bin/python tools/make_golden/families.py [name ...]

writes tests/golden/tiny/NAME/: config.json, model.safetensors (F16), golden.safetensors, gguf/NAME.F16.gguf (the same
values). Every weight is an exact 16-bit float, so that both files hold one model. golden.safetensors has two prompts,
p0 (9 tokens, with the values inside the first and the last block) and p1 (41 tokens); names are TransformerLens's
without "hook_", except that attn.q and attn.k are what attention uses (after norm and RoPE) and attn.q_proj, attn.k_proj
the projections; `scale` is a norm's sigma. Values of one expert are zero for tokens that do not go through it.
"""
import contextlib
import json
import math
import pathlib
import struct
import sys
import zlib

import gguf
import numpy as np
import torch
import transformers
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "tiny"
SEED, VOCAB, PROMPTS, GREEDY = 20261130, 347, (9, 41), 16

SHARED = dict(vocab_size=VOCAB, hidden_act="silu", max_position_embeddings=512, rms_norm_eps=1e-6, rope_theta=10000.0,
              bos_token_id=0, eos_token_id=1, pad_token_id=2)
MODELS = {
    # Layer 3 alone is routed: every second layer would be, layer 1 is taken out.
    "qwen2moe": dict(SHARED, model_type="qwen2_moe", architectures=["Qwen2MoeForCausalLM"], hidden_size=60,
                     intermediate_size=92, num_hidden_layers=4, num_attention_heads=6, num_key_value_heads=3,
                     moe_intermediate_size=26, shared_expert_intermediate_size=44, num_experts=7, num_experts_per_tok=3,
                     norm_topk_prob=False, decoder_sparse_step=2, mlp_only_layers=[1], use_sliding_window=False,
                     sliding_window=12, max_window_layers=2, tie_word_embeddings=False),
    # As transformers 5 writes it.
    "qwen3moe": dict(SHARED, model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"], hidden_size=64,
                     intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                     head_dim=20, moe_intermediate_size=24, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True,
                     decoder_sparse_step=1, mlp_only_layers=[], tie_word_embeddings=False),
    "mixtral": dict(SHARED, model_type="mixtral", architectures=["MixtralForCausalLM"], hidden_size=54,
                    intermediate_size=70, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
                    num_local_experts=5, num_experts_per_tok=2, sliding_window=12, router_jitter_noise=0.0,
                    tie_word_embeddings=False),
    "phi3": dict(SHARED, model_type="phi3", architectures=["Phi3ForCausalLM"], hidden_size=80, intermediate_size=90,
                 num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, partial_rotary_factor=0.5,
                 original_max_position_embeddings=512, rope_scaling=None, sliding_window=12, resid_pdrop=0.0,
                 embd_pdrop=0.0, tie_word_embeddings=False),
    # Layer 3 attends without positions.
    "smollm3": dict(SHARED, model_type="smollm3", architectures=["SmolLM3ForCausalLM"], hidden_size=60,
                    intermediate_size=92, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=1,
                    no_rope_layers=[1, 1, 1, 0], no_rope_layer_interval=4, use_sliding_window=False,
                    attention_bias=False, mlp_bias=False, tie_word_embeddings=True),
}
WRITTEN_BY_TRANSFORMERS = {"qwen3moe"}
INTERLEAVED = {"mixtral", "smollm3"}  # GGUF's converters reorder q and k of these


@contextlib.contextmanager
def in_double():
    """transformers casts norms, RoPE, softmax and routers to float32; in here these casts go to float64."""
    kept = torch.float32, torch.float, torch.Tensor.float, torch.get_default_dtype()
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept[:3]
        torch.set_default_dtype(kept[3])


# ---- the model -------------------------------------------------------------------------------------------------------

def random_for(*names):
    return np.random.default_rng([SEED] + [zlib.crc32(name.encode()) for name in names])


def draw(model, name, shape, tied):
    """Matrices N(0, 1 / fan_in), q and k somewhat larger so that patterns are not flat; norms around 1."""
    values = random_for(model, name).standard_normal(shape)
    if len(shape) == 1:
        return 1 + 0.2 * values if "norm" in name else 0.25 * values
    if "embed_tokens" in name or "lm_head" in name:
        return values * (2.2 / math.sqrt(shape[1]) if tied or "lm_head" in name else 0.8)
    gain = 1.4 if any(part in name for part in ("q_proj", "k_proj", "qkv_proj")) else 1.0
    if name.endswith(("mlp.gate.weight", "shared_expert_gate.weight")):
        gain = 1.5
    return values * gain / math.sqrt(shape[-1])


def build(name, config):
    arguments = {k: v for k, v in config.items() if k != "model_type"}
    model_config = transformers.AutoConfig.for_model(config["model_type"], **arguments)
    with in_double():
        model = getattr(transformers, config["architectures"][0])._from_config(model_config,
                                                                               attn_implementation="recording").double()
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    model.eval()
    with torch.no_grad():
        for key, tensor in model.named_parameters():
            values = draw(name, key, tuple(tensor.shape), config["tie_word_embeddings"])
            tensor.copy_(torch.from_numpy(values.astype(np.float16).astype(np.float64)))
    return model


def published(name, model):
    """Names and pieces of published checkpoints: transformers 5 keeps a layer's experts in one tensor."""
    tensors = {}
    for key, tensor in model.named_parameters():
        value = tensor.detach().numpy()
        if not key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            tensors[key] = value
            continue
        base, which = key.rsplit(".", 1)
        for e, matrix in enumerate(value):
            half = matrix.shape[0] // 2
            parts = {"gate_proj": matrix[:half], "up_proj": matrix[half:]} if which == "gate_up_proj" else \
                {"down_proj": matrix}
            for part, rows in parts.items():
                tensors[f"{base}.{e}.{part}.weight"] = rows
    if name == "mixtral":
        for old, new in (("mlp.", "block_sparse_moe."), ("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
            tensors = {(k.replace(old, new) if ".mlp." in k or "block_sparse_moe" in k else k): v
                       for k, v in tensors.items()}
    if model.config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    return tensors


# ---- watching it -----------------------------------------------------------------------------------------------------

class Recorder:
    def __init__(self):
        self.values, self.attention, self.hooks = {}, {}, []

    def put(self, name, value):
        self.values[name] = value.detach().numpy()

    def output(self, module, name):
        first = lambda o: o[0] if isinstance(o, tuple) else o
        self.hooks.append(module.register_forward_hook(lambda m, a, o: self.put(name, first(o)[0])))

    def input(self, module, name):
        self.hooks.append(module.register_forward_pre_hook(
            lambda m, a, k: self.put(name, (a[0] if a else k["hidden_states"])[0]), with_kwargs=True))

    def norm(self, module, name):
        def see(m, args, out):
            scale = (args[0].pow(2).mean(-1, keepdim=True) + m.variance_epsilon).sqrt()
            self.put(name + ".scale", scale[0])
            self.put(name + ".normalized", (args[0] / scale)[0])
            self.put(name + ".out", out[0])
        self.hooks.append(module.register_forward_hook(see))

    def experts(self, module, prefix):
        def see(m, args, out):
            x, ids, _ = args
            self.put(prefix + "routed_out", out)
            for e in range(m.num_experts):
                goes = (ids == e).any(-1, keepdim=True)
                pre, linear = (x @ m.gate_up_proj[e].T).chunk(2, -1)
                post = m.act_fn(pre) * linear
                for part, value in (("pre", pre), ("pre_linear", linear), ("post", post), ("out", post @ m.down_proj[e].T)):
                    self.put(f"{prefix}experts.{e}.{part}", torch.where(goes, value, 0))
        self.hooks.append(module.register_forward_hook(see))

    def router(self, module, prefix):
        def see(m, args, out):
            logits, weights, ids = out
            order = ids.argsort(-1)
            self.put(prefix + "router_logits", logits)
            self.put(prefix + "router_scores", torch.softmax(logits, -1))
            self.values[prefix + "expert_ids"] = ids.gather(1, order).numpy().astype(np.int32)
            self.put(prefix + "expert_weights", weights.gather(1, order))
        self.hooks.append(module.register_forward_hook(see))

    def shared(self, block, prefix):
        kept = {}
        self.hooks.append(block.shared_expert_gate.register_forward_hook(lambda m, a, o: kept.update(gate=o)))
        self.hooks.append(block.shared_expert.register_forward_hook(lambda m, a, o: kept.update(out=o)))
        self.hooks.append(block.register_forward_hook(
            lambda m, a, o: self.put(prefix + "shared_out", torch.sigmoid(kept["gate"]) * kept["out"])))
        self.feed_forward(block.shared_expert, prefix + "shared.", batched=False)

    def feed_forward(self, mlp, prefix, batched=True):
        first = (lambda t: t[0]) if batched else (lambda t: t)
        hook = lambda module, name: self.hooks.append(
            module.register_forward_hook(lambda m, a, o: self.put(prefix + name, first(o))))
        hook(mlp.gate_proj, "pre")
        hook(mlp.up_proj, "pre_linear")
        self.hooks.append(mlp.down_proj.register_forward_pre_hook(lambda m, a: self.put(prefix + "post", first(a[0]))))

    def fused_feed_forward(self, mlp, prefix):
        def see(m, args, out):
            pre, linear = out[0].chunk(2, -1)
            self.put(prefix + "pre", pre)
            self.put(prefix + "pre_linear", linear)
        self.hooks.append(mlp.gate_up_proj.register_forward_hook(see))
        self.input(mlp.down_proj, prefix + "post")

    def mlp(self, mlp, prefix):
        if hasattr(mlp, "experts"):
            self.router(mlp.gate, prefix)
            self.experts(mlp.experts, prefix)
            if hasattr(mlp, "shared_expert"):
                self.shared(mlp, prefix)
        elif hasattr(mlp, "gate_up_proj"):
            self.fused_feed_forward(mlp, prefix)
        else:
            self.feed_forward(mlp, prefix)

    def block(self, block, prefix):
        a = block.self_attn
        self.norm(block.input_layernorm, prefix + "ln1")
        self.norm(block.post_attention_layernorm, prefix + "ln2")
        self.input(block.post_attention_layernorm, prefix + "resid_mid")
        self.output(a.o_proj, prefix + "attn_out")
        self.output(block.mlp, prefix + "mlp_out")
        if hasattr(a, "q_proj"):
            self.output(a.q_proj, prefix + "attn.q_proj")
            self.output(a.k_proj, prefix + "attn.k_proj")
        if hasattr(a, "q_norm"):
            self.output(a.q_norm, prefix + "attn.q_normed")
            self.output(a.k_norm, prefix + "attn.k_normed")
        self.attention[id(a)] = prefix + "attn."
        self.mlp(block.mlp, prefix + "mlp.")

    def watch(self, model, detail):
        core = model.model
        self.output(core.embed_tokens, "embed")
        self.norm(core.norm, "ln_final")
        for i, block in enumerate(core.layers):
            self.input(block, f"blocks.{i}.resid_pre")
            self.output(block, f"blocks.{i}.resid_post")
            if detail and i in (0, len(core.layers) - 1):
                self.block(block, f"blocks.{i}.")
            elif hasattr(block.mlp, "experts"):
                self.router(block.mlp.gate, f"blocks.{i}.mlp.")

    def stop(self):
        for hook in self.hooks:
            hook.remove()


RECORDER = Recorder()


def recording_attention(module, query, key, value, attention_mask, scaling=None, **_):
    group = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(group, 1).transpose(2, 3) * scaling
    pattern = torch.softmax(scores if attention_mask is None else scores + attention_mask, -1)
    z = (pattern @ value.repeat_interleave(group, 1)).transpose(1, 2).contiguous()
    if (prefix := RECORDER.attention.get(id(module))) is not None:
        for name, values in (("q", query), ("k", key), ("v", value)):
            RECORDER.put(prefix + name, values[0].transpose(0, 1))
        for name, values in (("scores", scores), ("pattern", pattern), ("z", z)):
            RECORDER.put(prefix + name, values[0])
    return z, pattern


ALL_ATTENTION_FUNCTIONS.register("recording", recording_attention)
ALL_MASK_ATTENTION_FUNCTIONS.register("recording", ALL_MASK_ATTENTION_FUNCTIONS["eager"])


def logits_of(model, ids):
    with torch.no_grad(), in_double():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].numpy()


def greedy(model, ids):
    chosen, gaps = [], []
    for _ in range(GREEDY):
        last = logits_of(model, ids + chosen)[-1]
        best = np.argsort(-last)[:2]
        chosen.append(int(best[0]))
        gaps.append(float(last[best[0]] - last[best[1]]))
    return np.array(chosen, np.int32), np.array(gaps)


def golden(name, model):
    global RECORDER
    arrays = {}
    for p, length in enumerate(PROMPTS):
        ids = [int(i) for i in random_for(name, f"prompt {p}").integers(0, VOCAB, length)]
        RECORDER = Recorder()
        RECORDER.watch(model, detail=p == 0)
        logits = logits_of(model, ids)
        RECORDER.stop()
        RECORDER.attention = {}
        arrays[f"p{p}.input_ids"] = np.array(ids, np.int32)
        arrays[f"p{p}.logits"] = logits
        arrays[f"p{p}.greedy"], arrays[f"p{p}.greedy_gap"] = greedy(model, ids)
        for key, value in RECORDER.values.items():
            arrays[f"p{p}.{key}"] = value if value.dtype == np.int32 else value.astype(np.float32)
    return arrays


# ---- files -----------------------------------------------------------------------------------------------------------

TYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "int32": "I32"}


def write_safetensors(path, arrays):
    order = sorted(arrays, key=lambda k: (-arrays[k].itemsize, k))
    header, at = {}, 0
    for key in order:
        a = arrays[key]
        header[key] = {"dtype": TYPES[str(a.dtype)], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for key in order:
            f.write(np.ascontiguousarray(arrays[key]).tobytes())


BLOCK_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp",
}


def interleave(rows, heads):
    """Rows 0 … h of each head become 0, h/2, 1, h/2 + 1, …"""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def gguf_tensors(name, model):
    c, tensors = model.config, {}
    for key, tensor in model.named_parameters():
        value = tensor.detach().numpy()
        if not key.startswith("model.layers."):
            other = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
                     "lm_head.weight": "output.weight"}[key]
            tensors[other] = value
            continue
        _, _, layer, rest = key.split(".", 3)
        if rest == "mlp.experts.gate_up_proj":
            half = value.shape[1] // 2
            tensors[f"blk.{layer}.ffn_gate_exps.weight"] = value[:, :half]
            tensors[f"blk.{layer}.ffn_up_exps.weight"] = value[:, half:]
            continue
        if rest == "mlp.experts.down_proj":
            tensors[f"blk.{layer}.ffn_down_exps.weight"] = value
            continue
        part, kind = rest.rsplit(".", 1)
        if name in INTERLEAVED and part in ("self_attn.q_proj", "self_attn.k_proj"):
            value = interleave(value, c.num_attention_heads if "q_proj" in part else c.num_key_value_heads)
        tensors[f"blk.{layer}.{BLOCK_NAMES[part]}.{kind}"] = value.squeeze(0) if part.endswith("_gate") else value
    if c.tie_word_embeddings:
        tensors.pop("output.weight", None)
    return tensors


def write_gguf(path, name, config, model):
    c, arch = model.config, "llama" if name == "mixtral" else name
    head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    w = gguf.GGUFWriter(path, arch)
    w.add_name("tiny " + name)
    w.add_file_type(1)
    w.add_block_count(c.num_hidden_layers)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_feed_forward_length(c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    w.add_head_count_kv(c.num_key_value_heads)
    w.add_layer_norm_rms_eps(c.rms_norm_eps)
    w.add_rope_freq_base(config["rope_theta"])
    w.add_vocab_size(VOCAB)
    w.add_rope_dimension_count(int(head_dim * config.get("partial_rotary_factor", 1)))
    if "head_dim" in config:
        w.add_key_length(head_dim)
        w.add_value_length(head_dim)
    if config.get("sliding_window") and name != "qwen2moe":
        w.add_sliding_window(c.sliding_window)
    if name == "phi3":
        w.add_rope_scaling_orig_ctx_len(c.original_max_position_embeddings)
    if "num_experts_per_tok" in config:
        w.add_expert_count(config.get("num_experts") or config["num_local_experts"])
        w.add_expert_used_count(c.num_experts_per_tok)
    if "moe_intermediate_size" in config:
        w.add_expert_feed_forward_length(c.moe_intermediate_size)
    if "shared_expert_intermediate_size" in config:
        w.add_expert_shared_feed_forward_length(c.shared_expert_intermediate_size)
    write_tokenizer(w)
    for key, value in sorted(gguf_tensors(name, model).items()):
        plain = value.ndim == 1 or "ffn_gate_inp" in key
        w.add_tensor(key, np.ascontiguousarray(value.astype(np.float32 if plain else np.float16)))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_tokenizer(w):
    """The byte-level BPE that all tiny models share."""
    tokenizer = json.loads((ROOT / "llama" / "tokenizer.json").read_text())
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    types = [gguf.TokenType.NORMAL] * len(tokens)
    for added in tokenizer["added_tokens"]:
        types[added["id"]] = gguf.TokenType.CONTROL
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]])
    w.add_bos_token_id(0)
    w.add_eos_token_id(1)
    w.add_add_bos_token(False)


def write_config(path, name, config, model):
    stored = dict(config, torch_dtype="float16")
    if name in WRITTEN_BY_TRANSFORMERS:
        stored = {k: v for k, v in model.config.to_dict().items() if k not in ("_name_or_path", "transformers_version")}
        stored["dtype"] = "float16"
    path.write_text(json.dumps(stored, indent=1) + "\n")


def main():
    transformers.logging.set_verbosity_error()
    for name in sys.argv[1:] or MODELS:
        config, folder = MODELS[name], ROOT / name
        (folder / "gguf").mkdir(parents=True, exist_ok=True)
        model = build(name, config)
        write_config(folder / "config.json", name, config, model)
        write_safetensors(folder / "model.safetensors",
                          {k: v.astype(np.float16) for k, v in published(name, model).items()})
        arrays = golden(name, model)
        write_safetensors(folder / "golden.safetensors", arrays)
        write_gguf(folder / "gguf" / f"{name}.F16.gguf", name, config, model)
        gap = min(arrays["p0.greedy_gap"].min(), arrays["p1.greedy_gap"].min())
        print(f"{name}: logits' spread {arrays['p1.logits'].std():.2f}, smallest greedy gap {gap:.4f}")


if __name__ == "__main__":
    main()
