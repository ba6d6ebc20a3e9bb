"""`record`: the dataclass of what is made for each run, as cheap to make as a class with slots can be.

To the type checker it is `dataclasses.dataclass`, and with `frozen=True` nobody may assign to a field. While the program runs
there is no second guard: that one costs a call for each field of each object (`object.__setattr__`), a tenth of all that a
run of one message costs. Equality and hash are those of a frozen dataclass.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, slots):
        assert frozen, "what may change is a dataclass like any other"
        return dataclass(slots=slots, unsafe_hash=True)


__all__ = ["record"]
