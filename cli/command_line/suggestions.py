"""`Did you mean ...?` for a word that is not known: a command, an option, a key. Pure; standard library alone."""

from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ " Did you mean 'stats'?", or "" where nothing is near. A word that begins like `word` counts as near."""
    from difflib import get_close_matches  # only a mistake pays for this import

    by_letters = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), by_letters, n=1, cutoff=0.6)
    near += sorted(each for each in by_letters if each not in near and len(word) > 2 and each.startswith(word.lower()))
    shown = [f"'{by_letters[each]}'" for each in near[:2]]
    return f" Did you mean {' or '.join(shown)}?" if shown else ""
