"""Find out under which licence each Debian package's description stands, by reading its copyright file.

A description is part of `debian/control`, so its licence is what the package's own copyright file says about
that path. One small package of every source package is fetched from a mirror, checked against the SHA-256 of
the (signed) package index, and `usr/share/doc/*/copyright` is read out of it. Only machine-readable copyright
files (copyright-format 1.0) are trusted; a package with a free-form file is left out.

    package index + mirror  ->  folder of copyright files, one a source package (kept: a second run goes on)
                            ->  table: package, source, version, licence, copyright holders (TSV, sorted)

    python tools/debian_licences.py PACKAGES MIRROR NAMES FOLDER TABLE [--largest-kb 400]

PACKAGES is an uncompressed `Packages` index, MIRROR the address of the archive it belongs to, NAMES a file
with one package name a line. Needs `dpkg-deb`. `tools/make_debtags_sample.py` reads the table.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CONTROL = "debian/control"
"""The path that holds the description of a package."""
FORMAT = "packaging-manuals/copyright-format/1.0"

Fields = dict[str, str]


def read_paragraphs(text: str) -> Iterator[Fields]:
    """The paragraphs of a Debian control file; continuation lines stay in their field, one a line."""
    for block in re.split(r"\n(?:[ \t]*\n)+", text):
        fields: Fields = {}
        name = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t") and name:
                fields[name] += "\n" + line.strip()
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if fields:
            yield fields


def licence_of_description(copyright_file: str) -> tuple[str, str] | None:
    """Licence and holders (without mail addresses) of `debian/control`; None where the file has another form."""
    header, *stanzas = list(read_paragraphs(copyright_file)) or [{}]
    if FORMAT not in header.get("format", ""):
        return None
    found = None
    for stanza in stanzas:
        patterns = stanza.get("files", "").split()
        if any(fnmatch.fnmatchcase(CONTROL, pattern.removeprefix("./")) for pattern in patterns):
            found = stanza  # the last match counts, says the format
    if found is None or not found.get("license") or not found.get("copyright"):
        return None
    licence = found["license"].splitlines()[0].strip()
    lines = (
        re.sub(r"\s*<[^<>]*>[\s,;]*|\S+@\S+|\s+", " ", line).strip(" ,;") for line in found["copyright"].splitlines()
    )
    return (licence, "; ".join(line for line in lines if line)) if licence else None


def source_of(package: Fields) -> str:
    """The source package that a binary package was built from."""
    return package.get("source", package["package"]).split(" ")[0]


def fetch_copyright(package: Fields, mirror: str, target: Path) -> None:
    """Store the copyright file of `package` as `target`; an empty file says that it ships none."""
    with urllib.request.urlopen(f"{mirror.rstrip('/')}/{package['filename']}", timeout=60) as answer:
        archive = answer.read()
    if hashlib.sha256(archive).hexdigest() != package["sha256"]:
        raise ValueError(f"{package['filename']} must have SHA-256 {package['sha256']}; update the index and try again")
    with tempfile.NamedTemporaryFile(suffix=".deb") as deb:
        deb.write(archive)
        deb.flush()
        files = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb.name], check=True, capture_output=True).stdout
    text = b""
    with tarfile.open(fileobj=io.BytesIO(files)) as tar:
        for member in tar:
            if re.fullmatch(r"\./usr/share/doc/[^/]+/copyright", member.name) and member.isfile():
                stream = tar.extractfile(member)
                text = stream.read() if stream else b""
    target.write_bytes(text)


def fetch_all(index: dict[str, Fields], names: list[str], mirror: str, folder: Path, largest_kb: int) -> None:
    """Fetch the copyright file of every source package of `names` that has a package of at most `largest_kb`."""
    siblings = defaultdict(list)
    for package in index.values():
        siblings[source_of(package)].append(package)
    wanted = {source_of(index[name]) for name in names if name in index}
    smallest = [min(siblings[source], key=lambda p: (int(p["size"]), p["package"])) for source in sorted(wanted)]
    missing = [
        package
        for package in smallest
        if int(package["size"]) <= largest_kb * 1024 and not (folder / source_of(package)).exists()
    ]

    def fetch(package: Fields) -> None:
        try:
            fetch_copyright(package, mirror, folder / source_of(package))
        except (urllib.error.URLError, TimeoutError, ValueError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"{package['package']}: {error}\n")

    with ThreadPoolExecutor(4) as pool:
        for done, _ in enumerate(pool.map(fetch, missing), 1):
            if done % 500 == 0 or done == len(missing):
                sys.stderr.write(f"{done:,} of {len(missing):,} fetched\n")


def write_table(index: dict[str, Fields], names: list[str], folder: Path, table: Path) -> None:
    """Write what the copyright files in `folder` say about the descriptions of `names`."""
    rows = []
    for name in sorted(set(names) & set(index)):
        source = source_of(index[name])
        file = folder / source
        found = licence_of_description(file.read_text("utf-8", "replace")) if file.exists() else None
        if found is not None:
            rows.append("\t".join((name, source, index[name]["version"], *found)))
    table.write_text("".join(row + "\n" for row in rows), "utf-8")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("packages", type=Path, help="uncompressed Packages index")
    parser.add_argument("mirror", help="address of the archive of that index")
    parser.add_argument("names", type=Path, help="file with one package name a line")
    parser.add_argument("folder", type=Path, help="where copyright files are kept")
    parser.add_argument("table", type=Path, help="the table to write")
    parser.add_argument("--largest-kb", type=int, default=400, help="fetch no package larger than this")
    arguments = parser.parse_args()
    index = {p["package"]: p for p in read_paragraphs(arguments.packages.read_text("utf-8")) if "package" in p}
    names = arguments.names.read_text("utf-8").split()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    fetch_all(index, names, arguments.mirror, arguments.folder, arguments.largest_kb)
    write_table(index, names, arguments.folder, arguments.table)


if __name__ == "__main__":
    main()
