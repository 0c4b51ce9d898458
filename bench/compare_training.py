#!/usr/bin/env python3
"""Training throughput beside PyTorch on the CPU: the same model, batch and optimiser, f32 and bf16 products, turn and turn about.

    bench/compare_training.py --liuli build/release/bin/liuli [--threads 2] [--rounds 3] [--steps 4] [d384 smollm2]

A step is forward, loss, backward, clipping and AdamW; PyTorch runs transformers' LlamaForCausalLM, for bf16 under torch.autocast (weights
and optimiser stay f32 on both sides). Each round runs every column for some steps, and the first step of every run is left out; printed are
the medians of wall-clock time over all rounds, and the ratio to PyTorch's f32. --columns picks some of: liuli-f32 liuli-bf16 torch-f32 torch-bf16.
Where others use the machine, --realtime puts all under chrt (root only). Without torch and transformers only Liuli is measured.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

SHAPES = {
    "d384": ({"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 6,
              "num_key_value_heads": 6, "vocab_size": 6144}, 8, 128),
    "smollm2": ({"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
                 "num_key_value_heads": 3, "vocab_size": 49152}, 2, 128),
}

COLUMNS = ("liuli-f32", "liuli-bf16", "torch-f32", "torch-bf16")


def settings_of(shape):
    sizes, batch, length = SHAPES[shape]
    model = dict(sizes, max_position_embeddings=256, rms_norm_eps=1e-6, rope_theta=10000.0, tie_word_embeddings=True)
    return model, batch, length


def torch_steps(shape, steps, threads, products):
    """Prints the seconds of each step. Runs in a process of its own."""
    import contextlib
    import time

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.set_num_threads(threads)
    model_settings, batch, length = settings_of(shape)
    model = LlamaForCausalLM(LlamaConfig(**model_settings)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    ids = torch.randint(0, model_settings["vocab_size"], (batch, length + 1))
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16) if products == "bf16" else contextlib.nullcontext():
            logits = model(ids[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"version": torch.__version__, "seconds": seconds[1:]}))


def liuli_steps(shape, steps, options, products, folder):
    """The seconds of each step, from the run's log."""
    model, batch, length = settings_of(shape)
    output = os.path.join(folder, "run")
    data = os.path.join(folder, "text.jsonl")
    with open(data, "w", encoding="utf-8") as file:
        for i in range(200):
            file.write(json.dumps({"text": " ".join(str(i * k % 1009) for k in range(60))}) + "\n")
    run = {"model": dict(model, model_type="llama"), "tokenizer": {"kind": "characters", "vocab_size": 400}, "data": [data],
           "held_out": 0, "output": output, "steps": steps, "batch": batch, "sequence_length": length, "products": products,
           "threads": options.threads, "evaluate": {"every": 0}, "checkpoint": {"every": 0}}
    config = os.path.join(folder, "run.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(run, file)
    subprocess.run(prefix(options) + [options.liuli, "train", "--config", config], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    with open(os.path.join(output, "log.jsonl"), encoding="utf-8") as file:
        return [line["seconds"] for line in map(json.loads, file) if "seconds" in line][1:]


def prefix(options):
    return ["chrt", "-r", "1"] if options.realtime else []


def column_steps(column, shape, options):
    """The seconds of each counted step of one run, and PyTorch's version."""
    side, products = column.split("-")
    if side == "liuli":
        with tempfile.TemporaryDirectory(prefix="liuli-bench-") as folder:
            return liuli_steps(shape, options.steps + 1, options, products, folder), None
    command = [sys.executable, os.path.abspath(__file__), "--torch-steps", str(options.steps + 1), "--threads", str(options.threads),
               "--torch-products", products, shape]
    answer = json.loads(subprocess.run(prefix(options) + command, check=True, capture_output=True, text=True).stdout)
    return answer["seconds"], answer["version"]


def compare(shape, options, columns):
    _, batch, length = settings_of(shape)
    tokens, found, version = batch * length, {column: [] for column in columns}, None
    for _ in range(options.rounds):
        for column in columns:
            seconds, said = column_steps(column, shape, options)
            found[column] += seconds
            version = said or version
    print(f"{shape}: {tokens} tokens per step, {options.threads} threads" + (f", PyTorch {version}" if version else ""))
    against = statistics.median(found["torch-f32"]) if found.get("torch-f32") else None
    for column, seconds in found.items():
        median = statistics.median(seconds)
        ratio = f"  {against / median:5.2f} × torch-f32" if against else ""
        print(f"  {column:10}  {median:.3f} s  {tokens / median:6.0f} tokens/s{ratio}  ({len(seconds)} steps, fastest {min(seconds):.3f} s)",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE", help=" or ".join(SHAPES))
    parser.add_argument("--liuli", default="build/release/bin/liuli")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="counted steps per round")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--realtime", action="store_true", help="both sides under chrt -r 1")
    parser.add_argument("--torch-steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--torch-products", default="f32", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch_steps:
        torch_steps(options.shapes[0], options.torch_steps, options.threads, options.torch_products)
        return
    columns = options.columns
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError:
        columns = [column for column in columns if column.startswith("liuli")]
        print("no torch or no transformers here: Liuli alone", file=sys.stderr)
    for shape in options.shapes:
        compare(shape, options, columns)


if __name__ == "__main__":
    main()
