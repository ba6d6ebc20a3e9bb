"""Help texts of metrics."""

from ports.metrics.metric_help import FILE, head, help_of


def test_a_metric_begins_with_its_help_and_its_type() -> None:
    name = next(
        row.split(" ", 1)[0] for row in FILE.read_text().splitlines() if row[:1].isalpha() and "*" not in row.split(" ")[0]
    )
    assert help_of(name)
    assert head(name, "gauge") == f"# HELP {name} {help_of(name)}\n# TYPE {name} gauge\n"


def test_a_metric_without_help_has_a_type_alone() -> None:
    assert help_of("no_such_metric_anywhere") == ""
    assert head("no_such_metric_anywhere", "counter") == "# TYPE no_such_metric_anywhere counter\n"


def test_every_line_of_the_file_has_a_name_and_a_sentence() -> None:
    rows = [row for row in FILE.read_text().splitlines() if row and not row.startswith("#")]
    assert [row for row in rows if len(row.split(" ", 1)) < 2 or not row.split(" ", 1)[1].strip()] == []
    names = [row.split(" ", 1)[0] for row in rows]
    assert len(names) == len(set(names))
