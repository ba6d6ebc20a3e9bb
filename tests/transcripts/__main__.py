"""`python -m tests.transcripts`: replays all transcripts and names the first line of each that differs.

`--rewrite` writes the outcomes of the machines into the files: read the difference before you commit it.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.transcripts.stories import FOLDER, replayed, stories
from tests.transcripts.transcript import first_difference


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.transcripts", description="Replay the transcripts of the machines.")
    parser.add_argument("--rewrite", action="store_true", help="write what the machines do now into the transcripts")
    is_rewriting = parser.parse_args(arguments).rewrite
    different = total = 0
    for story in stories():
        total += 1
        before, now = story.read_text(), replayed(story)
        found = first_difference(before, now)
        if before != now:
            different += 1
            line = 0 if found is None else found[0]
            print(f"{story.relative_to(FOLDER)}:{line} {'rewritten' if is_rewriting else 'differs'}")
            if is_rewriting:
                story.write_text(now)
    print(f"{total} transcripts, {different} {'rewritten' if is_rewriting else 'differ'}")
    return int(different > 0 and not is_rewriting)


if __name__ == "__main__":
    sys.exit(main())
