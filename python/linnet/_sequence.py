"""Sequences at the edges of a model: lists for whoever runs it, an input or output for each element in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ._errors import LinnetError

T = TypeVar("T")

_LENGTH, _PLACE = "sequence.", "sequence_output."


class Sequences:
    """What the metadata of a model says of its inputs and outputs, as far as these are there."""

    def __init__(self, pairs: Mapping[str, str], inputs: Iterable[str], outputs: Sequence[str]) -> None:
        lengths = {key[len(_LENGTH):]: _number(text) for key, text in pairs.items() if key.startswith(_LENGTH)}
        places = {_number(text): key[len(_PLACE):] for key, text in pairs.items() if key.startswith(_PLACE)}
        known, given = set(inputs), set(outputs)
        only_out = set(places.values())
        self.inputs = {name: _elements(name, n) for name, n in lengths.items()
                       if _all_in(name, n, known) and (n or name not in only_out)}
        self.nothing = {name for name in lengths if pairs[_LENGTH + name] == "none"}
        self._of_output = {name: _elements(name, lengths[name]) for name in only_out
                           if name in lengths and _all_in(name, lengths[name], given)}
        self.outputs = self._order(outputs, places)

    def __bool__(self) -> bool:
        return bool(self.inputs or self._of_output or self.nothing)

    def _order(self, outputs: Sequence[str], places: Mapping[int | None, str]) -> list[str]:
        """Names as the model had them: a sequence in place of its elements."""
        order: list[str] = []
        left = list(outputs)
        while left or places.get(len(order)) in self._of_output:
            name = places.get(len(order))
            elements = self._of_output.get(name) if name is not None else None
            if name is None or elements is None or left[: len(elements)] != elements:
                order.append(left.pop(0))
            else:
                order.append(name)
                del left[: len(elements)]
        return order

    def feed(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        """The feed with elements in place of lists."""
        spread: dict[str, Any] = {}
        for name, value in feed.items():
            if name in self.nothing:
                if value is not None:
                    raise LinnetError(1, f"input {name!r} holds nothing: the model was converted so; give None")
            elif name not in self.inputs:
                spread[name] = value
            else:
                spread.update(zip(self.inputs[name], self._checked(name, value)))
        return spread

    def _checked(self, name: str, value: Any) -> Sequence[Any]:
        n = len(self.inputs[name])
        if not isinstance(value, (list, tuple)):
            raise LinnetError(1, f"input {name!r} is a sequence: give a list of {n} arrays, not {type(value).__name__}")
        if len(value) != n:
            raise LinnetError(5, f"input {name!r} is a sequence of {n}, is given {len(value)}: its length is fixed when the model is "
                                 f"converted, by lengths={{{name!r}: {len(value)}}}")
        return value

    def names(self, names: Sequence[str] | None) -> list[str]:
        """Outputs to ask the session for."""
        return [element for name in names or self.outputs for element in self._of_output.get(name, [name])]

    def gather(self, names: Sequence[str] | None, values: Sequence[T]) -> list[T | list[T]]:
        """What came out under names(), lists in place of elements."""
        left, gathered = iter(values), []
        for name in names or self.outputs:
            elements = self._of_output.get(name)
            gathered.append(next(left) if elements is None else [next(left) for _ in elements])
        return gathered

    def ports(self, ports: Sequence[T], names: Iterable[str], of: Mapping[str, list[str]]) -> list[tuple[str | None, T | None]]:
        """Each tensor with no name; each sequence with its name and its first element, None where it has none."""
        by_name = {port.name: port for port in ports}  # type: ignore[attr-defined]
        return [(None, by_name[name]) if name not in of else (name, by_name.get(of[name][0]) if of[name] else None) for name in names]

    def input_ports(self, ports: Sequence[T]) -> list[tuple[str | None, T | None]]:
        """Of the inputs: sequences where their first element is, those without elements at the end."""
        owner = {element: name for name, elements in self.inputs.items() for element in elements}
        names = dict.fromkeys(owner.get(port.name, port.name) for port in ports)  # type: ignore[attr-defined]
        return self.ports(ports, [*names, *(name for name in self.inputs if name not in names)], self.inputs)

    def output_ports(self, ports: Sequence[T]) -> list[tuple[str | None, T | None]]:
        """Of the outputs, in the model's order."""
        return self.ports(ports, self.outputs, self._of_output)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else None


def _elements(name: str, n: int | None) -> list[str]:
    return [f"{name}.{i}" for i in range(n or 0)]


def _all_in(name: str, n: int | None, names: set[str]) -> bool:
    return n is not None and names.issuperset(_elements(name, n))
