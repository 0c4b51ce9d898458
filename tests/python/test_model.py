"""Loading, text, generation, and the program's own capture beside Python's."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import liuli
import numpy as np
from support import GOLDEN, golden, read_safetensors, smollm2


class Loading(unittest.TestCase):
    def test_config_has_transformer_lens_names(self):
        llama, gpt2 = liuli.Model.load(GOLDEN / "llama").cfg, liuli.Model.load(GOLDEN / "gpt2").cfg
        self.assertEqual((llama.n_layers, llama.d_model, llama.n_heads, llama.n_key_value_heads, llama.d_head, llama.d_mlp,
                          llama.d_vocab, llama.act_fn, llama.normalization_type, llama.positional_embedding_type),
                         (2, 96, 6, 2, 16, 128, 347, "silu", "RMS", "rotary"))
        self.assertEqual((gpt2.act_fn, gpt2.normalization_type, gpt2.positional_embedding_type, gpt2.gated_mlp),
                         ("gelu_new", "LN", "standard", False))

    def test_errors_are_both_ours_and_pythons(self):
        with self.assertRaises(FileNotFoundError) as raised:
            liuli.Model.load("no/such/model.gguf")
        self.assertIsInstance(raised.exception, liuli.Error)
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            file.write(b"GGUF but not really")
            file.flush()
            with self.assertRaises(liuli.CorruptFileError):
                liuli.Model.load(file.name)
        model = liuli.Model.load(GOLDEN / "llama")
        for bad in ([], [-1], [347], [1.5], np.zeros((2, 3), int)):
            with self.assertRaises(ValueError):
                model(bad)
        with self.assertRaises(MemoryError):
            model([1] * 600)
        with self.assertRaisesRegex(ValueError, "product_class"):
            liuli.Model.load(GOLDEN / "llama", product_class="f16")


class Package(unittest.TestCase):
    def test_types_are_installed_beside_the_code(self):
        folder = Path(liuli.__file__).parent
        self.assertTrue((folder / "py.typed").exists())
        stub = (folder / "_core.pyi").read_text()
        for name in ("class Model", "def trace(", "def generate(", "def load("):
            self.assertIn(name, stub)

    def test_every_public_method_says_what_it_does(self):
        for owner in (liuli.Model, type(liuli.Model.load(GOLDEN / "llama").run_with_cache([1, 2])[1])):
            for name in dir(owner):
                member = getattr(owner, name)
                if not name.startswith("_") and callable(member) and member.__module__.startswith("liuli"):
                    self.assertTrue(member.__doc__, f"{owner.__name__}.{name}")


class RealModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = liuli.Model.load(smollm2())

    def test_text_becomes_tokens_and_text_again(self):
        text = "The capital of France is"
        ids = self.model.to_tokens(text)
        self.assertEqual(self.model.to_string(ids), text)
        self.assertEqual("".join(self.model.to_str_tokens(text)), text)
        self.assertEqual(self.model.to_str_tokens([self.model.to_single_token(" Paris")]), [" Paris"])
        self.assertEqual(len(self.model.to_tokens(text, prepend_bos=True)), len(ids) + 1)
        with self.assertRaisesRegex(ValueError, "tokens"):
            self.model.to_single_token("two words")

    def test_it_knows_the_capital_in_every_way_of_asking(self):
        prompt = "The capital of France is"
        logits, cache = self.model.run_with_cache(prompt, names_filter=["resid_post29", "embed"])
        self.assertEqual(self.model.to_string([logits[-1].argmax()]), " Paris")
        self.assertTrue(self.model.generate(prompt, 3).startswith(" Paris"))
        self.assertEqual("".join(self.model.stream(prompt, 8)), self.model.generate(prompt, 8))
        self.assertIn("Paris", self.model.chat("What is the capital of France?", 30))
        self.assertEqual(self.model.generate(prompt, 20, stop="."), self.model.generate(prompt, 20).split(".")[0])

    def test_leaving_a_stream_stops_it(self):
        stream = self.model.stream("Once upon a time", 2000)
        self.assertTrue(next(stream))
        stream.close()
        self.assertTrue(self.model.generate("Once", 1))  # the engine is free again

    def test_seeds_repeat(self):
        def sample(seed):
            return self.model.generate("Once upon a time", 12, temperature=1.0, seed=seed)

        self.assertEqual(sample(3), sample(3))
        self.assertGreater(len({sample(seed) for seed in range(4)}), 1)

    def test_texts_become_vectors(self):
        cat, kitten, tax = self.model.embed(["A cat sat on the mat.", "A kitten sat on a rug.", "Tax law, section 4."])
        self.assertGreater(cat @ kitten, cat @ tax)
        self.assertAlmostEqual(float(cat @ cat), 1, places=4)


class BesideTheProgram(unittest.TestCase):
    """`liuli trace` and Python hold the same bits."""

    def test_every_point_of_several_families(self):
        program = os.environ["LIULI_PROGRAM"]
        for name in ("llama", "gpt2", "gemma3", "mixtral", "deepseek_v3"):
            path = str(GOLDEN / name)
            ids = golden(name)["p0.input_ids"]
            cache = liuli.Model.load(path).run_with_cache(ids)[1]
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                output = str(Path(folder) / "trace.safetensors")
                subprocess.run([program, "trace", path, "--ids", ",".join(map(str, ids)), "--points", "*", "-o", output],
                               check=True, capture_output=True)
                written = read_safetensors(output)
                self.assertEqual(list(written), list(cache))
                for point, value in written.items():
                    np.testing.assert_array_equal(value, cache[point], point)


if __name__ == "__main__":
    unittest.main()
