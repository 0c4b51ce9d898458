#!/usr/bin/env python3
"""Proves from the #include lines that the folders of src/ look downwards only.

    check_layers.py [ROOT]         check the tree (default: the one this script is in)
    check_layers.py --self-test    check that each kind of violation is found

Prints each violation as file:line, then how many files and includes were looked at. Exit code 1 if there was one.
"""
import os
import re
import sys
import tempfile

# Who may include whom, lowest first. An entry ending in / is a whole folder of src/ (or of include/), any other entry is
# one header. A folder may always include itself. A row may name only folders above it in this table: that is "downwards".
MAY_INCLUDE = {
    "core": ["liuli/error.h"],
    "kernels": ["core/dtype.h", "core/fp8.h", "core/half.h", "liuli/error.h"],  # numbers in, numbers out: types and roundings, no more
    "ops": ["kernels/", "core/", "liuli/error.h", "liuli/norm_kind.h", "liuli/config.h"],
    "formats": ["core/", "liuli/error.h"],
    "tokenizers": ["core/", "liuli/error.h"],
    "model": ["ops/", "formats/weight_source.h", "formats/panel_file.h", "core/", "liuli/error.h", "liuli/cache_type.h", "liuli/norm_kind.h", "liuli/config.h",
              "kernels/kernels.h"],  # the cache's pages have the layout the attention kernels read
    "generate": ["model/", "tokenizers/", "core/", "liuli/error.h", "liuli/config.h", "liuli/generation.h",
                 "kernels/kernels.h"],  # softmax and argmax over the logits
    "trace": ["generate/", "model/", "ops/", "tokenizers/", "core/", "liuli/error.h", "liuli/norm_kind.h",
              "liuli/config.h", "liuli/trace.h", "liuli/hook.h", "liuli/explain.h", "liuli/number_explanation.h", "liuli/report.h",
              "liuli/attribution.h"],
    "convert": ["model/", "formats/", "tokenizers/", "core/", "liuli/error.h", "liuli/config.h", "liuli/convert.h", "liuli/synth.h",
                "kernels/kernels.h"],  # decode_row: what an encoder is measured against
    "report": ["convert/", "trace/", "generate/", "model/", "formats/", "tokenizers/", "core/", "liuli/error.h",
               "liuli/norm_kind.h", "liuli/config.h", "liuli/trace.h", "liuli/report.h", "liuli/diff.h", "liuli/shape.h", "liuli/model_file.h", "liuli/plot.h",
               "liuli/generation.h", "liuli/tour.h", "kernels/kernels.h"],  # decode_row, for a tensor's values; the name of the level, for the plan
    "train": ["trace/", "generate/", "model/", "ops/", "formats/", "tokenizers/", "core/", "liuli/error.h", "liuli/config.h",
              "liuli/norm_kind.h", "liuli/lab.h", "liuli/explain.h", "liuli/hook.h", "liuli/trace.h", "kernels/kernels.h"],  # decode_row: weights of files become f32
    "engine": ["train/", "report/", "convert/", "trace/", "generate/", "model/", "ops/", "formats/", "tokenizers/", "kernels/", "core/",
               "liuli/"],  # the facade: it implements include/liuli
    "cli": ["core/", "liuli/"],  # an edge sees what a stranger's program sees
}

# Headers that only some files of a folder may include: (folder, header) -> beginnings of the paths below the folder.
ONLY_IN = {
    ("model", "formats/weight_source.h"): ["families/", "load.", "bind", "latent_attention_test", "tensor_roles.h", "weights.h"],  # nothing else knows that files exist
    ("model", "formats/panel_file.h"): ["panel_cache."],
}

# Public headers may include public headers; programs of examples/ nothing else; python/ is an edge like cli; tests/ and bench/ may see everything.
OUTSIDE_SRC = {"include": ["liuli/"], "examples": ["liuli/"], "python": ["liuli/", "core/"], "tests": None, "bench": None}

