"""`python -m tests.pipeline.random_topics --seeds 500`: topics by chance on servers of its own, read by all ways, compared."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pulsar

from .run import run
from .servers import cluster, standalone


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Whole topics by chance, read by all ways of the pipeline's and by Apache's client."
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--round", type=int, default=25, help="topics between two kills of the server")
    parser.add_argument("--queries", type=int, default=3, help="of each topic, beside the whole of it")
    parser.add_argument("--cluster", action="store_true", help="bookies of their own instead of a standalone")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interpulse-random-") as scratch:
        directory = Path(scratch)
        seeds = range(asked.first, asked.first + asked.seeds)
        with cluster(directory) if asked.cluster else standalone(directory) as servers:
            failures, figures = run(servers, seeds, asked.round, asked.queries, keys_in(directory))
    for name, count in sorted(figures.counts.items()):
        print(f"{count:9} {name}")
    print(f"{len(seeds)} seeds in {time.monotonic() - began:.0f} s, {len(failures)} differ: {sorted(failures)}")
    return 1 if failures else 0


def keys_in(directory: Path) -> pulsar.CryptoKeyReader | None:
    """A new pair of keys; None without openssl."""
    if shutil.which("openssl") is None:
        return None
    private, public = str(directory / "private.pem"), str(directory / "public.pem")
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True, timeout=60)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True, timeout=60)
    return pulsar.CryptoKeyReader(public, private)


if __name__ == "__main__":
    sys.exit(main())
