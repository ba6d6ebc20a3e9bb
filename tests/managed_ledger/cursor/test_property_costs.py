"""Properties of a subscription, which its client gives, cost time linear in their number wherever a cursor keeps them."""

from collections.abc import Callable
from typing import Any

from pyroaring import BitMap

from managed_ledger.cursor.properties import OWN_PREFIXES, bucket_key, bucket_ledgers, internal, public
from managed_ledger.cursor.state import NO_LEDGER, CursorState, decode_node, decode_position, encode_node, encode_position
from tests.cost import assert_linear
from wire.position import Position

N = 200


def _properties(n: int) -> dict[str, str]:
    return {**{f"name{each}": "value" for each in range(n)}, **{bucket_key(each): str(each) for each in range(n)}}


def test_properties_of_a_subscription_are_stored_and_read_in_linear_time() -> None:
    def work(n: int) -> Callable[[], Any]:
        given, state = _properties(n), CursorState(Position(1, 1), {1: BitMap((3,))}, (), {})

        def stored() -> None:
            read = decode_node("c", encode_node(NO_LEDGER, state, given, 1)).cursor_properties
            assert {**internal(read), **public(read)} == given
            assert len(bucket_ledgers(read)) == len(given) // 2

        return stored

    assert_linear(work, N)


def test_properties_of_an_acknowledgement_are_stored_and_read_in_linear_time() -> None:
    def work(n: int) -> Callable[[], Any]:
        state = CursorState(Position(1, 1), {}, (), {f"name{each}": each for each in range(n)})

        def stored() -> None:
            encoded, _ = encode_position(state, as_long_array=True)
            assert decode_position("c", encoded).properties == state.properties

        return stored

    assert_linear(work, N)


def test_no_name_of_a_client_is_taken_for_the_brokers_own() -> None:
    assert not internal({"name": "x", "": "y"})
    assert all(internal({prefix: "x"}) for prefix in OWN_PREFIXES)
