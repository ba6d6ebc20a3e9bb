"""Stripes: pairs of a journal and a ledger directory."""

from bookie.settings import BookieSettings
from bookie.stripes import stripe_count, stripe_settings


def test_a_bookie_with_one_pair_of_directories_keeps_its_settings() -> None:
    settings = BookieSettings(("/j",), ("/l",))
    assert stripe_count(settings) == 1
    assert stripe_settings(settings) == [settings]


def test_stripes_that_share_a_directory_get_a_folder_each() -> None:
    stripes = stripe_settings(BookieSettings(("/j",), ("/a", "/b", "/c")))
    assert [(each.journal_directories, each.ledger_directories) for each in stripes] == [
        (("/j/0",), ("/a",)),
        (("/j/1",), ("/b",)),
        (("/j/2",), ("/c",)),
    ]


def test_bounds_for_all_stripes_together_are_divided_and_never_zero() -> None:
    settings = BookieSettings(
        ("/a", "/b"),
        ("/l",),
        db_storage_write_cache_max_size_mb=32,
        db_storage_read_ahead_cache_max_size_mb=1,
        open_file_limit=10,
        max_reads_in_progress_limit=6,
    )
    for each in stripe_settings(settings):
        assert each.db_storage_write_cache_max_size_mb == 16
        assert each.db_storage_read_ahead_cache_max_size_mb == 1
        assert (each.open_file_limit, each.max_reads_in_progress_limit) == (5, 3)
