"""Stripes: several journal and ledger directories as pairs of one each. Pure.

There are as many stripes as there are directories of the kind of which there are more; a directory that several stripes share
gets a folder for each. A ledger is of stripe `ledger id mod stripes`, for ever: so the directories, their number and their
order stay what they were at the first start, which the VERSION file of each holds.
"""

import dataclasses

from bookie.settings import BookieSettings


def stripe_count(settings: BookieSettings) -> int:
    return max(len(settings.journal_directories), len(settings.ledger_directories))


def stripe_settings(settings: BookieSettings) -> list[BookieSettings]:
    """One bookie's settings for each stripe; what is bounded for all of them together is divided."""
    count = stripe_count(settings)
    if count == 1:
        return [settings]
    return [
        dataclasses.replace(
            settings,
            journal_directories=(_directory(settings.journal_directories, index, count),),
            ledger_directories=(_directory(settings.ledger_directories, index, count),),
            db_storage_write_cache_max_size_mb=_share(settings.db_storage_write_cache_max_size_mb, count),
            db_storage_read_ahead_cache_max_size_mb=_share(settings.db_storage_read_ahead_cache_max_size_mb, count),
            open_file_limit=_share(settings.open_files_max, count),
            max_reads_in_progress_limit=_share(settings.reads_in_progress_max, count),
        )
        for index in range(count)
    ]


def _share(whole: int, count: int) -> int:
    return max(1, whole // count)


def _directory(directories: tuple[str, ...], index: int, count: int) -> str:
    directory = directories[index % len(directories)]
    return directory if len(directories) == count else f"{directory}/{index}"
