"""Files of a release's wheel on PyPI, read by ranges, so that the rest of the wheel stays where it is.

    version, texts = read("torch", None, {"schedules.py": "torch/distributed/pipelining/schedules.py"})
"""

import io
import json
import re
import urllib.error
import urllib.request
import zipfile

INDEX = "https://pypi.org/simple/{}/"
SECONDS = 30  # without an answer, PyPI cannot be reached
BLOCK = 1 << 18  # bytes of a range


class Unreachable(Exception):
    """PyPI does not answer."""


class NoRelease(Exception):
    """PyPI has no wheel of that version, or not these files in it."""


def opened(url, **headers):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SECONDS)
    except urllib.error.HTTPError as refused:
        raise NoRelease(f"{url}: {refused}") from None
    except OSError as why:
        raise Unreachable(f"{url}: {why}") from None


class Ranges(io.RawIOBase):
    """A file behind a URL, of which only what is read is fetched."""

    def __init__(self, url, size):
        self.url, self.size, self.at, self.fetched = url, size, 0, 0

    def seekable(self):
        return True

    readable = seekable

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def tell(self):
        return self.at

    def readinto(self, buffer):
        end = min(self.at + len(buffer), self.size)
        if end <= self.at:
            return 0
        with opened(self.url, Range=f"bytes={self.at}-{end - 1}") as answer:
            if answer.status != 206:
                raise NoRelease(f"{self.url}: the server sends no ranges")
            data = answer.read()
        buffer[: len(data)] = data
        self.at += len(data)
        self.fetched += len(data)
        return len(data)


def numbers(version):
    """A key that orders versions; None for what is no release, such as 2.16.0rc1."""
    return tuple(map(int, version.split("."))) if re.fullmatch(r"\d+(\.\d+)*", version) else None


def wheels(index):
    """By version: the URL and size of one of its wheels, which all have the same Python files."""
    found = {}
    for file in index["files"]:
        version = file["filename"].split("-")[1] if file["filename"].endswith(".whl") else ""
        version = version.split("+")[0]
        if numbers(version) and not file.get("yanked"):
            found.setdefault(version, (file["url"], file["size"]))
    return found


def read(package, version, paths):
    """The version, the newest where none is asked for, and the text of each of its files by name."""
    with opened(INDEX.format(package), Accept="application/vnd.pypi.simple.v1+json") as answer:
        found = wheels(json.load(answer))
    version = version or max(found, key=numbers, default=None)
    if version not in found:
        raise NoRelease(f"{package}: no wheel of {version or 'any version'}; the newest is {max(found, key=numbers, default='none')}")
    with zipfile.ZipFile(io.BufferedReader(Ranges(*found[version]), BLOCK)) as wheel:
        missing = sorted(set(paths.values()) - set(wheel.namelist()))
        if missing:
            raise NoRelease(f"{package} {version} has no {', '.join(missing)}")
        return version, {name: wheel.read(path).decode() for name, path in paths.items()}
