"""The rate of copies."""

from bookkeeper.repair.ledger.copier import ByteRate


def test_bytes_are_paid_for_by_waiting_and_idle_time_is_not_saved_up() -> None:
    rate = ByteRate(1000)
    assert rate.wait_after(500, 0.0) == 0.5
    assert rate.wait_after(500, 0.5) == 0.5
    assert rate.wait_after(1000, 100.0) == 1.0
    assert ByteRate(-1).wait_after(1 << 30, 0.0) == 0.0
