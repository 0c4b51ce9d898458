#!/usr/bin/env python3
"""`liuli train` as a program: runs that finish, are killed, interrupted, starved of disk or driven to infinity.

    train_test.py LIULI [TestCase.test …]
"""
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

LIULI = "liuli"
KILLS = 20

POEMS = ["静夜思\n床前明月光，疑是地上霜。\n举头望明月，低头思故乡。", "春晓\n春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少。",
         "登鹳雀楼\n白日依山尽，黄河入海流。\n欲穷千里目，更上一层楼。", "相思\n红豆生南国，春来发几枝。\n愿君多采撷，此物最相思。",
         "江雪\n千山鸟飞绝，万径人踪灭。\n孤舟蓑笠翁，独钓寒江雪。", "鹿柴\n空山不见人，但闻人语响。\n返景入深林，复照青苔上。"]


def tensors(path):
    """{name: (shape, bytes)} of a safetensors file."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}


def floats(entry):
    return struct.unpack(f"<{len(entry[1]) // 4}f", entry[1])


def log_of(folder):
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def without_time(lines):
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


class TrainCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="liuli-train-")
        cls.data = os.path.join(cls.folder, "poems.jsonl")
        with open(cls.data, "w", encoding="utf-8") as file:
            for poem in POEMS * 4:
                file.write(json.dumps({"text": poem}, ensure_ascii=False) + "\n")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def config(self, name, **changes):
        """A run.json of a model that takes a millisecond per step."""
        settings = {
            "model": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "intermediate_size": 64,
                      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                      "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0},
            "tokenizer": {"kind": "characters", "vocab_size": 400, "min_count": 1},
            "data": [self.data], "held_out": 0.2, "output": self.path(name), "steps": 40, "batch": 4,
            "sequence_length": 24, "learning_rate": {"peak": 0.01, "warm_up": 5}, "seed": 3, "threads": 1,
            "evaluate": {"every": 20, "windows": 4}, "checkpoint": {"every": 10, "keep": 2}}
        settings.update(changes)
        path = self.path(name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        return path

    def liuli(self, *args, **options):
        return subprocess.run([LIULI, *args], capture_output=True, text=True, timeout=600, **options)  # a busy disk: a checkpoint is forced to it

    def train(self, name, *args, **changes):
        result = self.liuli("train", "--config", self.config(name, **changes), *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path(name)

    def assert_same_run(self, a, b):
        """Every bit of what was learned, and every number on the way."""
        with open(os.path.join(a, "model", "model.safetensors"), "rb") as x, \
                open(os.path.join(b, "model", "model.safetensors"), "rb") as y:
            self.assertTrue(x.read() == y.read(), "the weights differ")
        self.assertEqual(without_time(log_of(a)), without_time(log_of(b)))


class Runs(TrainCase):
    def test_a_run_learns_and_leaves_a_model_that_runs(self):
        folder = self.train("learns", steps=120)
        lines = log_of(folder)
        losses = [line["loss"] for line in lines if "loss" in line]
        self.assertEqual(len(losses), 120)
        self.assertGreater(losses[0], 5)
        self.assertLess(losses[-1], 0.5 * losses[0])
        self.assertEqual([line["step"] for line in lines if "held_out_loss" in line][:3], [0, 10, 20])
        with open(os.path.join(folder, "loss.svg"), encoding="utf-8") as file:
            self.assertIn("</svg>", file.read())
        kept = sorted(name for name in os.listdir(folder) if name.startswith("step-"))
        self.assertIn("step-000120", kept)
        self.assertLessEqual(len(kept), 3)  # the last two and the best
        model = os.path.join(folder, "model")
        answer = self.liuli("run", model, "--raw", "春眠", "-n", "8", "--temperature", "0")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("不觉晓", answer.stdout)  # learned by heart
        trace = self.liuli("trace", model, "--prompt", "春眠", "--points", "blocks.1.resid_post", "-o", self.path("trace.safetensors"))
        self.assertEqual(trace.returncode, 0, trace.stderr)

    def test_every_family_from_its_sizes_learns(self):
        for family in ["llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2"]:
            with self.subTest(family):
                output = self.path("family-" + family)
                result = self.liuli("train", "--family", family, "--d-model", "32", "--layers", "2", "--heads", "2",
                                    "--context", "64", "--data", self.data, "--tokenizer-kind", "characters", "--vocab-size",
                                    "400", "--steps", "30", "--batch", "4", "--length", "24", "--lr", "0.01", "-o", output, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertLess(json.loads(result.stdout)["loss"], 5)
                logits = self.liuli("logits", os.path.join(output, "model"), "--prompt", "春眠不觉", "-o", self.path("logits.safetensors"))
                self.assertEqual(logits.returncode, 0, logits.stderr)

    def test_threads_change_no_bit(self):
        one = self.train("one-thread", threads=1, dropout=0.1, accumulate=2)
        two = self.train("two-threads", threads=2, dropout=0.1, accumulate=2)
        self.assert_same_run(one, two)

    def test_blocks_formed_again_change_no_bit(self):
        self.assert_same_run(self.train("kept", dropout=0.1), self.train("formed-again", dropout=0.1, recompute=True))

    def test_products_in_bf16_learn_and_threads_change_no_bit(self):
        one = self.train("bf16-one-thread", threads=1, dropout=0.1, products="bf16")
        two = self.train("bf16-two-threads", "--products", "bf16", threads=2, dropout=0.1)
        self.assert_same_run(one, two)
        exact = self.train("f32-beside-bf16", threads=1, dropout=0.1)
        losses = [[line["loss"] for line in log_of(folder) if "loss" in line] for folder in (one, exact)]
        self.assertNotEqual(*losses)
        for rounded, whole in zip(*losses):
            self.assertAlmostEqual(rounded, whole, delta=0.05 * whole)

    def test_a_run_goes_on_with_the_products_it_began_with(self):
        options = ["--schedule", "constant", "--products", "bf16"]
        whole = self.train("bf16-whole", *options, steps=20)
        half = self.train("bf16-half", *options, steps=10)
        refused = self.liuli("train", "--resume", half, "--steps", "20", "--products", "f32")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--products f32: a run that is resumed keeps the products", refused.stderr)
        self.assertEqual(self.liuli("train", "--resume", half, "--steps", "20").returncode, 0)
        with open(os.path.join(half, "step-000020", "run.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["settings"]["products"], "bf16")
        with open(os.path.join(whole, "model/model.safetensors"), "rb") as a, \
                open(os.path.join(half, "model/model.safetensors"), "rb") as b:
            self.assertTrue(a.read() == b.read())

    def test_wrong_settings_are_named(self):
        for changes, message in [({"stepz": 5}, 'no setting "stepz"'), ({"steps": 0}, "steps is 0"),
                                 ({"sequence_length": 65}, "sequence_length is 65, the model's context 64"),
                                 ({"optimizer": "adamq"}, 'optimizer is "adamq"'), ({"products": "f16"}, 'products is "f16"'), ({"data": ["no.txt"]}, "no.txt: there is no"),
                                 ({"batch": "many"}, "batch")]:
            result = self.liuli("train", "--config", self.config("wrong", **changes))
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(message, result.stderr)
            self.assertEqual(len(result.stderr.strip().splitlines()[-1:]), 1)

    def test_a_run_is_not_begun_twice_in_one_folder(self):
        self.train("once")
        again = self.liuli("train", "--config", self.path("once.json"))
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("--resume", again.stderr)


class Folders(TrainCase):
    GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "tiny")

    def setUp(self):
        self.tokens = self.path("ids.npy")
        header = "{'descr': '<u2', 'fortran_order': False, 'shape': (200,), }".ljust(117) + "\n"
        with open(self.tokens, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.write(struct.pack("<200H", *(i * 7 % 30 for i in range(200))))

    def test_what_is_written_is_what_transformers_wrote(self):
        """A model that learns at rate 0 comes out as transformers saved it: names, shapes and bits."""
        for family in ["llama", "qwen2", "qwen3", "gemma3", "olmo2", "gpt2"]:
            with self.subTest(family):
                source = os.path.join(self.GOLDEN, family)
                changes = {"data": [self.tokens], "steps": 2, "sequence_length": 8, "learning_rate": {"peak": 0.0}}
                folder = self.train("same-" + family, model=source, **changes)
                written = tensors(os.path.join(folder, "model", "model.safetensors"))
                theirs = tensors(os.path.join(source, "model.safetensors"))
                bare = {name.removeprefix("transformer."): value for name, value in theirs.items()}
                self.assertEqual(set(written), set(bare) - ({"lm_head.weight"} - set(written)))
                for name in written:
                    if family == "gemma3" and "norm" in name:  # γ − 1 in the file, γ in memory: the last bit of 1 is lost
                        for ours, other in zip(floats(written[name]), floats(bare[name])):
                            self.assertAlmostEqual(ours, other, delta=1.2e-7)
                    else:
                        self.assertTrue(written[name] == bare[name], name)
                # From scratch, the same names and shapes.
                with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
                    config = json.load(file)
                fresh = self.train("fresh-" + family, model=config, **changes)
                made = tensors(os.path.join(fresh, "model", "model.safetensors"))
                self.assertEqual({name: value[0] for name, value in made.items()},
                                 {name: value[0] for name, value in written.items()})


class Stops(TrainCase):
    def start(self, *args, **options):
        return subprocess.Popen([LIULI, "train", *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)

    def test_killed_at_any_moment_a_run_goes_on_bit_for_bit(self):
        steps = {"steps": 400, "evaluate": {"every": 50, "windows": 4}, "checkpoint": {"every": 7, "keep": 2}, "dropout": 0.1}
        whole = self.train("whole", **steps)
        config, folder, lots = self.config("killed", **steps), self.path("killed"), random.Random(5)
        kills = 0
        while kills < KILLS:
            there = os.path.isdir(folder) and any(name.startswith("step-") for name in os.listdir(folder))
            process = self.start(*(["--resume", folder] if there else ["--config", config]))
            time.sleep(lots.uniform(0.02, 0.35))
            if process.poll() is not None:
                self.assertEqual(process.returncode, 0, process.stderr.read())
                # Finished before all the kills were used up: from the beginning, with what is left of them.
                self.assert_same_run(whole, folder)
                shutil.rmtree(folder)
                continue
            process.kill()
            process.wait()
            process.stderr.close()
            kills += 1
        there = any(name.startswith("step-") for name in os.listdir(folder))
        last = self.liuli("train", *(["--resume", folder] if there else ["--config", config]))
        self.assertEqual(last.returncode, 0, last.stderr)
        self.assert_same_run(whole, folder)
        self.assertEqual([name for name in os.listdir(folder) if name.endswith((".part", ".old"))], [])

    def test_ctrl_c_writes_a_checkpoint_and_says_how_to_go_on(self):
        whole = self.train("uninterrupted", steps=300, checkpoint={"every": 100})
        process = self.start("--config", self.config("interrupted", steps=300, checkpoint={"every": 100}))
        while not os.path.exists(self.path("interrupted/log.jsonl")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("liuli train --resume " + self.path("interrupted"), errors)
        self.assertEqual(self.liuli("train", "--resume", self.path("interrupted")).returncode, 0)
        with open(os.path.join(whole, "model/model.safetensors"), "rb") as a, \
                open(self.path("interrupted/model/model.safetensors"), "rb") as b:
            self.assertTrue(a.read() == b.read())

    def test_a_full_disk_is_an_error_and_the_run_goes_on_later(self):
        config = self.config("full", steps=30)

        def no_room():  # files end at 60 KB: a checkpoint's weights do not fit (EFBIG in place of ENOSPC)
            resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        result = self.liuli("train", "--config", config, preexec_fn=no_room, restore_signals=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("there is no checkpoint yet", result.stderr)
        self.assertFalse([name for name in os.listdir(self.path("full")) if "step-" in name])
        self.train("full", steps=30)
        grown = self.liuli("train", "--resume", self.path("full"), "--steps", "60", preexec_fn=no_room, restore_signals=False)
        self.assertNotEqual(grown.returncode, 0)
        self.assertIn("the last good checkpoint is " + self.path("full/step-000030"), grown.stderr)
        self.assertEqual(self.liuli("train", "--resume", self.path("full"), "--steps", "60").returncode, 0)

    def test_a_loss_that_is_no_number_names_the_first_point(self):
        result = self.liuli("train", "--config", self.config("nan", learning_rate={"peak": 1e22}, optimizer={"kind": "sgd", "clip": 0}))
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"first at \S.* at position \d+ of example \d+, value \d+ is (-?nan|-?inf)")
        self.assertIn("no weight was changed", result.stderr)

    def test_other_data_is_refused(self):
        folder = self.train("other-data")
        with open(self.path("second.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps({"text": "".join(POEMS)}, ensure_ascii=False) + "\n")
        run = os.path.join(folder, "step-000040", "run.json")
        with open(run, encoding="utf-8") as file:
            state = json.load(file)
        state["settings"]["data"] = [self.path("second.jsonl")]
        with open(run, "w", encoding="utf-8") as file:
            json.dump(state, file)
        result = self.liuli("train", "--resume", folder, "--steps", "50")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("the data is not what the run began with", result.stderr)


class Adapters(TrainCase):
    def test_adapters_learn_and_the_model_is_base_plus_their_product(self):
        base = os.path.join(self.train("base", steps=60), "model")
        folder = self.train("adapted", model=base, tokenizer=base, steps=20, checkpoint={"every": 7},
                            lora={"rank": 4, "alpha": 8, "targets": ["q", "v", "down"]})
        adapters = tensors(os.path.join(folder, "step-000020", "adapter_model.safetensors"))
        before, after = tensors(os.path.join(base, "model.safetensors")), tensors(os.path.join(folder, "model", "model.safetensors"))
        changed = {name for name in before if before[name] != after[name]}
        self.assertEqual(len(changed), 6)
        for name in changed:
            module = "base_model.model." + name.removesuffix(".weight")
            (r, d_in), a = adapters[module + ".lora_A.weight"][0], floats(adapters[module + ".lora_A.weight"])
            (d_out, _), b = adapters[module + ".lora_B.weight"][0], floats(adapters[module + ".lora_B.weight"])
            w, merged = floats(before[name]), floats(after[name])
            for o in range(d_out):
                for i in range(d_in):
                    expected = w[o * d_in + i] + 2 * sum(b[o * r + k] * a[k * d_in + i] for k in range(r))
                    self.assertAlmostEqual(merged[o * d_in + i], expected, delta=1e-5)
        with open(os.path.join(folder, "step-000020", "adapter_config.json"), encoding="utf-8") as file:
            config = json.load(file)
        self.assertEqual((config["r"], config["lora_alpha"], config["target_modules"]), (4, 8, ["down_proj", "q_proj", "v_proj"]))

    def test_adapters_go_on_bit_for_bit(self):
        base = os.path.join(self.train("base2", steps=20), "model")
        lora = {"model": base, "tokenizer": base, "lora": {"rank": 2, "alpha": 4, "targets": ["q_proj"]}}
        whole = self.train("lora-whole", steps=20, **lora)
        process = self.liuli("train", "--config", self.config("lora-half", steps=20, **lora), "--steps", "10", "--schedule", "constant")
        self.assertEqual(process.returncode, 0, process.stderr)
        half = self.train("lora-whole-constant", "--schedule", "constant", steps=20, **lora)
        self.assertEqual(self.liuli("train", "--resume", self.path("lora-half"), "--steps", "20").returncode, 0)
        with open(os.path.join(half, "model/model.safetensors"), "rb") as a, \
                open(self.path("lora-half/model/model.safetensors"), "rb") as b:
            self.assertTrue(a.read() == b.read())
        self.assertTrue(whole)


class Tokenizers(TrainCase):
    def test_a_vocabulary_takes_its_own_text_apart_and_together(self):
        for kind in ["qwen2", "gpt-2", "characters"]:
            with self.subTest(kind):
                folder = self.path("tokenizer-" + kind)
                result = self.liuli("train-tokenizer", self.data, "--kind", kind, "--vocab-size", "420", "-o", folder, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertLessEqual(json.loads(result.stdout)["vocab_size"], 420)
                with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["added_tokens"][0]["content"], "<|endoftext|>")

    def test_a_vocabulary_too_small_for_the_bytes_is_refused(self):
        result = self.liuli("train-tokenizer", self.data, "--vocab-size", "200", "-o", self.path("small"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("a vocabulary of 200 is too small", result.stderr)


if __name__ == "__main__":
    LIULI = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
