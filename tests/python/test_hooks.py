"""Edits through hooks against the same edits done by NumPy; and what a hook may and may not do."""

import sys
import threading
import unittest

import liuli
import numpy as np
from numpy_llama import NumpyLlama
from support import GOLDEN

IDS = [1, 52, 9, 133, 7, 301, 64, 2, 18]
TOLERANCE = 1e-4


def put(index, value):
    def edit(v):
        v[index] = value
        return v

    return edit


def move_to_first_key(v):
    """Every query of head 1 looks only at position 0."""
    v[1] = 0
    v[1, :, 0] = 1
    return v


# name -> edits: ablate, steer, patch, re-weight, freeze.
EDITS = {
    "embed": put(3, 0.0), "blocks.0.resid_pre": lambda v: v * 1.5, "blocks.1.resid_pre": put((4, slice(0, 20)), 2.0),
    "blocks.0.attn.q": put((slice(None), 2), 0.25), "blocks.1.attn.k": put((slice(None), 1), 0.5),
    "blocks.0.attn.v": put((2, 0), 1.0), "blocks.0.attn.rot_q": lambda v: -v, "blocks.1.attn.rot_k": put(0, 0.0),
    "blocks.0.attn.attn_scores": put((3, slice(4, None), 1), 3.0), "blocks.0.attn.pattern": move_to_first_key,
    "blocks.1.attn.pattern": put((0, 5), 0.0), "blocks.0.attn.z": put((slice(None), 4), 0.0),
    "blocks.1.attn.z": lambda v: v + 0.5, "blocks.0.attn_out": lambda v: v * 0, "blocks.1.resid_mid": put(6, 1.0),
    "blocks.0.mlp.pre": lambda v: v + 1, "blocks.1.mlp.pre_linear": put((slice(None), 7), 2.0),
    "blocks.0.mlp.post": put((slice(None), slice(0, 64)), 0.0), "blocks.1.mlp_out": lambda v: v * 0,
    "blocks.0.resid_post": put(8, 0.3), "blocks.0.ln1.sigma": lambda v: v * 2, "blocks.1.ln1.normalized": put(2, 0.0),
    "blocks.1.ln2.out": lambda v: v * 0.5, "ln_final.sigma": lambda v: np.full_like(v, 1.25),
    "ln_final.scaled": put(1, 0.1), "logits": put((0, 3), 9.0),
}


class Edits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = liuli.Model.load(GOLDEN / "llama", product_class="f32")
        cls.numpy = NumpyLlama(cls.model)

    def check(self, edits):
        hooks = [(name, lambda value, hook, edit=edit: edit(value)) for name, edit in edits.items()]
        ours = self.model.run_with_hooks(IDS, hooks)
        theirs = self.numpy.forward(IDS, edits)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)
        return theirs

    def test_without_an_edit_both_agree(self):
        self.check({})

    def test_each_edit_gives_what_numpy_gives_and_changes_something(self):
        plain = self.numpy.forward(IDS, {})
        for name, edit in EDITS.items():
            with self.subTest(name):
                self.assertGreater(np.abs(self.check({name: edit}) - plain).max(), 1e-3)

    def test_edits_together(self):
        self.check({name: EDITS[name] for name in ("blocks.0.attn.z", "blocks.0.mlp.post", "blocks.1.attn.pattern",
                                                   "ln_final.sigma")})

    def test_the_quantised_twin_takes_edits_the_same_way(self):
        model = liuli.Model.load(GOLDEN / "llama" / "gguf" / "llama.Q8_0.gguf", product_class="f32")
        edits = {name: EDITS[name] for name in ("blocks.0.attn.z", "blocks.1.mlp_out")}
        ours = model.run_with_hooks(IDS, [(name, lambda v, hook, e=e: e(v)) for name, e in edits.items()])
        np.testing.assert_allclose(ours, NumpyLlama(model).forward(IDS, edits), rtol=0, atol=TOLERANCE)


