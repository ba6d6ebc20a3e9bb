"""DiskWatch: the room of disks, and settings that fit small disks."""

from bookie.disk_space.disk_watch import LOG_BYTES_MIN, DiskWatch, Room, fitted
from bookie.settings import MEGABYTE, BookieSettings
from ports.disk.disk_usage import DiskUsage

WATCH = DiskWatch(threshold=0.95, low_water_mark=0.90, warn_threshold=0.90)
GIGABYTE = 1024 * MEGABYTE


def used(percent: int) -> DiskUsage:
    return DiskUsage(total_bytes=100, free_bytes=100 - percent)


def test_room_depends_on_the_fullest_disk() -> None:
    assert WATCH.room([used(10), used(89)], was_full=False) is Room.ENOUGH
    assert WATCH.room([used(91), used(10)], was_full=False) is Room.LITTLE
    assert WATCH.room([used(10), used(96)], was_full=False) is Room.NONE
    assert WATCH.room([], was_full=False) is Room.ENOUGH


def test_a_full_bookie_stays_full_until_the_usage_is_below_the_low_water_mark() -> None:
    assert WATCH.room([used(91)], was_full=True) is Room.NONE
    assert WATCH.room([used(89)], was_full=True) is Room.ENOUGH


def test_left_bytes_are_those_of_the_fullest_disk_and_negative_beyond_the_threshold() -> None:
    assert WATCH.left_bytes([used(10), used(90)]) == 5
    assert WATCH.left_bytes([used(98)]) == -3


def test_disks_above_two_gigabytes_change_none_of_the_sizes() -> None:
    settings = BookieSettings()
    changed = fitted(settings, 3 * GIGABYTE, 3 * GIGABYTE)
    assert changed.journal_max_size_mb == settings.journal_max_size_mb
    assert changed.journal_pre_alloc_size_mb == settings.journal_pre_alloc_size_mb
    assert changed.db_storage_write_cache_max_size_mb == settings.db_storage_write_cache_max_size_mb
    assert changed.log_size_limit == settings.log_size_limit


def test_files_are_a_small_part_of_a_small_disk() -> None:
    changed = fitted(BookieSettings(), 64 * MEGABYTE, 64 * MEGABYTE)
    assert (changed.journal_max_size_mb, changed.journal_pre_alloc_size_mb) == (4, 1)
    assert (changed.db_storage_write_cache_max_size_mb, changed.log_size_limit) == (4, 4 * MEGABYTE)
    assert fitted(BookieSettings(), MEGABYTE, MEGABYTE // 100).log_size_limit == LOG_BYTES_MIN


def test_recoveries_get_half_of_the_room_above_the_threshold_unless_the_operator_says_otherwise() -> None:
    small = fitted(BookieSettings(), 100 * MEGABYTE, 100 * MEGABYTE)
    assert small.min_usable_size_for_high_priority_writes == int((1 - 0.95) * 100 * MEGABYTE) // 2
    given = fitted(BookieSettings(min_usable_size_for_high_priority_writes=7), 100 * MEGABYTE, 100 * MEGABYTE)
    assert given.min_usable_size_for_high_priority_writes == 7
