"""The metrics of several processes as one text: each series with the label of its process, each family once. Pure.

A sum would be wrong for most gauges and for summaries, so nothing is added up: Prometheus does that (`sum without (process)`).
No series stands twice, since no two processes have one number. A line costs no Python statement: there may be a million.
"""

import re
from collections.abc import Iterator, Mapping

LABEL = "process"
_HEAD = re.compile(rb"\n(# (?:HELP|TYPE) ([^ \n]+)[^\n]*)")
_NAME = re.compile(rb"\n([^#\s{]+)")


def merged(texts: Mapping[int, bytes]) -> Iterator[bytes]:
    """Pieces of the merged text, a family at a time, in the order of the first process that has it."""
    heads: dict[bytes, dict[bytes, None]] = {}
    bodies: dict[bytes, list[bytes]] = {}
    for number, text in texts.items():
        for name, head, samples in _families(b"\n" + text.rstrip(b"\n")):
            heads.setdefault(name, {})[head] = None
            if samples:
                bodies.setdefault(name, []).append(_labelled(samples, number))
    for name, samples_of_all in bodies.items():
        yield b"\n".join(heads[name]) + b"".join(samples_of_all) + b"\n"


def _families(text: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Name, a line of HELP or TYPE, and the lines up to the next such line, each with the line end before it."""
    found = list(_HEAD.finditer(text))
    for index, match in enumerate(found):
        end = found[index + 1].start() if index + 1 < len(found) else len(text)
        yield match[2], match[1], text[match.end() : end]


def _labelled(samples: bytes, number: int) -> bytes:
    """The label stands first."""
    label = f'{LABEL}="{number}"'.encode()
    for name in sorted(set(_NAME.findall(samples))):
        begin = b"\n" + name
        samples = samples.replace(begin + b"{} ", begin + b" ")
        samples = samples.replace(begin + b"{", begin + b"{" + label + b",").replace(begin + b" ", begin + b"{" + label + b"} ")
    return samples