class Manners(unittest.TestCase):
    def setUp(self):
        self.model = liuli.Model.load(GOLDEN / "llama")

    def test_a_hook_that_only_looks_changes_no_bit(self):
        seen = []
        logits = self.model.run_with_hooks(IDS, [(None, lambda value, hook: seen.append((hook.name, value)))])
        np.testing.assert_array_equal(logits, self.model(IDS))
        cache = self.model.run_with_cache(IDS)[1]
        self.assertEqual([name for name, _ in seen], list(cache))
        for name, value in seen:  # kept arrays are the hook's own
            np.testing.assert_array_equal(value, cache[name])

    def test_writing_in_place_counts_like_returning(self):
        def in_place(value, hook):
            value[:, 2] = 0

        def returned(value, hook):
            return np.where(np.arange(value.shape[1])[:, None] == 2, 0, value)

        a, b = (self.model.run_with_hooks(IDS, [("blocks.0.attn.hook_z", f)]) for f in (in_place, returned))
        np.testing.assert_array_equal(a, b)
        self.assertGreater(np.abs(a - self.model(IDS)).max(), 1e-3)

    def test_hook_says_where_it_is(self):
        where = []
        self.model.run_with_hooks(IDS, [("blocks.*.resid_pre", lambda v, hook: where.append((hook.layer(), v.shape)))])
        self.assertEqual(where, [(0, (9, 96)), (1, (9, 96))])

    def test_what_a_hook_raises_ends_the_run_and_the_model_still_works(self):
        def fail(value, hook):
            raise ZeroDivisionError(hook.name)

        with self.assertRaisesRegex(ZeroDivisionError, "blocks.1.attn_out"):
            self.model.run_with_hooks(IDS, [("blocks.1.attn_out", fail)])
        self.assertEqual(self.model(IDS).shape, (9, 347))

    def test_wrong_shapes_names_and_points_behind_the_end_are_errors(self):
        with self.assertRaisesRegex(ValueError, r"blocks.0.attn_out returned an array of shape \[3\], expected \[9, 96\]"):
            self.model.run_with_hooks(IDS, [("blocks.0.attn_out", lambda v, hook: np.zeros(3))])
        with self.assertRaisesRegex(KeyError, "nearest: blocks.0.attn_out"):
            self.model.run_with_hooks(IDS, [("blocks.0.atn_out", lambda v, hook: v)])
        with self.assertRaisesRegex(liuli.Error, "blocks.1.attn_out"):
            self.model.run_with_hooks(IDS, [("blocks.1.attn_out", lambda v, hook: v)], stop_at_layer=1)

    def test_a_hook_cannot_run_its_own_model(self):
        with self.assertRaisesRegex(liuli.InvalidArgumentError, "cannot run the model"):
            self.model.run_with_hooks(IDS, [("embed", lambda v, hook: self.model(IDS))])

    def test_hooks_work_in_generation_and_as_a_context(self):
        silence = [("blocks.*.mlp_out", lambda v, hook: v * 0)]
        plain = self.model.generate(IDS, 8, return_type="tokens", stop_at_eos=False)
        edited = self.model.generate(IDS, 8, return_type="tokens", stop_at_eos=False, fwd_hooks=silence)
        self.assertFalse(np.array_equal(plain, edited))
        by_hand = list(IDS)
        with self.model.hooks(silence):
            for _ in range(8):
                by_hand.append(int(self.model(by_hand)[-1].argmax()))
        np.testing.assert_array_equal(edited, by_hand[len(IDS):])
        np.testing.assert_array_equal(plain, self.model.generate(IDS, 8, return_type="tokens", stop_at_eos=False))

    def test_the_cache_of_a_run_with_hooks_holds_what_they_left(self):
        _, cache = self.model.run_with_cache(IDS, fwd_hooks=[("blocks.0.attn_out", lambda v, hook: v * 0)])
        self.assertEqual(np.abs(cache["attn_out", 0]).max(), 0)
        np.testing.assert_array_equal(cache["resid_mid", 0], cache["resid_pre", 0])

    def test_batch_dim_puts_a_one_in_front_of_everything(self):
        model = liuli.Model.load(GOLDEN / "llama", batch_dim=True)
        shapes = []

        def first_position(value, hook):
            shapes.append(value.shape)
            value[:, 0, :] = 0
            return value

        logits, cache = model.run_with_cache(IDS, fwd_hooks=[("blocks.0.hook_resid_pre", first_position)])
        self.assertEqual((shapes, logits.shape, cache["pattern", 1].shape), ([(1, 9, 96)], (1, 9, 347), (1, 6, 9, 9)))
        stack = cache.decompose_resid()
        np.testing.assert_allclose(cache.logit_attrs(stack, 5).shape, (5, 1, 9))

    def test_python_goes_on_while_the_engine_computes(self):
        model = liuli.Model.load(GOLDEN / "llama", product_class="f32", threads=1)
        tokens = list(range(1, 257)) * 2
        model(tokens)
        done = threading.Event()

        def work():
            for _ in range(8):
                model(tokens[:500])
            done.set()

        steps, thread = 0, threading.Thread(target=work)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # nobody is made to let go: only who releases the lock lets another thread run
        try:
            thread.start()
            while not done.is_set():
                steps += 1
                done.wait(0.0005)
            thread.join()
        finally:
            sys.setswitchinterval(before)
        self.assertGreater(steps, 16, "the engine held the interpreter's lock")

    def test_threads_wait_for_each_other_and_get_the_same(self):
        expected, results = self.model(IDS), []
        threads = [threading.Thread(target=lambda: results.append(self.model(IDS))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 4)
        for result in results:
            np.testing.assert_array_equal(result, expected)


if __name__ == "__main__":
    unittest.main()
