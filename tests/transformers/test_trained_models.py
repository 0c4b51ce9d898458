"""A model trained here, in transformers and in the rest of the program.

    test_trained_models.py LIULI [TestCase.test …]
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

LIULI = "liuli"
FAMILIES = ["llama", "qwen2", "olmo2", "gpt2"]  # those that this version of transformers knows as well
POEMS = ["静夜思\n床前明月光，疑是地上霜。\n举头望明月，低头思故乡。", "春晓\n春眠不觉晓，处处闻啼鸟。\n夜来风雨声，花落知多少。",
         "相思\n红豆生南国，春来发几枝。\n愿君多采撷，此物最相思。"]
TEXT = "春眠不觉晓，处处闻啼鸟。\nFew 人 knew: 床前明月光"  # also what the vocabulary writes as bytes


def logits_in(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    entry = header["logits"]
    return np.frombuffer(data[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])


class TrainedModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = tempfile.mkdtemp(prefix="liuli-transformers-")
        with open(cls.path("poems.jsonl"), "w", encoding="utf-8") as file:
            for poem in POEMS * 4:
                file.write(json.dumps({"text": poem}, ensure_ascii=False) + "\n")
        cls.models = {family: cls.train(family) for family in FAMILIES}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def liuli(cls, *args):
        result = subprocess.run([LIULI, *args], capture_output=True, text=True, timeout=120)
        if result.returncode != 0:
            raise AssertionError(f"liuli {args[0]}: {result.stderr}")
        return result.stdout

    @classmethod
    def train(cls, family):
        kind = {"qwen2": "qwen2", "gpt2": "gpt-2"}.get(family, "characters")
        cls.liuli("train", "--family", family, "--d-model", "48", "--layers", "2", "--heads", "4", "--context", "64",
                  "--data", cls.path("poems.jsonl"), "--tokenizer-kind", kind, "--vocab-size", "400", "--steps", "20",
                  "--batch", "4", "--length", "24", "--lr", "0.01", "--threads", "1", "-o", cls.path(family))
        return os.path.join(cls.path(family), "model")

    def test_transformers_gives_the_same_ids_and_logits(self):
        for family, folder in self.models.items():
            with self.subTest(family):
                theirs, info = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, output_loading_info=True)
                self.assertEqual({key: value for key, value in info.items() if value}, {})  # no key missing, none unexpected
                tokenizer = AutoTokenizer.from_pretrained(folder)
                ids = tokenizer(TEXT).input_ids
                self.assertEqual(json.loads(self.liuli("tokenize", folder, TEXT, "--json"))["ids"], ids)
                self.assertEqual(tokenizer.decode(ids), TEXT)
                self.liuli("logits", folder, "--raw", "--prompt", TEXT, "--threads", "1", "-o", self.path("l.safetensors"))
                ours = logits_in(self.path("l.safetensors"))
                with torch.no_grad():
                    expected = theirs.eval()(torch.tensor([ids])).logits[0].numpy()
                self.assertEqual(ours.shape, expected.shape)
                self.assertGreater(np.abs(expected).max(), 1)  # it learned something
                np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5 * np.abs(expected).max())

    def test_run_trace_and_tour_open_it(self):
        for family, folder in self.models.items():
            with self.subTest(family):
                prompt = ["--prompt", "春眠"]
                answer = self.liuli("run", folder, "--raw", "春眠", "-n", "8", "--temperature", "0", "--no-report", "--threads", "1")
                self.assertTrue(answer.strip())
                self.liuli("trace", folder, "--raw", *prompt, "--points", "blocks.*.resid_post", "-o", self.path("t.safetensors"))
                self.assertGreater(os.path.getsize(self.path("t.safetensors")), 4 * 2 * 48 * 2)
                explained = self.liuli("explain", folder, "--raw", *prompt, "--at", "blocks.1.mlp.post[1,3]", "--lang", "en")
                self.assertIn("agrees", explained)
                self.liuli("tour", folder, "春眠", "-o", self.path("tour.html"))
                with open(self.path("tour.html"), encoding="utf-8") as file:
                    self.assertIn("春", file.read())


if __name__ == "__main__":
    LIULI = os.path.abspath(sys.argv.pop(1))
    unittest.main()
