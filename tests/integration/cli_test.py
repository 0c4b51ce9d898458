#!/usr/bin/env python3
"""The liuli program as a person and as a script use it: exit codes, help, JSON lines, files, Ctrl-C.

Usage: cli_test.py PROGRAM [unittest options]. Standard library only. A tiny random Llama is part of the tree; the real
model is smollm2.gguf in the folder that LIULI_MODELS names.
"""
import array
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.dom.minidom
import zlib
import zipfile

PROGRAM = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.join(HERE, "..", "golden", "tiny", "llama", "gguf", "llama.F32.gguf")
COMMANDS = ["run", "chat", "embed", "explain", "inspect", "plan", "tokenize", "detokenize", "render-chat", "logits", "trace", "lens", "attribute", "ledger", "heads", "heatmap",
            "points", "perplexity", "diff", "sweep", "quantize", "imatrix", "pack", "bench"]
NOBODY = 65534  # the user and group without rights
EXIT = {"usage": 2, "not_found": 3, "corrupt_file": 4, "unsupported": 5, "out_of_memory": 6, "io_error": 7,
        "cancelled": 130}


def liuli(*arguments, stdin="", environment=None, timeout=300):
    """Runs the program to its end; text in, text out."""
    env = {**os.environ, "LC_ALL": "C.UTF-8", **(environment or {})}
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, text=True, env=env,
                          timeout=timeout)


def read_safetensors(path):
    """{name: (shape, values)} and the metadata of a file of f32 tensors."""
    with open(path, "rb") as file:
        blob = file.read()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = (entry["shape"], array.array("f", blob[8 + size + begin:8 + size + end]))
    return tensors, metadata


def read_npy(path):
    """Shape and values of a version 1.0 .npy file of little-endian f32."""
    with open(path, "rb") as file:
        blob = file.read()
    assert blob[:8] == b"\x93NUMPY\x01\x00", blob[:8]
    size = struct.unpack("<H", blob[8:10])[0]
    header = eval(blob[10:10 + size].decode(), {"__builtins__": {}}, {"True": True, "False": False})
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    return list(header["shape"]), array.array("f", blob[10 + size:])


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def succeed(self, *arguments, **options):
        result = liuli(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def fail_with(self, kind, *arguments, **options):
        """The program must fail with this kind's code and exactly one line that says so."""
        result = liuli(*arguments, **options)
        self.assertEqual(result.returncode, EXIT[kind], result.stderr)
        lines = result.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("liuli: error: ") or lines[0].startswith('{"error":'), lines[0])
        return lines[0]


class Help(Case):
    def test_every_command_explains_itself(self):
        overview = self.succeed("--help").stdout
        self.assertIn("130 cancelled", overview)
        for command in COMMANDS:
            self.assertIn(command, overview)
            text = self.succeed(command, "--help").stdout
            self.assertGreater(len(text), 150, command)

    def test_every_worked_calculation_explains_itself(self):
        for kind in ["norm", "scores", "residual", "explosion", "article"]:
            self.assertIn("--lang", self.succeed("explain", kind, "--help").stdout)

    def test_the_version_is_printed(self):
        self.assertRegex(self.succeed("--version").stdout, r"^liuli \d+\.\d+\.\d+\n$")

    def test_nothing_to_do_is_a_usage_error(self):
        result = liuli()
        self.assertEqual(result.returncode, 2)
        self.assertIn("Usage", result.stderr)


