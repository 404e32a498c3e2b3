"""What is trained fits into the time, with as many members as possible."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from longtail.choice.costs import Cost
from longtail.choice.schedule import N_FOLDS, Sizes, schedule
from longtail.run.resources import ResourceEstimate

SIZES = Sizes(n_texts=10_000, max_ranked_texts=5_000, list_length=40, ranker_s=1e-6)
seconds = st.floats(0.01, 1000)


def cost(train_s: float, ask_s: float = 0.0) -> Cost:
    return Cost(ResourceEstimate(1, 1, "", seconds=train_s), ask_s)


def test_everything_is_trained_where_there_is_time() -> None:
    plan = schedule({"linear": cost(10), "knn": cost(1), "lexical": cost(5)}, SIZES, 600)
    assert plan is not None
    assert plan.members == ("linear", "knn", "lexical")
    assert plan.n_ranked_folds == 3  # of five, for 5,000 of 10,000 texts
    assert plan.seconds > 16 * (1 + 3 * 0.8)


def test_fewer_folds_then_fewer_members_then_linear_alone_then_nothing() -> None:
    costs = {"linear": cost(10), "knn": cost(1), "network": cost(100)}
    plans = [schedule(costs, SIZES, limit) for limit in (400, 300, 100, 40, 25, 9)]
    assert [plan and (len(plan.members), plan.n_ranked_folds) for plan in plans] == [
        (3, 2),
        (3, 1),
        (2, 3),
        (2, 1),
        (1, 0),
        None,
    ]


def test_without_a_limit_all_texts_of_small_data_are_ranked() -> None:
    plan = schedule({"linear": cost(10), "knn": cost(1)}, SIZES._replace(n_texts=100), None)
    assert plan is not None
    assert plan.n_ranked_folds == N_FOLDS


@given(st.lists(st.tuples(seconds, st.floats(0, 0.01)), min_size=1, max_size=4), st.floats(1, 3000))
def test_what_is_planned_fits_and_leaves_time_for_linear(costs: list[tuple[float, float]], limit: float) -> None:
    named = {name: cost(*each) for name, each in zip(("linear", "a", "b", "c"), costs, strict=False)}
    plan = schedule(named, SIZES, limit)
    anchor_s = named["linear"].train_s
    if plan is None:
        assert anchor_s > limit
        return
    assert plan.members[0] == "linear"
    assert plan.seconds + anchor_s * (len(plan.members) > 1) <= limit
    more = schedule(named, SIZES, 2 * limit)
    assert more is not None
    assert len(more.members) >= len(plan.members)
