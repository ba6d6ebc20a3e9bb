"""`record`: a frozen dataclass with slots, as cheap to define and to make as a class with slots can be.

To the type checker it is `dataclasses.dataclass`: no code may assign to a field. While the program runs there is no second
guard, which would cost a call for each field of each object (`object.__setattr__`). Equality, hash and text are those of a
frozen dataclass, by functions that all records share: to generate them for each class is a third of the time of a start.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass, fields
    from operator import attrgetter

    def record(*, frozen, slots):
        assert frozen, "what may change is a dataclass like any other"
        assert slots
        return _made

    def _made(cls):
        own = {name: method for name, method in _SHARED.items() if name not in cls.__dict__}
        made = dataclass(slots=True, repr=False, eq=False)(cls)
        compared = [field.name for field in fields(made) if field.compare]
        made._compared = attrgetter(*compared) if compared else staticmethod(_nothing)
        for name, method in own.items():
            setattr(made, name, method)
        return made

    def _nothing(_):
        return ()

    def _equals(self, other):
        return self._compared(self) == self._compared(other) if other.__class__ is self.__class__ else NotImplemented

    def _hash(self):
        return hash(self._compared(self))

    def _text(self):
        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    _SHARED = {"__eq__": _equals, "__hash__": _hash, "__repr__": _text}


__all__ = ["record"]