# Other people's headers, by the beginning of their path: the folders that may see them. Names not listed are the C and
# C++ library's, the system's and the compiler's.
EXTERNAL = {
    "hwy/": ["kernels"],
    "immintrin.h": ["kernels"],
    "CLI/": ["cli"],
    "utf8proc.h": ["tokenizers", "trace", "train", "cli"],
    "nlohmann/json.hpp": ["core", "formats", "tokenizers", "trace", "report", "train", "engine", "cli"],
    "gtest/": [],  # tests only
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
SOURCE = (".h", ".cpp", ".inc")
TEST_FILE = re.compile(r"(_test\.cpp|_test_\w+\.h|panel_samples\.h|temporary_folder\.h)$")


def allowed(entries, header):
    """Whether one of a row's entries covers the header."""
    return any(header == entry or (entry.endswith("/") and header.startswith(entry)) for entry in entries)


def external_entry(header):
    return next((key for key in EXTERNAL if header == key or (key.endswith("/") and header.startswith(key))), None)


def includes(path):
    """(line number, quote, header) of every #include line."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)


def sources(root, top):
    for folder, _, names in sorted(os.walk(os.path.join(root, top))):
        for name in sorted(names):
            if name.endswith(SOURCE):
                yield os.path.join(folder, name)


class Check:
    def __init__(self, root):
        self.root = root
        self.files = self.edges = 0
        self.violations = []

    def say(self, path, line, text):
        self.violations.append(f"{os.path.relpath(path, self.root)}:{line}: {text}")

    def exists(self, *parts):
        return os.path.exists(os.path.join(self.root, *parts))

    def run(self):
        self.table_is_downwards()
        for top in ["src", *OUTSIDE_SRC]:
            for path in sources(self.root, top):
                self.files += 1
                for line, quote, header in includes(path):
                    self.edges += 1
                    self.edge(top, path, line, quote, header)
        self.linked_libraries()

    def table_is_downwards(self):
        """Each row names only folders of rows before it, so there can be no cycle."""
        seen = set()
        for folder, entries in MAY_INCLUDE.items():
            for name in {entry.split("/")[0] for entry in entries} - {"liuli"} - seen:
                self.say(os.path.join(self.root, "tools", "check_layers.py"), 1,
                         f"the row of {folder} names {name}, which does not stand below it")
            seen.add(folder)

    def edge(self, top, path, line, quote, header):
        below = os.path.relpath(path, os.path.join(self.root, top)).replace(os.sep, "/")
        folder = below.split("/")[0] if top == "src" else top
        if external_entry(header):
            self.external(top, folder, path, line, header)
        elif not self.exists("src", header) and not self.exists("include", header):
            beside = os.path.exists(os.path.join(os.path.dirname(path), header))
            if quote == '"' and not (beside and top != "src"):
                self.say(path, line, f'"{header}" is neither below src/ nor below include/')
        elif top == "src":
            self.inside_src(folder, below, path, line, header)
        elif OUTSIDE_SRC[top] is not None and not allowed(OUTSIDE_SRC[top], header):
            self.say(path, line, f"{top}/ may not include {header}; it may include {' '.join(OUTSIDE_SRC[top])}")

    def inside_src(self, folder, below, path, line, header):
        row = MAY_INCLUDE.get(folder)
        if row is None:
            self.say(path, line, f"src/{folder}/ has no row in tools/check_layers.py")
        elif header.startswith(folder + "/"):
            return
        elif not allowed(row, header):
            self.say(path, line, f"{folder} may not include {header}; it may include {' '.join(row)}")
        elif not self.file_may(folder, below, header):
            self.say(path, line, f"in {folder} only {' '.join(ONLY_IN[folder, header])} may include {header}")

    @staticmethod
    def file_may(folder, below, header):
        files = ONLY_IN.get((folder, header))
        return files is None or below.split("/", 1)[1].startswith(tuple(files))

    def external(self, top, folder, path, line, header):
        folders = EXTERNAL[external_entry(header)]
        if top == "src" and folder not in folders and not TEST_FILE.search(path):
            self.say(path, line, f"{folder} may not include <{header}>; {' '.join(folders) or 'only tests'} may")

    def linked_libraries(self):
        """The CMake library of a folder links only libraries of its row."""
        for folder, row in MAY_INCLUDE.items():
            path = os.path.join(self.root, "src", folder, "CMakeLists.txt")
            if not os.path.exists(path):
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for call in re.finditer(rf"liuli_library\({folder}\b[^)]*?\bLINKS\b([^)]*)\)", text):
                for name in re.findall(r"\bliuli_(\w+)", call.group(1)):
                    if not any(entry.startswith(name + "/") for entry in row):
                        self.say(path, text.count("\n", 0, call.start()) + 1, f"liuli_{folder} may not link liuli_{name}")


def main(root):
    check = Check(root)
    check.run()
    for violation in check.violations:
        print(violation)
    print(f"{check.files} files, {check.edges} includes, {len(check.violations)} violations")
    if check.files == 0:
        print(f"{root}: no source file found", file=sys.stderr)
    return 1 if check.violations or check.files == 0 else 0


def self_test():
    """Writes a small tree with one violation of each kind, and the same lines where they are right."""
    tree = {
        "include/liuli/error.h": ["#include <string>"],
        "include/liuli/engine.h": ['#include "core/rows.h"  // BAD: a public header shows a private one'],
        "src/core/rows.h": ['#include "ops/norm.h"  // BAD: upwards', '#include "liuli/error.h"'],
        "src/ops/norm.h": ['#include "core/rows.h"', '#include "liuli/engine.h"  // BAD: the facade stands above'],
        "src/formats/weight_source.h": ['#include "gone.h"  // BAD: no such file', "#include <vector>"],
        "src/model/block.cpp": ['#include "formats/weight_source.h"  // BAD: only families and the loader know files'],
        "src/model/families/llama.cpp": ['#include "formats/weight_source.h"'],
        "src/trace/lens.cpp": ["#include <CLI/CLI.hpp>  // BAD: the command line's"],
        "src/trace/lens_test.cpp": ["#include <gtest/gtest.h>", '#  include "ops/norm.h"'],
        "src/cli/run.cpp": ['#include "model/block.h"  // BAD: an edge sees the public headers', '#include "liuli/error.h"'],
        "src/model/block.h": ["#pragma once"],
        "src/extra/new.cpp": ['#include "core/rows.h"  // BAD: a folder without a row'],
        "src/ops/CMakeLists.txt": ["liuli_library(ops SOURCES norm.cpp LINKS liuli_core liuli_model)  # BAD"],
        "tests/golden.cpp": ['#include "model/block.h"', '#include "support.h"'],
        "tests/support.h": ["#pragma once"],
    }
    expected = {f"{path}:{number}" for path, lines in tree.items() for number, line in enumerate(lines, 1) if "BAD" in line}
    with tempfile.TemporaryDirectory() as root:
        for path, lines in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
        check = Check(root)
        check.run()
    found = {":".join(violation.split(":")[:2]) for violation in check.violations}
    for place in sorted(expected - found):
        print(f"{place}: a violation that was not found")
    for place in sorted(found - expected):
        print(f"{place}: found, but it is none")
    print(f"{len(expected & found)} of {len(expected)} planted violations found")
    return 0 if found == expected else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(main(os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(here))))