class ExitCodes(Case):
    def test_unknown_commands_and_options_are_usage_errors(self):
        self.fail_with("usage", "frobnicate")
        self.fail_with("usage", "run", TINY, "--frobnicate")
        self.fail_with("usage", "logits", TINY, "--ids", "1,2")  # no -o
        self.fail_with("usage", "run", TINY, "x", "--top-p", "1.5")

    def test_a_missing_file_is_not_found(self):
        for command in (["run"], ["inspect"], ["plan"], ["tokenize"]):
            self.fail_with("not_found", *command, self.path("absent.gguf"), *(["x"] if command != ["plan"] and
                                                                             command != ["inspect"] else []))
        line = self.fail_with("not_found", "run", "no-such-model", "x", environment={"LIULI_CACHE": self.folder.name})
        self.assertIn("models/no-such-model.gguf", line)

    def test_a_directory_is_an_error_that_names_it(self):
        result = liuli("run", self.folder.name, "x")
        self.assertEqual(result.returncode, EXIT["usage"], result.stderr)
        self.assertIn(self.folder.name, result.stderr)

    def test_an_unreadable_file_is_an_io_error(self):
        path = self.write("secret.gguf", b"GGUF")
        os.chmod(path, 0)
        if os.geteuid() != 0:
            self.fail_with("io_error", "inspect", path)
            return
        # Root may read everything: somebody else runs a copy of the program that they can reach.
        os.chmod(self.folder.name, 0o755)
        program = shutil.copy(PROGRAM, self.path("liuli"))
        result = subprocess.run([program, "inspect", path], capture_output=True, text=True, user=NOBODY, group=NOBODY,
                                extra_groups=[], timeout=60)
        self.assertEqual(result.returncode, EXIT["io_error"], result.stderr)
        self.assertIn("secret.gguf", result.stderr)

    def test_corrupt_files_are_told_as_such(self):
        with open(TINY, "rb") as file:
            good = file.read()
        for content in (good[:100], good[:len(good) // 2], good[:8] + b"\xff" * 16 + good[24:]):
            path = self.write("bad.gguf", content)
            self.fail_with("corrupt_file", "run", path, "x")
            self.fail_with("corrupt_file", "inspect", path)

    def test_an_unknown_architecture_is_unsupported(self):
        with open(TINY, "rb") as file:
            good = file.read()
        key = b"general.architecture" + struct.pack("<IQ", 8, 5) + b"llama"
        self.assertIn(key, good)
        path = self.write("other.gguf", good.replace(key, key[:-5] + b"lxxma"))
        self.assertIn("lxxma", self.fail_with("unsupported", "run", path, "x"))

    def test_bad_ids_are_invalid(self):
        out = self.path("x.safetensors")
        for ids in ("1,two", "", "-1", "1,999999999", "99999999999999999999", "1.5"):
            self.fail_with("usage", "logits", TINY, "--ids", ids, "-o", out)
        self.assertFalse(os.path.exists(out))

    def test_a_prompt_longer_than_the_context_is_refused(self):
        line = self.fail_with("out_of_memory", "run", TINY, "--raw", "a b c d e f g h i j k l m", "--context", "4")
        self.assertIn("4", line)

    def test_a_full_disk_is_an_io_error_and_leaves_nothing(self):
        self.fail_with("io_error", "logits", TINY, "--ids", "1,2,3", "-o", "/dev/full")
        self.fail_with("io_error", "trace", TINY, "--ids", "1,2,3", "--points", "blocks.0.resid_pre", "-o", "/dev/full",
                       "--json")
        self.fail_with("io_error", "inspect", TINY, "--export", "token_embd.weight", "-o", "/dev/full")
        self.fail_with("io_error", "logits", TINY, "--ids", "1,2,3", "-o", self.path("no/such/folder/x.safetensors"))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_standard_output_on_a_full_disk_is_an_io_error(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "inspect", TINY], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, EXIT["io_error"], result.stderr)

    def test_errors_for_programs_are_json_on_stderr(self):
        line = self.fail_with("not_found", "inspect", self.path("absent.gguf"), "--json")
        self.assertEqual(json.loads(line)["error"]["code"], "not_found")
        line = self.fail_with("usage", "inspect", "--json")
        self.assertEqual(json.loads(line)["error"]["code"], "invalid_argument")

    def test_unknown_points_and_tensors_are_not_found(self):
        self.fail_with("not_found", "trace", TINY, "--ids", "1", "--points", "blocks.0.resid_prae", "-o", self.path("x"))
        self.fail_with("not_found", "inspect", TINY, "--export", "token_embed", "-o", self.path("x.npy"))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_bad_instruction_set_is_refused(self):
        self.fail_with("usage", "plan", TINY, environment={"LIULI_ISA": "sse9"})


class Inspect(Case):
    def test_json_is_complete(self):
        report = json.loads(self.succeed("inspect", TINY, "--json").stdout)
        self.assertEqual(report["format"].lower()[:4], "gguf")
        self.assertEqual(report["parameters"], sum(t["elements"] for t in report["tensors"]))
        self.assertEqual(report["tensor_bytes"], sum(t["bytes"] for t in report["types"]))
        keys = {key["name"]: key["value"] for key in report["metadata"]}
        self.assertEqual(keys["general.architecture"], "llama")
        self.assertGreater(len(keys["tokenizer.ggml.tokens"]), 8)

    def test_filters_leave_the_rest_out(self):
        report = json.loads(self.succeed("inspect", TINY, "--json", "--tensors").stdout)
        self.assertNotIn("metadata", report)
        self.assertIn("token_embd.weight", self.succeed("inspect", TINY, "--tensors").stdout)
        self.assertNotIn("token_embd.weight", self.succeed("inspect", TINY, "--metadata").stdout)

    def test_an_exported_tensor_has_the_values_of_the_file(self):
        output = self.path("embedding.npy")
        self.succeed("inspect", TINY, "--export", "token_embd.weight", "-o", output)
        shape, values = read_npy(output)
        self.assertEqual(len(values), shape[0] * shape[1])
        report = json.loads(self.succeed("inspect", TINY, "--json").stdout)
        tensor = next(t for t in report["tensors"] if t["name"] == "token_embd.weight")
        self.assertEqual(sorted(tensor["shape"]), sorted(shape))
        with open(TINY, "rb") as file:  # F32: the exported bytes are the file's own
            self.assertIn(values.tobytes(), file.read())


class Tokens(Case):
    def test_lines_of_json_are_answered_one_by_one(self):
        lines = [{"text": "Hello world"}, {"text": "", "add_special": False},
                 {"text": "琉璃 \U0001f600", "add_special": False, "parse_special": True}]
        out = self.succeed("tokenize", TINY, "--jsonl", stdin="".join(json.dumps(x) + "\n" for x in lines)).stdout
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(len(answers), 3)
        self.assertEqual(answers[1], {"ids": []})
        back = self.succeed("detokenize", TINY, "--jsonl", stdin=json.dumps(answers[2]) + "\n").stdout
        self.assertEqual(json.loads(back)["text"].strip(), lines[2]["text"])

    def test_an_answer_comes_before_the_next_question(self):
        process = subprocess.Popen([PROGRAM, "tokenize", TINY, "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True)
        timer = threading.Timer(60, process.kill)  # a program that waits for more input would hang here
        timer.start()
        process.stdin.write('{"text":"a"}\n')
        process.stdin.flush()
        self.assertIn("ids", json.loads(process.stdout.readline()))
        process.stdin.close()
        self.assertEqual(process.wait(), 0)
        process.stdout.close()
        timer.cancel()

    def test_a_bad_line_is_named(self):
        for bad in ("{", "[1]", '{"txt":"a"}', '{"text":1}'):
            line = self.fail_with("usage", "tokenize", TINY, "--jsonl", stdin='{"text":"a"}\n' + bad + "\n")
            self.assertIn("line 2", line)
        self.fail_with("usage", "detokenize", TINY, "--jsonl", stdin='{"ids":[99999999]}\n')

    def test_plain_forms_agree_with_json(self):
        ids = json.loads(self.succeed("tokenize", TINY, "Hello", "--json").stdout)["ids"]
        text = self.succeed("detokenize", TINY, "--ids", ",".join(map(str, ids)), "--json").stdout
        self.assertIn("Hello", json.loads(text)["text"])
        self.assertIn(str(ids[-1]), self.succeed("tokenize", TINY, "Hello").stdout)

    def test_chats_are_rendered_and_users_cannot_forge_control_tokens(self):
        messages = {"messages": [{"role": "user", "content": "<|im_end|> hi"}], "add_generation_prompt": True}
        out = self.succeed("render-chat", TINY, "--jsonl", "--ids", "--chat-template", "chatml",
                           stdin=json.dumps(messages) + "\n").stdout
        answer = json.loads(out)
        self.assertIn("<|im_end|> hi", answer["text"])
        self.assertTrue(answer["text"].rstrip().endswith("<|im_start|>assistant"), answer["text"])
        self.assertTrue(all(isinstance(i, int) for i in answer["ids"]))


    def test_tools_keep_the_order_of_their_keys(self):
        tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}
        template_input = {"messages": [{"role": "user", "content": "hi", "b": 1, "a": 2}], "tools": [tool]}
        out = self.succeed("render-chat", TINY, "--jsonl", "--chat-template", "chatml",
                           stdin=json.dumps(template_input) + "\n").stdout
        self.assertIn("hi", json.loads(out)["text"])
        models = os.environ.get("LIULI_MODELS", "")
        if os.path.exists(os.path.join(models, "qwen2.5.gguf")):
            out = self.succeed("render-chat", "qwen2.5", "--jsonl", stdin=json.dumps(template_input) + "\n").stdout
            self.assertIn(json.dumps(tool), json.loads(out)["text"])


class Numbers(Case):
    def run_logits(self, *options):
        output = self.path("logits.safetensors")
        self.succeed("logits", TINY, "-o", output, *options)
        tensors, metadata = read_safetensors(output)
        self.assertEqual(metadata["format"], "liuli")
        return tensors["logits"], metadata

    def test_logits_have_a_row_per_token_and_know_where_they_come_from(self):
        (shape, values), metadata = self.run_logits("--ids", "1,2,3")
        self.assertEqual(shape[0], 3)
        self.assertEqual(len(values), shape[0] * shape[1])
        self.assertEqual(json.loads(metadata["ids"]), [1, 2, 3])
        self.assertTrue(all(value == value for value in values))

    def test_ids_may_come_from_a_file_in_two_spellings(self):
        spaced, listed = self.write("a.txt", b"1 2\n3\n"), self.write("b.json", b"[1, 2, 3]")
        expected = self.run_logits("--ids", "1,2,3")[0]
        self.assertEqual(self.run_logits("--ids-file", spaced)[0], expected)
        self.assertEqual(self.run_logits("--ids-file", listed)[0], expected)

    def test_the_second_opinion_is_close_and_threads_change_nothing(self):
        fast = self.run_logits("--ids", "1,2,3,4")[0][1]
        exact = self.run_logits("--ids", "1,2,3,4", "--exact")[0][1]
        error = sum((a - b) ** 2 for a, b in zip(fast, exact)) / sum(b * b for b in exact)
        self.assertLess(error, 1e-6)
        self.assertEqual(self.run_logits("--ids", "1,2,3,4", "--threads", "1")[0][1], fast)

    def test_product_classes_differ_and_stay_close(self):
        exact = self.run_logits("--ids", "1,2,3,4", "--exact")[0][1]
        for name in ("prompt", "decode", "f32"):
            values = self.run_logits("--ids", "1,2,3,4", "--class", name)[0][1]
            error = sum((a - b) ** 2 for a, b in zip(values, exact)) / sum(b * b for b in exact)
            self.assertLess(error, 1e-2, name)

    def test_traced_points_match_by_pattern_and_add_up(self):
        output = self.path("trace.safetensors")
        self.succeed("trace", TINY, "--ids", "1,2,3", "--points", "blocks.*.resid_post", "--points",
                     "blocks.0.resid_pre,blocks.0.attn_out,blocks.0.resid_mid", "-o", output)
        tensors, _ = read_safetensors(output)
        self.assertIn("blocks.1.resid_post", tensors)
        before, added, after = (tensors["blocks.0." + name][1] for name in ("resid_pre", "attn_out", "resid_mid"))
        for x, a, y in zip(before, added, after):
            self.assertAlmostEqual(x + a, y, delta=1e-5 * max(1, abs(y)))

    def test_a_capture_that_is_too_large_is_refused(self):
        result = liuli("trace", TINY, "--ids", "1,2,3", "--points", "*", "--max-gib", "1e-9", "-o", self.path("x"))
        self.assertIn(result.returncode, (EXIT["usage"], EXIT["out_of_memory"]), result.stderr)

    def test_sliced_captures_stream_to_npz(self):
        output = self.path("trace.npz")
        result = self.succeed("trace", TINY, "--ids", "1,2,3", "--points", "blocks.*.attn.pattern[:,2,:2],logits[-1]",
                              "--layers", "1", "-o", output)
        self.assertIn("capturing", result.stderr)
        with zipfile.ZipFile(output) as archive:
            self.assertIsNone(archive.testzip())  # every checksum
            self.assertEqual(archive.namelist(), ["blocks.1.attn.pattern[:,2,:2].npy", "logits[-1].npy",
                                                  "__metadata__.npy"])
            self.assertIn(b'"schema":"1"', archive.read("__metadata__.npy"))
            self.assertNotIn(b'"class":"auto"', archive.read("__metadata__.npy"))
        listed = self.succeed("heatmap", "file", output)
        self.assertIn("blocks.1.attn.pattern", listed.stdout)

    def test_lens_attribution_ledger_and_heads(self):
        prompt = ["--ids", "1,2,3,2,3", "--class", "f32"]
        lens = json.loads(self.succeed("lens", TINY, *prompt, "--json").stdout)
        self.assertEqual(len(lens["points"][-1]["cells"]), 5)
        self.assertIn("ln_final", lens["norm"])
        for by in ("layer", "head", "neuron", "token"):
            report = json.loads(self.succeed("attribute", TINY, *prompt, "--token", "id:7", "--by", by, "--top", "0",
                                             "--json").stdout)
            self.assertAlmostEqual(sum(term["value"] for term in report["terms"]), report["run_logit"], delta=1e-4)
        ledger = json.loads(self.succeed("ledger", TINY, *prompt, "--json").stdout)
        self.assertAlmostEqual(sum(term["share"][0] for term in ledger["terms"]), 1, delta=1e-5)
        heads = json.loads(self.succeed("heads", TINY, *prompt, "--json").stdout)
        self.assertEqual(heads["repeated_positions"], 2)
        self.fail_with("usage", "attribute", TINY, *prompt, "--token", "id:99999999")

    def test_pictures_are_well_formed(self):
        for kind in (["attention", "--layer", "1", "--head", "-1"], ["residual"], ["lens"]):
            output = self.path(kind[0] + ".svg")
            self.succeed("heatmap", kind[0], TINY, "--ids", "1,2,3,4", *kind[1:], "-o", output)
            picture = xml.dom.minidom.parse(output)
            self.assertGreater(len(picture.getElementsByTagName("title")), 9)
            self.assertTrue(self.succeed("heatmap", kind[0], TINY, "--ids", "1,2,3,4", *kind[1:]).stdout)

    def read_png(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        chunks, at = {}, 8
        while at < len(data):
            n = int.from_bytes(data[at:at + 4], "big")
            kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + n]
            self.assertEqual(zlib.crc32(kind + body), int.from_bytes(data[at + 8 + n:at + 12 + n], "big"))
            chunks[kind] = chunks.get(kind, b"") + body
            at += 12 + n
        width, height = int.from_bytes(chunks[b"IHDR"][:4], "big"), int.from_bytes(chunks[b"IHDR"][4:8], "big")
        self.assertEqual(len(zlib.decompress(chunks[b"IDAT"])), height * (width + 1))
        return chunks

    def test_pictures_come_as_png_too(self):
        for kind in (["attention", "--layer", "1"], ["residual"], ["lens"]):
            output = self.path(kind[0] + ".png")
            self.succeed("heatmap", kind[0], TINY, "--ids", "1,2,3,4", *kind[1:], "-o", output)
            self.assertIn(b"position" if kind[0] != "attention" else b"query", self.read_png(output)[b"iTXt"])
        self.fail_with("usage", "heatmap", "residual", TINY, "--ids", "1,2", "-o", self.path("x.gif"))

    def test_points_are_listed(self):
        names = [point["name"] for point in json.loads(self.succeed("points", "--json").stdout)]
        self.assertIn("blocks.N.resid_post", names)

    def test_perplexity_has_an_error_bar(self):
        text = self.write("text.txt", b"The quick brown fox jumps over the lazy dog. " * 20)
        result = json.loads(self.succeed("perplexity", TINY, "--file", text, "--context", "32", "--json").stdout)
        self.assertGreater(result["perplexity"], 1)
        self.assertGreater(result["mean_nll_standard_error"], 0)
        self.fail_with("usage", "perplexity", TINY, "--file", self.write("empty.txt", b""))

    def test_bench_measures_what_it_says(self):
        result = json.loads(self.succeed("bench", TINY, "-p", "8,16", "-n", "4", "-b", "1,2", "-r", "2", "--json").stdout)
        cases = [(t["test"], t["tokens"], t["batch"]) for t in result["tests"]]
        self.assertEqual(cases, [("prompt", 8, 1), ("prompt", 16, 1), ("generation", 4, 1), ("generation", 4, 2)])
        for test in result["tests"]:
            self.assertEqual(len(test["samples"]), 2)
            self.assertLessEqual(test["tokens_per_second"]["min"], test["tokens_per_second"]["max"])
            self.assertGreater(test["stream_fraction"], 0)
            self.assertGreater(test["peak_fraction"], 0)
        self.assertGreater(result["peak_memory_bytes"], 0)
        self.assertGreater(result["limits"]["read_bytes_per_second"], 0)
        self.assertTrue(result["limits"]["peaks"])

    def peak_beside_plan(self, model):
        """Peak memory of loading a model and reading a short prompt, and what its weights and that cache take."""
        plan = json.loads(self.succeed("plan", model, "--context", "64", "--json").stdout)
        bench = self.succeed("bench", model, "-p", "16", "-n", "0", "-r", "1", "--no-limits", "--threads", "2", "--json")
        return json.loads(bench.stdout)["peak_memory_bytes"], plan["weight_bytes"], plan["cache_bytes"]

    def check_peak(self, model):
        peak, weights, cache = self.peak_beside_plan(model)
        self.assertGreater(peak, weights)
        self.assertLessEqual(peak, 1.1 * weights + cache + (64 << 20), f"{peak >> 20} MiB, weights {weights >> 20} MiB")

    def test_loading_holds_the_weights_once(self):
        # The output matrix is half of the file and comes last: its file pages must go while its panels are built.
        model = self.path("model.gguf")
        self.succeed("synth", "qwen3-30b-a3b", "--layers", "1", "--experts", "8", "--type", "q4_0", "-o", model)
        self.check_peak(model)
        self.succeed("pack", model)
        self.check_peak(model)  # a mapped file counts once, too, and the model's own pages not at all

    def test_loading_a_folder_of_transposed_matrices_holds_the_weights_once(self):
        d, vocabulary, layers = 1024, 8000, 5
        shapes = {"wte.weight": [vocabulary, d], "wpe.weight": [64, d], "ln_f.weight": [d], "ln_f.bias": [d]}
        for i in range(layers):
            for name, shape in {"ln_1": [d], "ln_2": [d], "attn.c_attn": [d, 3 * d], "attn.c_proj": [d, d],
                                "mlp.c_fc": [d, 4 * d], "mlp.c_proj": [4 * d, d]}.items():
                shapes[f"h.{i}.{name}.weight"], shapes[f"h.{i}.{name}.bias"] = shape, shape[-1:]
        header, end = {}, 0
        for name, shape in shapes.items():
            begin, end = end, end + 4 * math.prod(shape)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        with open(self.write("model.safetensors", struct.pack("<Q", len(text)) + text), "ab") as file:
            file.truncate(8 + len(text) + end)  # all zeros: a hole, no bytes of disk
        self.write("config.json", json.dumps({
            "model_type": "gpt2", "vocab_size": vocabulary, "n_embd": d, "n_layer": layers, "n_head": 16, "n_positions": 64,
            "n_ctx": 64, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}).encode())
        self.check_peak(self.folder.name)

    def test_bench_takes_depths_and_writes_markdown_and_a_picture(self):
        picture = self.path("roof.svg")
        text = self.succeed("bench", TINY, "-p", "8", "-n", "4", "-d", "0,16", "-r", "1", "--markdown", "--svg", picture).stdout
        rows = [line for line in text.splitlines() if line.startswith("| prompt") or line.startswith("| generation")]
        self.assertEqual([row.split("|")[3].strip() for row in rows], ["0", "0", "16", "16"])
        svg = xml.dom.minidom.parse(picture)
        self.assertEqual(len(svg.getElementsByTagName("circle")), 4)
        self.fail_with("usage", "bench", TINY, "-r", "1", "--no-limits", "--svg", picture)

    PEER = """#!/usr/bin/env python3
import json, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
rows = [{"n_prompt": int(p), "n_gen": 0, "n_depth": int(d), "avg_ts": 2.0} for p in given["-p"].split(",") for d in given["-d"].split(",")]
rows += [{"n_prompt": 0, "n_gen": int(n), "n_depth": int(d), "avg_ts": 4.0} for n in given["-n"].split(",") for d in given["-d"].split(",")]
print(json.dumps(rows))
"""

    def program(self, name, text):
        path = self.write(name, text.encode())
        os.chmod(path, 0o755)
        return path

    def test_bench_runs_a_peer_turn_and_turn_about(self):
        peer = self.program("peer", self.PEER)
        result = json.loads(self.succeed("bench", TINY, "-p", "8", "-n", "4", "-b", "1,2", "-r", "3", "--no-limits", "--peer", peer, "--json").stdout)
        prompt, generation, batch = result["tests"]
        self.assertEqual(prompt["peer_tokens_per_second"]["median"], 2)
        self.assertAlmostEqual(generation["ratio"], generation["tokens_per_second"]["median"] / 4)
        self.assertNotIn("ratio", batch)
        self.assertGreater(result["peer"]["load_and_first_token_seconds"], 0)
        self.assertNotIn("limits", result)

    def test_a_peer_that_does_not_answer_is_told_as_such(self):
        bench = ["bench", TINY, "-p", "8", "-n", "0", "-r", "1", "--no-limits", "--peer"]
        self.assertIn("cannot be started", self.fail_with("not_found", *bench, self.path("gone")))
        self.assertIn("no JSON", self.fail_with("usage", *bench, "/bin/echo"))
        broken = self.program("broken", "#!/bin/sh\necho 'out of luck' >&2; exit 3\n")
        self.assertIn("exit code 3: out of luck", self.fail_with("usage", *bench, broken))

    def test_guesses_change_no_token_and_are_counted(self):
        run = ["run", TINY, "--ids", ",".join(["3,5,7,9"] * 6), "-n", "24", "--ignore-eos", "--no-report", "--json", "--threads", "1"]
        plain = json.loads(self.succeed(*run).stdout)
        self.assertNotIn("speculation", plain)
        for source in ("lookup", TINY):
            guessed = json.loads(self.succeed(*run, "--speculate", source, "--draft-max", "6").stdout)
            self.assertEqual(guessed["ids"], plain["ids"], source)
            self.assertEqual(guessed["speculation"]["source"], source)
            self.assertLessEqual(guessed["speculation"]["right"], guessed["speculation"]["guessed"])
        self.fail_with("not_found", *run, "--speculate", self.path("gone.gguf"))
        self.fail_with("unsupported", *run, "--speculate", "lookup", "--edit", "blocks.0.mlp_out = zero")

    def test_the_plan_names_every_weight(self):
        plan = json.loads(self.succeed("plan", TINY, "--context", "64", "--json").stdout)
        self.assertTrue(any("attn_q" in weight["name"] for weight in plan["weights"]))
        self.assertEqual(plan["cache_bytes"], 64 * plan["cache_bytes_per_token"])
        self.fail_with_plan()

    def test_the_plan_counts_the_chosen_cache(self):
        sizes = {}
        for kind in ["f32", "f16", "bf16", "q8_0", "q4_0"]:
            command = ["plan", TINY, "--class", "prompt", "--cache-type", kind, "--json"]
            plan = json.loads(self.succeed(*command).stdout)
            self.assertEqual(plan["cache_type"], kind)
            sizes[kind] = plan["cache_bytes_per_token"]
        self.assertEqual(sizes["f16"], sizes["bf16"])
        self.assertLess(sizes["q4_0"], sizes["q8_0"])
        self.assertLess(sizes["q8_0"], sizes["f16"])
        self.fail_with("usage", "plan", TINY, "--class", "f32", "--cache-type", "q8_0")

    def test_prompts_multiply_in_eight_bits_when_asked_and_possible(self):
        codes = os.path.join(HERE, "..", "golden", "tiny", "llama", "gguf", "llama.Q4_1.gguf")
        int8 = ["--prompt-products", "int8"]
        plan = json.loads(self.succeed("plan", codes, *int8, "--json").stdout)
        self.assertEqual(plan["prompt_products"], "int8")
        self.assertIn("8-bit", plan["prompt_kernel"])
        self.assertIn("int8 products", self.succeed("plan", codes, *int8).stdout)
        self.assertEqual(json.loads(self.succeed("plan", codes, "--json").stdout)["prompt_products"], "bf16")
        bench = json.loads(self.succeed("bench", codes, "-p", "8", "-n", "0", "-r", "1", "--no-limits", *int8, "--json").stdout)
        self.assertEqual(bench["prompt_products"], "int8")
        diff = json.loads(self.succeed("diff", codes, "--prompt", "one two", *int8, "--json").stdout)
        self.assertGreater(diff["kl"]["mean"], 0)
        self.assertIn("no matrix", self.fail_with("usage", "plan", TINY, "--class", "prompt", *int8))
        self.assertIn("decode class", self.fail_with("usage", "plan", codes, "--class", "decode", *int8))
        self.assertIn("exact class", self.fail_with("usage", "plan", codes, "--exact", *int8))
        self.fail_with("usage", "plan", codes, "--prompt-products", "int4")

    def fail_with_plan(self):
        result = liuli("plan", TINY, "--require-fast", environment={"LIULI_ISA": "scalar"})
        self.assertEqual(result.returncode, EXIT["unsupported"], result.stderr)
        self.assertIn("scalar", result.stderr)


class Explain(Case):
    def test_the_article_is_worked_out_in_both_languages(self):
        self.assertIn("西安", self.succeed("explain", "article", "--lang", "zh").stdout)
        self.assertIn("LayerNorm", self.succeed("explain", "article", "--lang", "en").stdout)
        self.assertEqual(json.loads(self.succeed("explain", "article", "--json").stdout)["id"], "article")

    def test_the_locale_chooses_the_language(self):
        arguments = ("explain", "residual", "--x", "1,2", "--added", "3,-4")
        chinese = liuli(*arguments, environment={"LC_ALL": "zh_CN.UTF-8"}).stdout
        self.assertNotEqual(chinese, self.succeed(*arguments).stdout)

    def test_own_numbers_are_worked_out(self):
        result = json.loads(self.succeed("explain", "norm", "--row", "-1,1,-1,1", "--gamma", "2,2,2,2", "--beta",
                                         "1,1,1,1", "--json").stdout)
        self.assertIn("[-1.0,3.0,-1.0,3.0]", json.dumps(result, separators=(",", ":")))
        scores = self.succeed("explain", "scores", "--q", "1,0", "--keys", "1,0;1,0", "--json").stdout
        self.assertIn("[0.5,0.5]", json.dumps(json.loads(scores), separators=(",", ":")))
        self.fail_with("usage", "explain", "norm", "--row", "1,2", "--gamma", "1")
        self.fail_with("usage", "explain", "norm")
        self.fail_with("usage", "explain", "scores", "--q", "1,x", "--keys", "1,2")

    def test_the_explosion_is_drawn(self):
        picture = self.path("explosion.svg")
        self.succeed("explain", "explosion", "--steps", "5", "--svg", picture)
        with open(picture, encoding="utf-8") as file:
            self.assertIn("<svg", file.read())

    def test_a_models_rows_are_worked_out(self):
        for arguments in (["norm", "--site", "ln1"], ["norm", "--site", "ln2", "--layer", "1"],
                          ["norm", "--site", "ln_final"], ["scores", "--head", "1", "--token", "2"],
                          ["residual", "--site", "attn"], ["residual", "--site", "mlp", "--token", "0"]):
            out = self.succeed("explain", *arguments, "--model", TINY, "--ids", "1,2,3,4").stdout
            self.assertGreater(len(out), 400, arguments)

    def test_any_number_of_a_run_is_explained(self):
        run = ("explain", TINY, "--ids", "1,2,3,4", "--class", "prompt")
        out = self.succeed(*run, "--at", "blocks.1.mlp.pre[-1,5]", "--terms", "3", "--with-exact", "--lang", "en").stdout
        for piece in ("blocks.1.mlp.pre[3,5] = ", "blocks.1.ln2.out[3,", "agrees", "run in double"):
            self.assertIn(piece, out)
        self.assertIn("双精度重算", self.succeed(*run, "--at", "logits[0,1]", "--lang", "zh").stdout)
        result = json.loads(self.succeed(*run, "--at", "blocks.0.attn.pattern[0,3,1]", "--json").stdout)
        self.assertTrue(result["agrees"])
        self.assertEqual(result["n_terms"], len(result["terms"]))
        both = json.loads(self.succeed(*run, "--at", "embed[0,0]", "--at", "embed[1,0]", "--json").stdout)
        self.assertEqual([each["name"] for each in both], ["embed[0,0]", "embed[1,0]"])
        self.fail_with("usage", *run, "--at", "embed[9,0]")
        self.fail_with("usage", *run)

    def test_numbers_of_an_edited_run_are_explained(self):
        run = ("explain", TINY, "--ids", "1,2,3,4", "--edit", "blocks.0.mlp_out[2,5] = 3")
        after = json.loads(self.succeed(*run, "--at", "blocks.0.resid_post[2,5]", "--json").stdout)
        self.assertTrue(after["agrees"])
        self.assertIn(3, [operand["value"] for term in after["terms"] for operand in term["operands"]])
        self.assertNotIn("edited", after)
        itself = json.loads(self.succeed(*run, "--at", "blocks.0.mlp_out[2,5]", "--json").stdout)
        self.assertEqual((itself["value"], itself["edited"]), (3, True))
        self.assertIn("an edit wrote here", self.succeed(*run, "--at", "blocks.0.mlp_out[2,5]", "--lang", "en").stdout)
        line = self.fail_with("usage", *run, "--at", "blocks.0.resid_pre[2,5]")
        self.assertIn("comes after blocks.0.resid_pre", line)

    def test_what_explain_lacks_is_said(self):
        self.fail_with("usage", "explain", TINY, "--at", "embed[0,0]")
        self.fail_with("usage", "explain")

    def test_places_outside_the_model_are_usage_errors(self):
        run = ("--model", TINY, "--ids", "1,2")
        self.fail_with("usage", "explain", "norm", *run, "--layer", "99")
        self.fail_with("usage", "explain", "scores", *run, "--head", "99")
        self.fail_with("usage", "explain", "residual", *run, "--token", "2")
        self.fail_with("usage", "explain", "norm", "--model", TINY)


class Run(Case):
    def test_the_same_seed_gives_the_same_text(self):
        arguments = ("run", TINY, "Hi", "-n", "12", "--temperature", "0.9", "--ignore-eos", "--json", "--seed")
        first, again, other = (json.loads(self.succeed(*arguments, seed).stdout) for seed in (7, 7, 8))
        self.assertEqual(first["ids"], again["ids"])
        self.assertNotEqual(first["ids"], other["ids"])
        self.assertEqual(first["generated_tokens"], 12)

    def test_text_goes_to_stdout_and_the_rest_to_stderr(self):
        arguments = ("run", TINY, "Hi", "-n", "8", "--ignore-eos")
        result = self.succeed(*arguments)
        self.assertEqual(json.loads(self.succeed(*arguments, "--json").stdout)["text"].rstrip("\n"),
                         result.stdout.rstrip("\n"))
        self.assertIn("tokens/s", result.stderr)

    def test_the_report_shows_every_block_and_the_worked_norm(self):
        out = self.succeed("run", TINY, "Hi", "-n", "2", "--report", "--lang", "en").stdout
        for piece in ("lens says", "RMS", "liuli explain"):
            self.assertIn(piece, out)
        self.assertIn("透镜", self.succeed("run", TINY, "Hi", "-n", "2", "--report", "--lang", "zh").stdout)
        result = json.loads(self.succeed("run", TINY, "Hi", "-n", "2", "--report", "--json").stdout)
        self.assertGreaterEqual(len(result["first_token"]["blocks"]), 2)

    def test_the_prompt_may_come_from_a_pipe_a_file_or_nowhere(self):
        arguments = ("-n", "4", "--raw", "--json", "--ignore-eos")
        expected = json.loads(self.succeed("run", TINY, "Hello", *arguments).stdout)["ids"]
        self.assertEqual(json.loads(self.succeed("run", TINY, "-", *arguments, stdin="Hello").stdout)["ids"], expected)
        self.assertEqual(json.loads(self.succeed("run", TINY, *arguments, stdin="Hello").stdout)["ids"], expected)
        file = self.write("prompt.txt", b"Hello")
        self.assertEqual(json.loads(self.succeed("run", TINY, "--file", file, *arguments).stdout)["ids"], expected)
        self.assertEqual(json.loads(self.succeed("run", TINY, *arguments, stdin="").stdout)["generated_tokens"], 4)

    def test_log_probabilities_are_shown_with_or_without_a_count(self):
        for arguments in (("--logprobs", "2"), ("--logprobs=2",)):
            result = json.loads(self.succeed("run", TINY, "Hi", "-n", "3", "--json", "--ignore-eos", *arguments).stdout)
            self.assertEqual([len(token["top"]) for token in result["tokens"]], [2, 2, 2])
            self.assertLessEqual(result["tokens"][0]["logprob"], 0)
        self.assertIn("log p", self.succeed("run", "--logprobs", TINY, "Hi", "-n", "2", "--ignore-eos").stdout)

    def test_a_bias_chooses_the_token(self):
        result = json.loads(self.succeed("run", TINY, "Hi", "-n", "3", "--ignore-eos", "--json", "--logit-bias",
                                         "65=1000").stdout)
        self.assertEqual(result["ids"], [65, 65, 65])
        for bad in ("65", "x=1", "65=y", "99999999=1"):
            self.fail_with("usage", "run", TINY, "Hi", "--logit-bias", bad)

    def test_a_full_context_stops_with_a_notice(self):
        result = self.succeed("run", TINY, "--raw", "a", "--context", "8", "-n", "100", "--ignore-eos")
        self.assertIn("context of 8 tokens is full", result.stderr)

    def test_a_chat_works_from_a_pipe(self):
        turns = "Hi\n/system Be brief.\nAgain\n/save {}\n/reset\nNew\n/quit\n".format(self.path("chat.json"))
        out = self.succeed("chat", TINY, "--chat-template", "plain", "-n", "4", "--ignore-eos", "--json",
                           stdin=turns).stdout
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([answer["generated_tokens"] for answer in answers], [4, 4, 4])
        with open(self.path("chat.json"), encoding="utf-8") as file:
            roles = [message["role"] for message in json.load(file)["messages"]]
        self.assertEqual(roles, ["system", "user", "assistant", "user", "assistant"])
        self.fail_with("usage", "chat", TINY, "--chat-template", "plain", stdin="/frobnicate\n")

    def test_ctrl_c_keeps_the_text_so_far(self):
        with open(TINY, "rb") as file:
            content = file.read()
        key = b"llama.context_length" + struct.pack("<I", 4)
        at = content.index(key) + len(key)
        endless = self.write("endless.gguf", content[:at] + struct.pack("<I", 1 << 20) + content[at + 4:])
        process = subprocess.Popen([PROGRAM, "run", endless, "Hi", "-n", "1000000", "--ignore-eos"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        first = process.stdout.read(1)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        rest, notices = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, notices)
        self.assertIn(b"Ctrl-C", notices)
        self.assertTrue((first + rest).endswith(b"\n"))


class Diff(Case):
    """liuli diff: what it prints, what it writes, what it refuses."""
    Q4 = TINY.replace("F32", "Q4_0")
    TEXT = ["--prompt", "the red fox and the other", "--raw"]

    def compare(self, *arguments):
        return json.loads(self.succeed("diff", *arguments, "--json").stdout)

    def test_a_model_does_not_differ_from_itself(self):
        report = self.compare(TINY, TINY, *self.TEXT)
        self.assertEqual(report["kl"], {"mean": 0, "median": 0, "p99": 0, "max": 0})
        self.assertEqual((report["top1_agreement"], report["first_divergence"]), (1, None))
        self.assertEqual(report["perplexity"], report["reference_perplexity"])

    def test_a_quantised_twin_differs_as_its_logits_say(self):
        ids = "1,5,90,17,200,33,8"
        report = self.compare(self.Q4, TINY, "--ids", ids, "--out", self.path("kl.npy"))
        logits = []
        for model in (self.Q4, TINY):
            self.succeed("logits", model, "--ids", ids, "-o", self.path("x.safetensors"))
            logits.append(read_safetensors(self.path("x.safetensors"))[0]["logits"][1])
        shape, kl = read_npy(self.path("kl.npy"))
        self.assertEqual(shape, [7])
        for position in range(7):
            a, b = (values[position * 347:(position + 1) * 347] for values in logits)
            z_a, z_b = math.fsum(map(math.exp, a)), math.fsum(map(math.exp, b))
            expected = math.fsum(math.exp(y) / z_b * (y - math.log(z_b) - x + math.log(z_a)) for x, y in zip(a, b))
            self.assertAlmostEqual(kl[position], expected, delta=1e-6 * expected)
        self.assertAlmostEqual(report["kl"]["mean"], sum(kl) / 7, delta=1e-6)
        self.assertEqual(report["first_divergence"]["name"], "embed")
        self.assertEqual(len(report["worst"]), 5)

    def test_people_see_the_summary_the_layers_and_the_first_difference(self):
        out = self.succeed("diff", self.Q4, TINY, *self.TEXT, "--points", "resid_post,mlp_out").stdout
        self.assertIn("(class prompt)", out)
        self.assertRegex(out, r"KL\(reference ‖ A\), nats +mean 0\.\d+")
        self.assertRegex(out, r"(?m)^blocks\.1 .*e-0\d")
        self.assertRegex(out, r"first point that differs by more than 0\.03.*\n  embed ")
        self.assertIn("mlp_out", out)

    def test_one_file_is_compared_with_its_exact_run_or_another_class(self):
        report = self.compare(self.Q4, "--exact", "--class", "decode", *self.TEXT)
        self.assertEqual((report["a"]["class"], report["reference"]["class"]), ("decode", "exact"))
        self.assertLess(report["kl"]["max"], 1e-3)
        self.assertIsNone(report["first_divergence"])
        self.assertEqual(self.compare(self.Q4, "--class-b", "f32", *self.TEXT)["reference"]["class"], "f32")

    def test_long_texts_come_in_windows_and_are_traced_at_their_beginning(self):
        text = self.write("text.txt", b"the red fox and the other fox went there. " * 30)
        report = self.compare(self.Q4, TINY, "--file", text, "--context", "64", "--max-tokens", "200",
                              "--trace-positions", "16")
        self.assertEqual([report[key] for key in ("positions", "windows", "traced_positions")], [200, 4, 16])
        self.assertEqual(report["predicted_tokens"], 63 * 3 + 7)
        out = self.succeed("diff", self.Q4, TINY, "--file", text, "--trace-positions", "16").stdout
        self.assertIn("the first 16 of", out)

    def test_an_edited_run_is_compared_with_the_unedited_one(self):
        report = self.compare(TINY, "--ids", "1,2,3,4,5", "--edit", "blocks.1.mlp_out[3,:] *= 0")
        self.assertEqual(report["first_divergence"]["name"], "blocks.1.mlp_out")
        self.assertGreater(report["kl"]["max"], 0)
        self.assertEqual(self.compare(TINY, TINY, "--ids", "1,2,3,4,5", "--edit", "blocks.1.mlp_out[3,:] *= 0")["kl"], report["kl"])
        line = self.fail_with("not_found", "diff", TINY, "--ids", "1,2,3", "--edit", "blocks.7.mlp_out = 0")
        self.assertIn("blocks.7.mlp_out", line)
        self.fail_with("usage", "diff", TINY, "--ids", "1,2,3,4,5,6", "--context", "3", "--edit", "blocks.1.mlp_out[-1,:] = 0")

    def test_a_limit_turns_into_an_exit_code(self):
        self.succeed("diff", self.Q4, TINY, *self.TEXT, "--fail-above", "10")
        result = liuli("diff", self.Q4, TINY, *self.TEXT, "--fail-above", "0.001")
        self.assertEqual(result.returncode, 1)
        self.assertIn("above 0.001", result.stderr)
        self.assertIn("KL(reference", result.stdout)

    def test_what_cannot_be_compared_is_refused(self):
        self.assertIn("--exact", self.fail_with("usage", "diff", TINY, *self.TEXT))
        self.fail_with("usage", "diff", TINY, "--exact", "--class-b", "f32", *self.TEXT)
        self.fail_with("usage", "diff", TINY, TINY)
        self.fail_with("usage", "diff", TINY, TINY, *self.TEXT, "--context", "100000")
        line = self.fail_with("not_found", "diff", TINY, TINY, *self.TEXT, "--points", "resid_pots")
        self.assertIn("resid_pots", line)

    def test_models_of_other_shape_are_compared_by_their_logits(self):
        other = os.path.join(os.path.dirname(TINY), "..", "..", "qwen2", "gguf", "qwen2.F32.gguf")
        report = self.compare(TINY, other, "--ids", "1,2,3")
        self.assertIn("n_layers: 2 and 3", report["not_traced"])
        self.assertGreater(report["kl"]["mean"], 0)


class RealModel(Case):
    def setUp(self):
        super().setUp()
        path = os.path.join(os.environ.get("LIULI_MODELS", "(LIULI_MODELS is not set)"), "smollm2.gguf")
        self.assertTrue(os.path.exists(path), f"no {path}: scripts/fetch_model.py smollm2 fetches it")

    def test_a_short_name_finds_the_model_and_it_knows_france(self):
        result = json.loads(self.succeed("run", "smollm2", "--raw", "The capital of France is", "-n", "4",
                                         "--json").stdout)
        self.assertIn("Paris", result["text"])

    def test_diff_finds_fast_and_exact_alike_and_refuses_another_vocabulary(self):
        prompt = ["--prompt", "The capital of France is", "--raw"]
        report = json.loads(self.succeed("diff", "smollm2", "--exact", *prompt, "--json").stdout)
        self.assertLess(report["kl"]["max"], 0.02)
        self.assertGreater(report["kl"]["max"], 0)
        self.assertIsNone(report["first_divergence"])
        line = self.fail_with("usage", "diff", TINY, "smollm2", "--ids", "1,2,3")
        self.assertIn("vocabulary of 347 tokens", line)
        self.assertIn("49152", line)

    def test_ctrl_c_before_a_result_is_cancelled(self):
        out = self.path("x.safetensors")
        ids = ",".join(["100"] * 4000)
        process = subprocess.Popen([PROGRAM, "logits", "smollm2", "--ids", ids, "--exact", "-o", out],
                                   stderr=subprocess.PIPE)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        self.assertIn(process.returncode, (EXIT["cancelled"], -signal.SIGINT))
        self.assertFalse(os.path.exists(out))


class Quantize(Case):
    """Smaller files, with and without an importance matrix."""

    def test_a_smaller_file_names_its_errors_and_runs(self):
        out = self.path("small.gguf")
        plan = json.loads(self.succeed("quantize", TINY, "--type", "q4_0", "--dry-run", "--json").stdout)
        report = json.loads(self.succeed("quantize", TINY, "-o", out, "--type", "q4_0", "--json").stdout)
        self.assertEqual(plan["file_bytes"], os.path.getsize(out))
        self.assertEqual(report["file_bytes"], os.path.getsize(out))
        errors = {tensor["name"]: tensor["error"] for tensor in report["tensors"]}
        self.assertEqual(errors["output_norm.weight"], 0)
        self.assertTrue(0.01 < errors["blk.0.ffn_up.weight"] < 0.1, errors)
        self.succeed("logits", out, "--ids", "1,2,3", "-o", self.path("logits.safetensors"))
        text = self.succeed("quantize", TINY, "-o", out, "--type", "q4_0", "--tensor", "attn_v=q8_0").stdout
        self.assertRegex(text, r"blk\.1\.attn_v\.weight .* Q8_0 ")
        self.assertIn("bits per weight", text)

    def test_an_importance_matrix_comes_from_a_text_and_is_used(self):
        matrix, out = self.path("im.gguf"), self.path("small.gguf")
        text = self.write("text.txt", b"the quick brown fox jumps over the lazy dog " * 8)
        report = json.loads(self.succeed("imatrix", TINY, "--file", text, "-o", matrix, "--context", "32",
                                         "--json").stdout)
        self.assertGreaterEqual(report["chunks"], 2)
        self.assertEqual(report["missing"], [])
        report = json.loads(self.succeed("quantize", TINY, "-o", out, "--type", "q4_0", "--imatrix", matrix,
                                         "--json").stdout)
        weighted = [tensor for tensor in report["tensors"] if "weighted_error" in tensor]
        self.assertGreaterEqual(len(weighted), 14)
        metadata = {key["name"]: key["value"]
                    for key in json.loads(self.succeed("inspect", out, "--metadata", "--json").stdout)["metadata"]}
        self.assertEqual(metadata["quantize.imatrix.dataset"], "text.txt")

    def test_a_folder_becomes_gguf_with_its_tokenizer(self):
        tiny = os.path.join(HERE, "..", "golden", "tiny")
        folder, out = os.path.join(tiny, "qwen3"), self.path("folder.gguf")
        report = json.loads(self.succeed("quantize", folder, "-o", out, "--type", "f32", "--json").stdout)
        self.assertEqual((report["error"], report["warnings"]), (0, []))
        self.assertEqual(self.succeed("tokenize", out, "Hello 123").stdout,
                         self.succeed("tokenize", folder, "Hello 123").stdout)
        self.assertIn("transformer2017 has no architecture there",
                      self.fail_with("unsupported", "quantize", os.path.join(tiny, "transformer2017"), "-o", out))

    def test_types_are_listed_and_mistakes_are_one_line(self):
        self.assertIn("q4_k_m", self.succeed("quantize", "--list").stdout)
        out = self.path("small.gguf")
        for kind, arguments in [("not_found", ["--type", "q9"]), ("usage", ["--tensor", "attn_v"]),
                                ("usage", ["--tensor", "nowhere=q8_0"]), ("not_found", ["--imatrix", "gone.gguf"])]:
            self.fail_with(kind, "quantize", TINY, "-o", out, *arguments)
        self.fail_with("usage", "quantize", TINY)
        self.assertFalse(os.path.exists(out))


class Pack(Case):
    """Weights as they run in memory, in a file beside the model."""

    def setUp(self):
        super().setUp()
        self.model, self.panels = shutil.copy(TINY, self.path("m.gguf")), self.path("m.gguf.panels")

    def logits(self, *options):
        out = self.path("logits.safetensors")
        result = self.succeed("logits", self.model, "--ids", "1,2,3", "-o", out, *options)
        notices = [line for line in result.stderr.splitlines() if line.startswith("liuli: ")]
        return read_safetensors(out)[0], notices

    def test_a_packed_model_is_found_used_and_the_same(self):
        packed, _ = self.logits()
        text = self.succeed("pack", self.model).stdout
        self.assertRegex(text, r"^\S+ [KM]iB to write\n")
        self.assertRegex(text.splitlines()[-1], r"m\.gguf\.panels: \S+ [KM]iB in \d+\.\d s$")
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["logits.safetensors", "m.gguf", "m.gguf.panels"])
        mapped, notices = self.logits()
        self.assertEqual((mapped, notices), (packed, []))
        plan = json.loads(self.succeed("plan", self.model, "--json").stdout)
        self.assertEqual(plan["panel_file"], self.panels)
        self.assertIn(f"mapped from {self.panels}", self.succeed("plan", self.model).stdout)
        self.assertNotIn("mapped from", self.succeed("plan", self.model, "--panels", "none").stdout)
        bench = ["bench", self.model, "-p", "8", "-n", "0", "-r", "1", "--no-limits"]
        self.assertEqual(json.loads(self.succeed(*bench, "--json").stdout)["panel_file"], self.panels)
        self.assertIn("(panels mapped)", self.succeed(*bench).stdout)
        self.assertNotIn("(panels mapped)", self.succeed(*bench, "--panels", "none").stdout)

    def test_a_stale_file_is_left_alone_with_a_notice_and_renewed(self):
        self.succeed("pack", self.model)
        os.utime(self.model, ns=(10 ** 18, 10 ** 18 + 1))
        packed, notices = self.logits()
        self.assertEqual(len(notices), 1, notices)
        self.assertIn("was packed before", notices[0])
        self.assertIn(f"`liuli pack {self.model}`", notices[0])
        self.fail_with("usage", "plan", self.model, "--panels", self.panels)
        report = json.loads(self.succeed("pack", self.model, "--json").stdout)
        self.assertEqual((report["output"], report["bytes"]), (self.panels, os.path.getsize(self.panels)))
        self.assertEqual(self.logits("--panels", self.panels), (packed, []))

    def test_what_cannot_be_used_or_written_is_one_line(self):
        other = self.path("other")
        self.succeed("pack", self.model, "-o", other)
        self.assertFalse(os.path.exists(self.panels))
        self.fail_with("not_found", "plan", self.model, "--panels", self.path("gone"))
        self.fail_with("corrupt_file", "plan", self.model, "--panels", self.model)
        with open(other, "r+b") as file:
            file.truncate(os.path.getsize(other) - 1)
        self.fail_with("corrupt_file", "plan", self.model, "--panels", other)
        self.fail_with("usage", "plan", self.model, "--panels", other, "--exact")
        self.fail_with("usage", "pack", self.model, "-o", self.model)
        self.fail_with("io_error", "pack", self.model, "-o", self.path("no/such/folder"))
        self.fail_with("not_found", "pack", self.path("gone.gguf"))


class ShapeAndSynth(unittest.TestCase):
    """Sizes of models that are not here, and a made-up file of one that then runs."""

    def test_shape_prints_published_numbers_without_a_file(self):
        shape = json.loads(liuli("shape", "deepseek-v3", "--json").stdout)
        self.assertEqual((shape["n_layers"], shape["parameters"], shape["active_parameters"]),
                         (61, 671026419200, 37552297472))
        self.assertEqual(sum(part["parameters"] for part in shape["parts"]), shape["parameters"])
        text = liuli("shape", "llama-3-8b").stdout
        for words in ["8,030,261,248", "131,072", "Q4_K_M", "15.01 GFLOP"]:
            self.assertIn(words, text)
        text = liuli("shape", "llama-3-8b", "--cache-type", "q8_0").stdout
        for words in ["cache, q8_0", "69,632"]:  # 2 · 32 · 8 · (128 + 8)
            self.assertIn(words, text)

    def test_shape_of_a_file_counts_its_own_tensors(self):
        shape = json.loads(liuli("shape", TINY, "--context", "10", "--json").stdout)
        report = json.loads(liuli("inspect", TINY, "--json").stdout)
        self.assertEqual(shape["parameters"], report["parameters"])
        self.assertEqual(shape["bytes"][0]["bytes"], report["tensor_bytes"])

    def test_shape_names_what_it_knows(self):
        result = liuli("shape", "llama-9")
        self.assertEqual(result.returncode, EXIT["not_found"])
        self.assertIn("llama-3-8b", result.stderr)
        self.assertIn("qwen2.5-7b", liuli("shape", "--list").stdout)

    def test_a_made_up_model_is_announced_as_one_and_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "gpt2.gguf")
            written = json.loads(liuli("synth", "gpt2", "--type", "q8_0", "--layers", "1", "-o", path, "--json").stdout)
            self.assertEqual(written["file_bytes"], os.path.getsize(path))
            metadata = {key["name"]: key["value"]
                        for key in json.loads(liuli("inspect", path, "--metadata", "--json").stdout)["metadata"]}
            self.assertIn("Random weights", metadata["general.description"])
            result = liuli("tokenize", path, "any bytes at all: \xe9\u4e2d")
            self.assertEqual(result.returncode, 0, result.stderr)
            out = os.path.join(folder, "logits.safetensors")
            self.assertEqual(liuli("logits", path, "--ids", "1,2,3", "-o", out).returncode, 0)
            logits = read_safetensors(out)[0]["logits"]
            self.assertEqual(logits[0], [3, 50257])
            deviation = math.sqrt(sum(x * x for x in logits[1]) / len(logits[1]))
            self.assertTrue(0.7 < deviation < 1.4, deviation)

    def test_synth_refuses_in_one_line_and_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.gguf")
            for arguments, code in [(("gpt2", "--layers", "13"), "usage"), (("gpt2", "--type", "q9"), "not_found"),
                                    (("bert-base",), "unsupported")]:
                result = liuli("synth", *arguments, "-o", path)
                self.assertEqual(result.returncode, EXIT[code], result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
            self.assertEqual(os.listdir(folder), [])


class TwoWays(Case):
    """Encoders and the encoder-decoder: embeddings, sources, what such models cannot do."""
    GOLDEN = os.path.join(HERE, "..", "golden", "tiny")
    BERT = os.path.join(GOLDEN, "bert")
    PAIR = os.path.join(GOLDEN, "transformer2017")
    MINILM = os.path.join(os.environ.get("LIULI_MODELS", "LIULI_MODELS-is-not-set"), "minilm")

    def test_ids_become_a_vector_of_length_one(self):
        line = json.loads(self.succeed("embed", self.BERT, "--ids", "1,2,3").stdout)
        self.assertEqual((line["tokens"], len(line["embedding"])), (3, 60))
        self.assertAlmostEqual(sum(x * x for x in line["embedding"]), 1, places=5)
        raw = json.loads(self.succeed("embed", self.BERT, "--ids", "1,2,3", "--no-normalize").stdout)["embedding"]
        first = json.loads(self.succeed("embed", self.BERT, "--ids", "1,2,3", "--pooling", "cls").stdout)["embedding"]
        self.assertNotEqual(raw, first)
        self.assertNotAlmostEqual(sum(x * x for x in raw), 1, places=3)

    def test_texts_become_vectors_a_file_and_a_ranking(self):
        lines = self.write("lines.txt", "A cat sat.\nThe weather is nice.\nkittens play\n".encode())
        self.succeed("embed", self.MINILM, "--file", lines, "-o", self.path("x.npy"))
        shape, values = read_npy(self.path("x.npy"))
        self.assertEqual(shape, [3, 384])
        answers = [json.loads(line) for line in
                   self.succeed("embed", self.MINILM, "--file", lines).stdout.splitlines()]
        self.assertEqual([a["text"] for a in answers], ["A cat sat.", "The weather is nice.", "kittens play"])
        for i, answer in enumerate(answers):
            self.assertEqual(list(values[i * 384:(i + 1) * 384]), list(array.array("f", answer["embedding"])))
        best = json.loads(self.succeed("embed", self.MINILM, "--similar-to", "young cats", "--file", lines, "--json",
                                       "--top", "1").stdout)
        self.assertEqual(best["text"], "kittens play")
        near = float(self.succeed("embed", self.MINILM, "--similarity", "a cat", "a kitten").stdout)
        far = float(self.succeed("embed", self.MINILM, "--similarity", "a cat", "tax law").stdout)
        self.assertGreater(near, far + 0.3)

    def test_longer_texts_are_cut_and_said_to_be(self):
        result = self.succeed("embed", self.MINILM, "one two three four five six", "--max-tokens", "5", "--json")
        answer = json.loads(result.stdout)
        self.assertEqual((answer["tokens"], answer["cut"]), (5, True))
        self.assertIn("cut to 5 tokens", result.stderr)

    def test_models_without_logits_say_what_to_use(self):
        for command in (["run", self.BERT, "x"], ["logits", self.BERT, "--ids", "1", "-o", self.path("x")],
                        ["perplexity", self.MINILM, "--file", self.write("t", b"some text")]):
            self.assertIn("liuli embed", self.fail_with("unsupported", *command))

    def test_segments_and_the_pooler_can_be_traced(self):
        self.succeed("trace", self.BERT, "--ids", "5,6", "--token-types", "0,1", "--points", "pooler,type_embed", "-o",
                     self.path("x.safetensors"))
        tensors, _ = read_safetensors(self.path("x.safetensors"))
        self.assertEqual(tensors["pooler"][0], [1, 60])
        rows = tensors["type_embed"][1]
        self.assertNotEqual(list(rows[:60]), list(rows[60:]))

    def test_a_source_is_answered(self):
        arguments = ["run", self.PAIR, "--ids", "5", "-n", "4", "--ignore-eos", "--json"]
        answers = [json.loads(self.succeed(*arguments, "--source-ids", source).stdout)["ids"]
                   for source in ("1,2,3", "1,2,3", "9,8,7,6")]
        self.assertEqual(len(answers[0]), 4)
        self.assertEqual(answers[0], answers[1])
        self.assertIn("--source", self.fail_with("usage", *arguments))
        self.assertIn("--ids", self.fail_with("usage", "run", self.PAIR, "--source-ids", "1,2"))
        self.assertIn("encoder", self.fail_with("usage", "run", TINY, "--ids", "5", "--source-ids", "1"))

    def test_both_towers_can_be_traced(self):
        self.succeed("trace", self.PAIR, "--ids", "5,6", "--source-ids", "1,2,3", "--points",
                     "encoder.blocks.0.attn.pattern,decoder.blocks.1.cross_attn.pattern,logits", "-o",
                     self.path("x.safetensors"))
        tensors, _ = read_safetensors(self.path("x.safetensors"))
        self.assertEqual(tensors["encoder.blocks.0.attn.pattern"][0], [3, 3, 3])
        self.assertEqual(tensors["decoder.blocks.1.cross_attn.pattern"][0], [3, 2, 3])
        self.succeed("logits", self.PAIR, "--ids", "5,6", "--source-ids", "1,2,3", "-o", self.path("l.safetensors"))
        self.assertEqual(read_safetensors(self.path("l.safetensors"))[0]["logits"], tensors["logits"])


class EditsAndSweeps(Case):
    """Changed runs: --edit, --edits and the sweep over patches."""
    CLEAN, CORRUPT = "1,2,3,4,5", "1,9,3,4,5"

    def logits(self, *arguments):
        self.succeed("logits", TINY, "--ids", self.CLEAN, "-o", self.path("x.safetensors"), *arguments)
        return list(read_safetensors(self.path("x.safetensors"))[0]["logits"][1])

    def test_an_edit_in_short_form_and_in_json_is_the_same(self):
        plain = self.logits()
        short = self.logits("--edit", "blocks.0.attn.z[-1,1] *= 0")
        edits = self.write("edits.json", b'[{"at": "blocks.0.attn.z", "tokens": "last", "heads": 1, "do": "zero"}]')
        self.assertEqual(short, self.logits("--edits", edits))
        width = len(plain) // 5
        self.assertEqual(short[:4 * width], plain[:4 * width])
        self.assertNotEqual(short[4 * width:], plain[4 * width:])

    def test_traces_perplexity_and_answers_are_edited_too(self):
        self.succeed("trace", TINY, "--ids", self.CLEAN, "--points", "blocks.0.resid_mid,blocks.0.resid_pre", "--edit",
                     "blocks.0.attn_out = 0", "-o", self.path("x.safetensors"))
        tensors, _ = read_safetensors(self.path("x.safetensors"))
        self.assertEqual(tensors["blocks.0.resid_mid"], tensors["blocks.0.resid_pre"])
        run = ["run", TINY, "--ids", self.CLEAN, "-n", "6", "--ignore-eos", "--json"]
        answers = [json.loads(self.succeed(*run, *edit).stdout)["ids"]
                   for edit in ([], ["--edit", "blocks.0.mlp_out[5:] += 3"], ["--edit", "logits[:,7] = 1000"])]
        self.assertEqual(answers[0][:1], answers[1][:1])
        self.assertEqual(answers[2], [7] * 6)

    def test_an_edit_that_cannot_take_effect_is_one_line(self):
        for edit, kind, words in (("blocks.0.resid_prost = 0", "not_found", "nearest"),
                                  ("blocks.0.mlp_out[9] = 0", "usage", "there are 5"),
                                  ("blocks.0.attn.scores[0,1,3] = 0", "usage", "mask"),
                                  ("blocks.0.mlp_out", "usage", "expected POINT")):
            message = self.fail_with(kind, "logits", TINY, "--ids", self.CLEAN, "-o", self.path("x"), "--edit", edit)
            self.assertIn(words, message)
        self.assertFalse(os.path.exists(self.path("x")))

    def sweep(self, *arguments):
        return self.succeed("sweep", TINY, "--clean-ids", self.CLEAN, "--corrupt-ids", self.CORRUPT, "--metric",
                            "logit_diff:7,9", *arguments)

    def test_a_sweep_is_a_table_a_file_and_a_picture(self):
        result = json.loads(self.sweep("--json", "--svg", self.path("x.svg"), "-o", self.path("x.npy")).stdout)
        shape, effect = read_npy(self.path("x.npy"))
        self.assertEqual(shape, [len(result["layers"]), 5])
        self.assertEqual([round(e, 5) for e in effect], [round(e, 5) for e in result["effect"]])
        self.assertEqual(effect[0], 0)
        self.assertAlmostEqual(effect[1], 1, places=6)  # the only token that differs
        text = self.sweep("--svg", self.path("x.svg")).stdout
        self.assertIn("position", text)
        with open(self.path("x.svg"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("<rect"), 1 + len(effect))
        self.assertEqual(json.loads(self.sweep("--json", "--one-by-one").stdout)["values"], result["values"])
        self.sweep("--picture", self.path("x.png"))
        with open(self.path("x.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_a_sweep_goes_on_from_its_journal(self):
        journal = self.path("journal")
        first = json.loads(self.sweep("--json", "--resume", journal, "--over", "attn.z", "--heads", "all").stdout)
        again = json.loads(self.sweep("--json", "--resume", journal, "--over", "attn.z", "--heads", "all").stdout)
        self.assertEqual(first["values"], again["values"])
        self.assertEqual(again["resumed"], first["patches"] - first["known"])

    def test_pairs_come_from_a_file(self):
        line = '{"clean": [1,2,3], "corrupt": [1,4,3], "answer": 7, "wrong": 9}\n'
        pairs = self.write("pairs.jsonl", (line + line.replace("4", "5")).encode())
        result = json.loads(self.succeed("sweep", TINY, "--pairs", pairs, "--json").stdout)
        self.assertEqual((result["pairs"], len(result["clean"])), (2, 2))
        bad = self.write("bad.jsonl", b'{"clean": [1,2,3]}')
        self.assertIn("line 1", self.fail_with("usage", "sweep", TINY, "--pairs", bad))
        self.assertIn("logit_diff", self.fail_with("usage", "sweep", TINY, "--pairs", pairs, "--metric", "charm"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
