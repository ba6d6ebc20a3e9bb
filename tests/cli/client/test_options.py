"""Answers of pulsar-client to wrong usage, and its options."""

import pytest

from cli.client.__main__ import main
from cli.client.produce import _properties


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["consume", "t"], "Missing required option: '--subscription-name="),
        (["produce", "t", "-c"], "--chunking: not offered here"),
        (["produce", "t", "-vs", "avro", "-m", "x"], "expected bytes, string, avro:DEFINITION or json:DEFINITION"),
        (["produce", "t", "-m", "x", "-n", "0"], "Number of times need to be positive number."),
        (["produce", "t", "-m", "x", "-p", "a"], "expected KEY=VALUE"),
        (["consume", "t", "-s", "s", "-t", "Wrong"], "Exclusive"),
        (["consume", "t", "-s", "s", "-st", "avro"], "expected one of [bytes, auto_consume]"),
        (["consume", "t", "-s", "s", "--regx"], "Unknown option: '--regx'. Did you mean '--regex'?"),
        (["consume", "public/default/(", "-s", "s", "--regex"], "not a regular expression"),
        (["consume", "t", "-s", "s", "-n", "-1"], "Number of messages should be zero or positive."),
        (["read", "t", "-m", "5"], "expected earliest, latest or <ledgerId>:<entryId>"),
        (["consume", "a/b", "-s", "s"], "Invalid short topic name 'a/b'"),
        (["consume", "t", "-s", "s", "-mc", "5"], "--max_chunked_msg: not offered here"),
        (["consume", "t", "-s", "s", "-ca", "CONSUME"], "--crypto-failure-action: not offered here"),
        (["prodce", "t"], "Unknown command: 'prodce'. Did you mean 'produce'?"),
        ([], "Missing command"),
    ],
)
def test_wrong_usage_is_told_with_exit_code_1(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert said in capsys.readouterr().err


def test_a_broker_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--url", "pulsar://127.0.0.1:1", "produce", "t", "-m", "x"]) == 1
    assert "pulsar://127.0.0.1:1" in capsys.readouterr().err


def test_properties_are_separated_by_commas_where_each_part_is_one() -> None:
    found = [(each.key, each.value) for each in _properties(["a=b,c=d", "list=1,2", "e=f=g"])]
    assert found == [("a", "b"), ("c", "d"), ("list", "1,2"), ("e", "f=g")]
