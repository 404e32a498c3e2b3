from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtail.errors import DataError
from longtail.review.adding import Queue, make_queue
from longtail.review.desk import ClaimedText, Decision, Shown, claim, claim_new_text, decide, undo
from longtail.review.history import label_names, log, opinions
from longtail.review.schema import DECISIONS, SLOTS
from longtail.review.statistics import progress
from longtail.review.store import ReviewStore

QueueOf = Callable[..., Queue]


def taken(store: ReviewStore, queue: Queue, person: str, **options: object) -> ClaimedText:
    text = claim(store, queue, person, **options)  # type: ignore[arg-type]
    assert text is not None
    return text


def test_two_people_get_different_texts_in_the_order_of_the_file(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 3)
    texts = [taken(store, queue, person).fields["text"] for person in ("ada", "bob", "cyd")]
    assert texts == ["text 0", "text 1", "text 2"]
    assert claim(store, queue, "dan") is None


def test_a_person_who_asks_again_gets_the_text_they_have(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    first = taken(store, queue, "ada")
    assert taken(store, queue, "ada").id == first.id
    assert taken(store, queue, "ada", without=[first.id]).id != first.id


def test_many_at_once_never_get_the_same_text(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 60, per_text=1)
    got: list[tuple[int, str]] = []

    def work(person: str) -> None:
        while (text := claim(store, queue, person)) is not None:
            got.append((text.id, person))
            decide(store, Decision(f"{person}/{text.id}", text.id, person))

    threads = [threading.Thread(target=work, args=(f"person {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Counter(text for text, _ in got).values()) == [1] * 60


def test_one_person_in_many_windows_never_gets_two_slots_of_one_text(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 4, per_text=4)
    got: list[int] = []

    def work() -> None:
        held: list[int] = []
        while (text := claim(store, queue, "ada", without=held)) is not None:
            held.append(text.id)
        got.extend(held)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.reading() as connection:
        slots = connection.execute(sa.select(SLOTS.c.text_id).where(SLOTS.c.person == "ada")).scalars().all()
    assert sorted(slots) == sorted(set(got))


def test_an_expired_claim_is_free_when_somebody_asks_and_not_before(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 1)
    text = taken(store, queue, "ada", lease_s=60, now=1000.0)
    assert claim(store, queue, "bob", now=1059.0) is None
    assert taken(store, queue, "ada", lease_s=60, now=1061.0).id == text.id, "nobody else wanted it"
    assert taken(store, queue, "bob", now=1122.0).id == text.id
    assert claim(store, queue, "ada", now=1123.0) is None


def test_a_late_decision_is_kept_as_a_further_opinion(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 1)
    text = taken(store, queue, "ada", lease_s=60, now=1000.0)
    taken(store, queue, "bob", now=1061.0)
    assert decide(store, Decision("a", text.id, "ada", ("x",)), now=1062.0).late
    assert not decide(store, Decision("b", text.id, "bob", ("y",)), now=1063.0).late
    assert [(one.person, one.labels, one.late) for one in opinions(store)] == [
        ("ada", ("x",), True),
        ("bob", ("y",), False),
    ]


def test_a_decision_after_the_claim_expired_counts_if_nobody_took_the_text(
    store: ReviewStore, queue_of: QueueOf
) -> None:
    queue = queue_of(store, 1)
    text = taken(store, queue, "ada", lease_s=60, now=1000.0)
    assert not decide(store, Decision("a", text.id, "ada"), now=5000.0).late
    assert progress(store, queue)["done"] == 1


def test_the_same_decision_sent_twice_is_kept_once(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    text = taken(store, queue, "ada")
    first = decide(store, Decision("key", text.id, "ada", ("x",)))
    again = decide(store, Decision("key", text.id, "ada", ("x",)))
    assert (first.repeated, again.repeated) == (False, True)
    assert again.id == first.id
    assert len(list(log(store))) == 1


def test_the_same_decision_sent_from_many_places_at_once_is_kept_once(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    text = taken(store, queue, "ada")
    kept: list[bool] = []

    def send() -> None:
        kept.append(decide(store, Decision("key", text.id, "ada")).repeated)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kept) == [False] + [True] * 7
    assert len(list(log(store))) == 1


def test_what_was_shown_is_kept_with_the_decision(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    text = taken(store, queue, "ada")
    shown = (Shown("x", 0.9, True, "Ex"), Shown("y", 0.1, False, "Why"))
    decision = Decision(
        "k",
        text.id,
        "ada",
        ("x", "z"),
        shown,
        {"z": "Zed"},
        model="fingerprint",
        threshold=0.5,
        seconds=2.5,
        keystrokes=3,
    )
    decide(store, decision, now=1000.0)
    [row] = log(store)
    assert row["suggested"] == [
        {"id": "x", "score": 0.9, "checked": True},
        {"id": "y", "score": 0.1, "checked": False},
    ]
    assert row["labels"] == ["x", "z"]
    assert row["text_hash"] == text.hash
    names = ("person", "time", "model", "threshold", "seconds", "keystrokes", "blind", "late")
    assert [row[name] for name in names] == ["ada", 1000.0, "fingerprint", 0.5, 2.5, 3, False, False]
    assert label_names(store) == {"x": "Ex", "y": "Why", "z": "Zed"}


def test_decisions_cannot_be_changed_or_deleted(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    decide(store, Decision("k", taken(store, queue, "ada").id, "ada", ("x",)))
    for statement in (sa.update(DECISIONS).values(person="bob"), sa.delete(DECISIONS)):
        with pytest.raises((DataError, sa.exc.IntegrityError), match="only ever added"), store.writing() as connection:
            connection.execute(statement)
    [row] = log(store)
    assert row["person"] == "ada"


def test_a_skipped_text_goes_to_somebody_else(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 2)
    first = taken(store, queue, "ada")
    decide(store, Decision("s", first.id, "ada"), kind="skip")
    assert taken(store, queue, "ada").id != first.id
    assert progress(store, queue)["skipped"] == 1
    assert taken(store, queue, "bob").id == first.id
    assert list(opinions(store)) == []


def test_with_two_people_per_text_two_different_people_decide_on_each(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 3, per_text=2)
    for person in ("ada", "bob"):
        for number in range(3):
            decide(store, Decision(f"{person}{number}", taken(store, queue, person).id, person))
        assert claim(store, queue, person) is None
    assert claim(store, queue, "cyd") is None
    assert progress(store, queue)["done"] == 3


def test_undo_takes_back_the_last_decision_and_hands_its_text_back(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    texts = []
    for number in range(2):
        texts.append(taken(store, queue, "ada"))
        decide(store, Decision(f"k{number}", texts[-1].id, "ada", (f"label {number}",)))
    undone = undo(store, queue, "ada", "u1")
    assert undone is not None
    assert (undone.text.id, undone.labels) == (texts[1].id, ("label 1",))
    assert [one.labels for one in opinions(store)] == [("label 0",)]
    assert taken(store, queue, "ada").id == texts[1].id
    again = undo(store, queue, "ada", "u1")
    assert again is not None
    assert again.text.id == texts[1].id, "sent twice, it undoes one decision"
    before = undo(store, queue, "ada", "u2")
    assert before is not None
    assert before.text.id == texts[0].id
    assert undo(store, queue, "ada", "u3") is None
    assert undo(store, queue, "bob", "u4") is None
    assert len(list(log(store))) == 4, "nothing is ever removed"


def test_what_is_filed_after_an_undo_counts(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store)
    text = taken(store, queue, "ada")
    decide(store, Decision("k1", text.id, "ada", ("wrong",)))
    undo(store, queue, "ada", "u")
    decide(store, Decision("k2", text.id, "ada", ("right",)))
    assert [one.labels for one in opinions(store)] == [("right",)]
    assert progress(store, queue)["done"] == 1


def test_a_skip_can_be_undone(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 1)
    text = taken(store, queue, "ada")
    decide(store, Decision("s", text.id, "ada"), kind="skip")
    assert claim(store, queue, "ada") is None
    undone = undo(store, queue, "ada", "u")
    assert undone is not None
    assert (undone.text.id, undone.labels) == (text.id, ())
    assert claim(store, queue, "bob") is None


def test_a_text_that_a_person_brings_is_theirs(store: ReviewStore, queue_of: QueueOf) -> None:
    queue = queue_of(store, 2)
    mine = claim_new_text(store, queue, "ada", {"text": "pasted", "title": " "})
    assert mine.fields == {"text": "pasted"}
    assert taken(store, queue, "bob").id != mine.id
    assert claim_new_text(store, queue, "ada", {"text": "pasted"}).id == mine.id
    assert not decide(store, Decision("k", mine.id, "ada")).late
    assert progress(store, queue)["texts"] == 3


def test_an_unknown_text_is_refused_in_one_line(sqlite: ReviewStore) -> None:
    make_queue(sqlite, "news")
    with pytest.raises(DataError, match=r"there is no text 17 .* fetch the next one"):
        decide(sqlite, Decision("k", 17, "ada"))


ACTIONS = st.tuples(
    st.sampled_from(["claim", "accept", "skip", "undo", "wait"]), st.sampled_from(["ada", "bob", "cyd"])
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=40), st.integers(1, 3))
def test_whatever_people_do_a_text_is_never_with_more_people_than_it_needs(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str]], per_text: int
) -> None:
    with ReviewStore.open(tmp_path_factory.mktemp("store") / "reviews.db") as store:
        queue = make_queue(store, "news", {"per_text": per_text})
        for number in range(3):
            claim_new_text(store, queue, "nobody", {"text": f"text {number}"}, lease_s=0, now=0.0)
        held: dict[str, int] = {}
        filed: set[tuple[str, int]] = set()
        now = 1000.0
        for number, (action, person) in enumerate(actions):
            now += 1
            if action == "wait":
                now += 100
            elif action == "claim":
                text = claim(store, queue, person, lease_s=50, now=now)
                if text is not None:
                    assert (person, text.id) not in filed, "nobody decides twice for one text"
                    held[person] = text.id
            elif action == "undo":
                undone = undo(store, queue, person, f"u{number}", lease_s=50, now=now)
                assert (undone is not None) == any(who == person for who, _ in filed)
                if undone is not None:
                    held[person] = undone.text.id
                    filed.discard((person, undone.text.id))
            elif person in held:
                text_id = held.pop(person)
                kind = "accept" if action == "accept" else "skip"
                decide(store, Decision(f"d{number}", text_id, person, ("x",)), kind=kind, now=now)
                filed.add((person, text_id))
            with store.reading() as connection:
                slots = connection.execute(sa.select(SLOTS)).all()
            at_work = Counter(slot.text_id for slot in slots if slot.done or (slot.expires or 0) > now)
            assert all(count <= per_text for count in at_work.values())
            assert Counter(slot.text_id for slot in slots) == dict.fromkeys({s.text_id for s in slots}, per_text)
