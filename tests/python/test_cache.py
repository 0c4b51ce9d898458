"""Names, lifetimes and the sums a cache answers with."""

import gc
import unittest

import liuli
import numpy as np
from support import GOLDEN, golden

IDS = [1, 52, 9, 133, 7, 301, 64, 2, 18]
SUMMING = ("llama", "gpt2", "gemma3", "olmo2", "qwen2", "qwen3")  # what is added is attn_out and mlp_out


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = liuli.Model.load(GOLDEN / "llama")
        cls.logits, cls.cache = cls.model.run_with_cache(IDS)

    def test_every_spelling_finds_the_same_array(self):
        full = self.cache["blocks.1.attn.pattern"]
        for key in ("blocks.1.attn.hook_pattern", ("pattern", 1), ("pattern", -1), ("pattern", 1, "attn"), "pattern1",
                    ("attn", 1), ("pattern", 1, "a")):
            self.assertIs(self.cache[key], full, key)
        self.assertIs(self.cache["scale", 1, "ln2"], self.cache["blocks.1.ln2.sigma"])
        self.assertIs(self.cache["scale1ln2"], self.cache["blocks.1.ln2.hook_scale"])
        self.assertIs(self.cache["scale"], self.cache["ln_final.sigma"])
        self.assertIs(self.cache["hook_embed"], self.cache["embed"])
        self.assertIs(self.cache["attn_out", 0], self.cache["blocks.0.attn_out"])
        self.assertIs(self.cache["pre", 0], self.cache["blocks.0.mlp.pre"])

    def test_filters_of_every_kind(self):
        expected = ["blocks.0.resid_post", "blocks.1.resid_post"]
        for names_filter in ("blocks.*.resid_post", "blocks.*.hook_resid_post", expected,
                             lambda name: name.endswith("hook_resid_post")):
            logits, cache = self.model.run_with_cache(IDS, names_filter=names_filter)
            self.assertEqual(list(cache), expected)
            np.testing.assert_array_equal(logits, self.logits)
        self.assertEqual(len(self.model.run_with_cache(IDS, names_filter=[])[1]), 0)

    def test_unknown_and_uncaptured_names_are_key_errors_that_help(self):
        with self.assertRaisesRegex(KeyError, "nearest: blocks.1.attn.pattern"):
            self.cache["blocks.1.attn.patern"]
        with self.assertRaisesRegex(KeyError, "was not captured"):
            self.model.run_with_cache(IDS, names_filter="embed")[1]["pattern", 0]
        self.assertIn(("pattern", 0), self.cache)
        self.assertNotIn(("pattern", 7), self.cache)

    def test_arrays_are_read_only_and_outlive_cache_and_model(self):
        model = liuli.Model.load(GOLDEN / "llama")
        cache = model.run_with_cache(IDS)[1]
        view = cache["pattern", 0][1, 2:]
        expected = view.copy()
        with self.assertRaises(ValueError):
            view[0, 0] = 1
        weight = model.W_Q[0]
        self.assertFalse(weight.flags.writeable)
        kept = weight.copy()
        del cache, model
        gc.collect()
        liuli.Model.load(GOLDEN / "llama").run_with_cache(IDS)
        np.testing.assert_array_equal(view, expected)
        np.testing.assert_array_equal(weight, kept)

    def test_dlpack_shares_the_memory(self):
        array = self.cache["resid_post", 0]
        shared = np.from_dlpack(array)
        self.assertEqual(shared.__array_interface__["data"][0], array.__array_interface__["data"][0])

    def test_stopping_early_gives_the_stream_and_nothing_behind_it(self):
        resid, cache = self.model.run_with_cache(IDS, stop_at_layer=1)
        np.testing.assert_array_equal(resid, self.cache["resid_pre", 1])
        self.assertEqual(list(cache)[-1], "blocks.0.resid_post")
        np.testing.assert_array_equal(self.model(IDS, stop_at_layer=-1), resid)
        np.testing.assert_array_equal(self.model(IDS, stop_at_layer=0), self.cache["resid_pre", 0])

    def test_a_capture_beyond_the_limit_is_refused(self):
        with self.assertRaisesRegex(MemoryError, "the limit is"):
            self.model.run_with_cache(IDS, max_bytes=1000)
        self.assertEqual(self.model.cache_bytes(9), self.cache.nbytes)


