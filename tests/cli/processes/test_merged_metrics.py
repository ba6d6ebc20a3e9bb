"""The metrics of several processes in one text: nothing is lost, nothing stands twice, and a strict reader takes it."""

from hypothesis import given
from hypothesis import strategies as st

from cli.processes.merged_metrics import merged
from tests.prometheus_text import families

TEXT = """# HELP a Things.
# TYPE a gauge
a{cluster="c",topic="t{ }\\n# TYPE x"} 1
a 2
# HELP b Times.
# TYPE b histogram
b_bucket{le="1.0"} 1
b_bucket{le="+Inf"} 2
b_count 2
b_sum 1.5
"""


def together(texts: dict[int, str]) -> str:
    return b"".join(merged({number: text.encode() for number, text in texts.items()})).decode()


def test_each_series_has_the_label_of_its_process_and_each_family_stands_once() -> None:
    found = families(together({1: TEXT, 2: TEXT}))
    assert list(found) == ["a", "b"]
    assert found["a"].help == "Things."
    assert set(found["a"].samples) == {
        'a{process="1",cluster="c",topic="t{ }\\n# TYPE x"}',
        'a{process="1"}',
        'a{process="2",cluster="c",topic="t{ }\\n# TYPE x"}',
        'a{process="2"}',
    }
    assert found["b"].samples['b_bucket{process="2",le="+Inf"}'] == 2


def test_a_family_that_one_process_alone_has_is_there() -> None:
    found = families(together({1: TEXT, 3: "# HELP z Zs.\n# TYPE z counter\nz{} 7\n"}))
    assert found["z"].samples == {'z{process="3"}': 7}


def test_no_process_tells_anything() -> None:
    assert together({}) == together({1: ""}) == ""


NAMES = st.sampled_from(("m", "mm", "m_m", "n"))
VALUES = st.text(st.sampled_from('a{} ,="\\\n#'), max_size=8)
SERIES = st.dictionaries(st.tuples(NAMES, VALUES), st.integers(0, 99), max_size=12)


def written(series: dict[tuple[str, str], int]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    names = sorted({name for name, _ in series})
    parts = []
    for name in names:
        lines = [f'{name}{{v="{escaped(value)}"}} {count}\n' for (own, value), count in series.items() if own == name]
        parts.append(f"# HELP {name} Some.\n# TYPE {name} gauge\n" + "".join(lines))
    return "".join(parts)


@given(one=SERIES, other=SERIES)
def test_every_series_of_every_process_is_there_with_its_value(
    one: dict[tuple[str, str], int], other: dict[tuple[str, str], int]
) -> None:
    found = families(together({1: written(one), 2: written(other)}))
    told = {label: value for family in found.values() for label, value in family.samples.items()}
    apart = {
        label.replace("{", f'{{process="{number}",', 1): value
        for number, series in ((1, one), (2, other))
        for family in families(written(series)).values()
        for label, value in family.samples.items()
    }
    assert told == apart
