"""Work with a time limit stops at the next job or report."""

from __future__ import annotations

import pytest

from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.time_limit import OutOfTimeError, with_time_limit


def test_work_in_time_is_as_without_a_limit() -> None:
    run = with_time_limit(Run(LocalEngine(2)), 600)
    assert run.engine.n_threads == 2
    assert list(run.engine.map(str, range(20))) == [str(number) for number in range(20)]
    with run.progress.step("step", 2) as advance:
        advance(2)


def test_work_out_of_time_stops_between_jobs_and_reports() -> None:
    run = with_time_limit(Run(LocalEngine(1)), -1)
    begun: list[int] = []
    with pytest.raises(OutOfTimeError, match="stopped after"):
        list(run.engine.map(begun.append, range(10)))
    assert not begun
    with pytest.raises(OutOfTimeError), run.progress.step("step"):
        begun.append(1)
    assert not begun


def test_parts_of_a_run_have_the_same_limit() -> None:
    run = with_time_limit(Run(), -1).within("member-0")
    with pytest.raises(OutOfTimeError):
        list(run.engine.map(str, [1]))