class Sums(unittest.TestCase):
    def each(self):
        for name in SUMMING:
            model = liuli.Model.load(GOLDEN / name, product_class="f32")
            logits, cache = model.run_with_cache(golden(name)["p1.input_ids"])
            with self.subTest(name):
                yield model, logits, cache

    def test_components_sum_to_the_stream(self):
        for model, _, cache in self.each():
            for layer in range(model.cfg.n_layers + 1):
                stream = cache["resid_post", -1] if layer == model.cfg.n_layers else cache["resid_pre", layer]
                scale = np.abs(stream).max()
                for stack in (cache.decompose_resid(layer), cache.get_full_resid_decomposition(layer),
                              cache.stack_head_results(layer, incl_remainder=True)):
                    np.testing.assert_allclose(stack.sum(axis=0) / scale, stream / scale, atol=2e-6)
                middle = cache.decompose_resid(layer, mlp_input=True) if layer < model.cfg.n_layers else None
                if middle is not None:
                    np.testing.assert_allclose(middle.sum(axis=0) / scale, cache["resid_mid", layer] / scale, atol=2e-6)

    def test_heads_sum_to_the_attention_output(self):
        for model, _, cache in self.each():
            for layer in range(model.cfg.n_layers):
                total = cache["result", layer].sum(axis=-2) + model.b_O[layer]
                scale = np.abs(total).max()
                np.testing.assert_allclose(total / scale, cache["attn_out", layer] / scale, atol=2e-6)

    def test_attributions_sum_to_the_logit(self):
        for model, logits, cache in self.each():
            token = 17
            stack, labels = cache.get_full_resid_decomposition(return_labels=True)
            self.assertEqual(len(labels), len(stack))
            total = cache.logit_attrs(stack, token).sum(axis=0)
            total = total + model.norm_bias("ln_final") @ model.tokens_to_residual_directions(token)
            np.testing.assert_allclose(total, logits[:, token], atol=1e-4)
            difference = cache.logit_attrs(stack, token, 3, pos_slice=None).sum(axis=0)
            beta = model.norm_bias("ln_final") @ (model.W_U[:, token] - model.W_U[:, 3])
            np.testing.assert_allclose(difference + beta, logits[:, token] - logits[:, 3], atol=1e-4)

    def test_a_norm_applied_to_the_whole_stream_is_the_norms_output(self):
        for model, _, cache in self.each():
            if not model.cfg.layers[0]["attn_norm_before"]:
                with self.assertRaises(liuli.UnsupportedError):  # OLMo 2 normalises outputs only
                    cache.apply_ln_to_stack(cache["resid_pre", 1][None], 1)
                continue
            out = cache.apply_ln_to_stack(cache["resid_pre", 1][None], 1)[0] + model.norm_bias("blocks.1.ln1")
            np.testing.assert_allclose(out, cache["blocks.1.ln1.out"], atol=1e-5)

    def test_the_lens_ends_at_the_logits(self):
        for model, logits, cache in self.each():
            lens, labels = cache.logit_lens(pos_slice=None, incl_mid=True, return_labels=True)
            self.assertEqual(labels[:3] + labels[-1:], ["0_pre", "0_mid", "1_pre", "final_post"])
            np.testing.assert_allclose(lens[-1], logits, atol=1e-4)

    def test_neurons_sum_to_the_mlp(self):
        for model, _, cache in self.each():
            total = cache.stack_neuron_results(0).sum(axis=0)
            if "blocks.0.ln2_post.sigma" not in cache:
                total = total + model.b_out[0]
            np.testing.assert_allclose(total, cache["mlp_out", 0], atol=1e-4)

    def test_positions_can_be_chosen_everywhere(self):
        for model, _, cache in self.each():
            for pos in (-1, (1, 4), slice(2, 3), [0, 2]):
                for name in ("accumulated_resid", "decompose_resid", "stack_head_results"):
                    whole, part = getattr(cache, name)(apply_ln=True), getattr(cache, name)(apply_ln=True, pos_slice=pos)
                    index = slice(*pos) if isinstance(pos, tuple) else pos
                    np.testing.assert_allclose(part, whole[:, index], atol=1e-4)


class WeightViews(unittest.TestCase):
    def test_weights_turn_what_goes_in_into_what_comes_out(self):
        for name in ("llama", "gpt2", "qwen2"):
            model = liuli.Model.load(GOLDEN / name, product_class="f32")
            logits, cache = model.run_with_cache(IDS)
            x, c = cache["blocks.1.ln1.out"], model.cfg
            with self.subTest(name):
                for part, n in (("Q", c.n_heads), ("K", c.n_key_value_heads), ("V", c.n_key_value_heads)):
                    w, b = getattr(model, f"W_{part}")[1], getattr(model, f"b_{part}")[1]
                    self.assertEqual(w.shape, (n, c.d_model, c.d_head))
                    np.testing.assert_allclose(np.einsum("pm,hmd->phd", x, w) + b, cache[part.lower(), 1], atol=1e-4)
                self.assertEqual(model.W_O[1].shape, (c.n_heads, c.d_head, c.d_model))
                h = cache["blocks.1.ln2.out"]
                first = model.W_gate if c.gated_mlp else model.W_in
                np.testing.assert_allclose(h @ first[1] + (0 if c.gated_mlp else model.b_in[1]), cache["pre", 1], atol=1e-4)
                np.testing.assert_allclose(cache["post", 1] @ model.W_out[1] + model.b_out[1], cache["mlp_out", 1], atol=1e-4)
                np.testing.assert_allclose(cache["ln_final.out"] @ model.W_U + model.b_U, logits, atol=1e-4)
                np.testing.assert_allclose(model.W_E[IDS] * c.embedding_scale, cache["embed"], atol=1e-6)
                self.assertEqual(np.asarray(model.W_in).shape, (c.n_layers, c.d_model, c.d_mlp))

    def test_an_unknown_weight_names_its_neighbours(self):
        model = liuli.Model.load(GOLDEN / "llama")
        with self.assertRaisesRegex(KeyError, "blocks.0.attn.q.weight"):
            model.weight("blocks.0.attn.W_Q")
        with self.assertRaises(IndexError):
            model.W_Q[2]


if __name__ == "__main__":
    unittest.main()
