"""An error of a bookie says which code, at which ledger, and why, where there is a reason."""

from wire.bookie.codes import BookieCode, BookieError


def test_the_text_of_an_error_names_code_and_ledger_and_the_reason_where_there_is_one() -> None:
    error = BookieError(BookieCode.EFENCED, 7, "by another writer")
    assert str(error) == "EFENCED ledger 7 by another writer"
    assert (error.code, error.ledger_id, error.detail) == (104, 7, "by another writer")
    assert str(BookieError(BookieCode.ENOENTRY, 7)) == "ENOENTRY ledger 7"
