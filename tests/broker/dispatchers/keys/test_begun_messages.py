"""Messages in chunks, begun by a consumer: which consumer gets the rest and keeps which slots, and what is forgotten."""

from pyroaring import BitMap

from broker.dispatchers.contract import ConsumerAdded, ConsumerId
from broker.dispatchers.entry_sets import EntrySet
from broker.dispatchers.keys.begun_slots import BegunSlots
from broker.dispatchers.keys.chunks import Chunk, ChunkedMessages
from broker.dispatchers.keys.selectors import ConsistentHashing
from broker.dispatchers.permits import Receiver
from wire.position import Position

LEDGER = 5
ONE, TWO = ConsumerId(1), ConsumerId(2)


def at(entry_id: int) -> Position:
    return Position(LEDGER, entry_id)


def receiver(number: int) -> Receiver:
    return Receiver(ConsumerAdded(ConsumerId(number), f"c{number}"))


def all_of(consumer: ConsumerId) -> ConsistentHashing:
    selector = ConsistentHashing(1)
    selector.add(ConsumerAdded(consumer, "all"))
    return selector


def test_the_slots_of_begun_messages_stay_while_their_consumer_is_there() -> None:
    begun = BegunSlots()
    begun.delivered(Chunk("a", 0, False), at(0), 10, ONE)
    begun.delivered(Chunk("b", 0, False), at(1), 20, TWO)
    begun.left(ONE)
    kept = begun.kept_in(all_of(ConsumerId(3)).assignment())
    assert [kept.owner(slot) for slot in (9, 10, 20, 21)] == [3, 3, TWO, 3]


def test_a_kept_slot_may_move_when_its_message_is_whole_and_not_before() -> None:
    begun = BegunSlots()
    begun.delivered(Chunk("a", 0, False), at(0), 10, ONE)
    assert not begun.may_move, "it is where it would be anyway"
    begun.kept_in(all_of(TWO).assignment())
    assert not begun.may_move
    begun.delivered(Chunk("a", 1, True), at(1), 10, ONE)
    assert begun.may_move


def test_clearing_begun_slots_forgets_the_kept_ones_too() -> None:
    begun = BegunSlots()
    begun.delivered(Chunk("a", 0, False), at(0), 10, ONE)
    begun.kept_in(all_of(TWO).assignment())
    begun.clear()
    assert not begun
    assert not begun.may_move


def test_a_message_that_another_has_begun_anew_is_not_given_up_with_its_old_first_chunk() -> None:
    begun = BegunSlots()
    begun.delivered(Chunk("a", 0, False), at(0), 10, ONE)
    begun.delivered(Chunk("a", 0, False), at(7), 10, TWO)
    begun.check_invariants()
    begun.dropped(LEDGER, BitMap([0]))
    assert begun
    begun.dropped(LEDGER, BitMap([7]))
    assert not begun


def test_a_consumer_that_leaves_gives_up_only_its_own_chunked_messages() -> None:
    messages, one, two = ChunkedMessages(), receiver(1), receiver(2)
    for uuid, entry_id, owner in (("a", 0, one), ("b", 1, two)):
        messages.read(Chunk(uuid, 0, False), at(entry_id))
        messages.begun(Chunk(uuid, 0, False), owner)
    messages.left(one)
    assert messages.read(Chunk("a", 1, True), at(2)) is None
    assert messages.read(Chunk("b", 1, True), at(3)) is two


def test_after_a_seek_nothing_is_known_of_messages_and_nothing_waits() -> None:
    messages, one = ChunkedMessages(), receiver(1)
    messages.read(Chunk("a", 0, False), at(0))
    messages.begun(Chunk("a", 0, False), one)
    messages.read(Chunk("a", 1, False), at(1))
    messages.wait(one, at(1))
    messages.clear()
    messages.check_invariants()
    assert not messages
    assert not messages.waiting
    assert not messages.take_ready(lambda _: 1)
    assert messages.read(Chunk("a", 1, False), at(1)) is None, "nobody has begun it"
    assert not messages.is_behind(Chunk("a", 1, False), at(1), EntrySet())
