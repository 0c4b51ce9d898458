"""Every stored number of every tiny model, through Python, from both file formats, by the table of names in point.cpp."""

import unittest

import liuli
import numpy as np
from support import ACTIVATIONS, GOLDEN, LOGITS, PATTERNS, files, golden

_NOT_POINTS = {"input_ids", "token_type_ids", "src_ids", "tgt_ids", "logits", "greedy", "greedy_gap", "loss",
               "loss_label_smoothing_0.1", "sentence"}


def our_name(name: str, model: liuli.Model) -> str:
    """The reference's name of a value as Liuli's; "" for what is not a point of this model."""
    if name in _NOT_POINTS or name.startswith(("grad.", "train.")):
        return ""
    if name == "last_hidden_state":
        return f"blocks.{model.cfg.n_layers - 1}.normalized_resid_post"
    if name == "pooler" and name not in model.point_names():
        return ""  # GGUF files of BERT leave it out
    if name.endswith(".scale"):
        return name[:-5] + "sigma"
    for theirs, ours in (("q_proj", "q"), ("k_proj", "k"), ("q", "rot_q"), ("k", "rot_k")):
        if name.endswith(".attn." + theirs):
            return name[:-len(theirs)] + ours
    return name


def largest_difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> float:
    if name.endswith("_normed") and theirs.shape == ours.shape[1::-1] + ours.shape[2:]:  # some store the heads first
        ours = ours.swapaxes(0, 1)
    return float(np.abs(ours.reshape(theirs.shape).astype(np.float64) - theirs).max())


class Golden(unittest.TestCase):
    def compare(self, model: liuli.Model, stored: dict, prefix: str, ids, **beside) -> int:
        named = {name: our_name(name[len(prefix):], model) for name in stored if name.startswith(prefix)}
        wanted = [ours for ours in named.values() if ours]
        logits, cache = model.run_with_cache(ids, names_filter=wanted, **beside)
        if f"{prefix}logits" in stored:
            self.assertLessEqual(np.abs(logits - stored[f"{prefix}logits"]).max(), LOGITS)
        for theirs, ours in named.items():
            if not ours:
                continue
            limit = PATTERNS if ours.endswith("pattern") else ACTIVATIONS
            self.assertLessEqual(largest_difference(ours, cache[ours], stored[theirs]), limit, theirs)
        return len(wanted)

    def test_every_stored_number_of_every_decoder_and_of_bert(self):
        names = sorted(path.parent.name for path in GOLDEN.glob("*/golden.safetensors"))
        names.remove("transformer2017")
        self.assertGreaterEqual(len(names), 20)
        for name in names:
            stored = golden(name)
            for path in files(name):
                model = liuli.Model.load(path, product_class="f32", threads=1)
                with self.subTest(file=str(path)):
                    compared = 0
                    for prompt in ("p0.", "p1."):
                        types = stored.get(f"{prompt}token_type_ids")
                        compared += self.compare(model, stored, prompt, stored[f"{prompt}input_ids"], token_types=types)
                    self.assertGreater(compared, 8)

    def test_every_stored_number_of_the_encoder_decoder(self):
        stored = golden("transformer2017")
        model = liuli.Model.load(GOLDEN / "transformer2017")
        self.assertGreater(self.compare(model, stored, "", stored["tgt_ids"], source=stored["src_ids"]), 50)

    def test_greedy_text_and_the_loss(self):
        for name in ("llama", "gpt2", "gemma3"):
            stored, model = golden(name), liuli.Model.load(GOLDEN / name)
            ids = stored["p0.input_ids"]
            sure = int(np.argmax(np.append(stored["p0.greedy_gap"] < 2 * LOGITS, True)))  # up to the first near tie
            new = model.generate(ids, len(stored["p0.greedy"]), return_type="tokens", stop_at_eos=False)
            np.testing.assert_array_equal(new[:sure], stored["p0.greedy"][:sure])
            self.assertGreater(sure, 0)
            self.assertAlmostEqual(model(ids, return_type="loss"), float(stored["p0.loss"][0]), delta=1e-4)


if __name__ == "__main__":
    unittest.main()
