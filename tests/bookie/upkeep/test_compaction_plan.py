"""Choice of the entry logs to compact."""

from hypothesis import given
from hypothesis import strategies as st

from bookie.upkeep.compaction_plan import DEAD_BYTES_MIN, LogUse, choose_logs

uses = st.builds(LogUse, st.integers(1, 30), st.integers(1, 10 * DEAD_BYTES_MIN), st.integers(0, 10 * DEAD_BYTES_MIN))


@given(st.lists(uses, unique_by=lambda use: use.log_id), st.floats(0, 1), st.integers(1, 20 * DEAD_BYTES_MIN))
def test_only_logs_below_the_threshold_are_chosen_and_no_more_than_fit(
    found: list[LogUse], threshold: float, bytes_max: int
) -> None:
    chosen = choose_logs(found, threshold, bytes_max)
    by_id = {use.log_id: use for use in found}
    assert all(by_id[log_id].live_share < threshold for log_id in chosen)
    assert len(chosen) == 1 or sum(by_id[log_id].live_bytes for log_id in chosen) <= bytes_max
    assert chosen == [use.log_id for use in found if use.log_id in chosen]
    worth = [use for use in found if use.live_share < threshold and use.log_bytes - use.live_bytes >= DEAD_BYTES_MIN]
    assert bool(chosen) == bool(worth)
