"""What a served model suggests for a text, as the desk shows it.

The first `N_SHOWN` labels are shown, and further ones up to `MOST_SHOWN` that score at least the threshold. Those that
do are checked. The threshold is the model's own (`auto`) where its scores are calibrated, else one half.
"""

from __future__ import annotations

import asyncio

import numpy as np
import sqlalchemy as sa

from longtail.predictions import Route, route_of
from longtail.review.desk import ClaimedText, Shown
from longtail.review.messages import Item, LabelToShow
from longtail.review.schema import TEXTS
from longtail.review.store import ReviewStore
from longtail.serve.models import ServedModel
from longtail.serve.requests import rows_of
from longtail.serve.service import Service

N_SHOWN = 9
"""As many as there are keys from 1 to 9."""
MOST_SHOWN = 20
DEFAULT_THRESHOLD = 0.5


async def item_for(service: Service, text: ClaimedText, model: str | None) -> Item:
    """Return a text as it is shown; a blind one without suggestions."""
    served = service.models.get(model)
    threshold = threshold_of(served)
    suggested, route, cut = await _suggested(service, served, dict(text.fields), threshold)
    return Item(
        text=text.id,
        fields=dict(text.fields),
        blind=text.blind,
        suggested=[] if text.blind else suggested,
        threshold=threshold,
        calibrated=served.is_calibrated,
        route=None if text.blind else route,
        cut=cut,
        model=served.name,
        revision=served.revision,
    )


async def shown_to_nobody(service: Service, store: ReviewStore, text_id: int, model: str | None) -> tuple[Shown, ...]:
    """Return what would have been suggested for a blind text; nothing for others."""

    def fields_of() -> dict[str, str] | None:
        with store.reading() as connection:
            row = connection.execute(sa.select(TEXTS).where(TEXTS.c.id == text_id, TEXTS.c.blind)).first()
        return None if row is None else dict(row.fields)

    fields = await asyncio.to_thread(fields_of)
    if fields is None:
        return ()
    served = service.models.get(model)
    suggested, _, _ = await _suggested(service, served, fields, threshold_of(served))
    return tuple(Shown(one.id, one.score, one.checked, one.name) for one in suggested)


def threshold_of(model: ServedModel) -> float:
    """Return the score from which suggestions are checked."""
    lowest = model.method.chain_.lowest_score("auto") if model.is_calibrated else None
    return DEFAULT_THRESHOLD if lowest is None else lowest


async def _suggested(
    service: Service, model: ServedModel, fields: dict[str, str], threshold: float
) -> tuple[list[LabelToShow], str | None, bool]:
    """Return suggestions, the route of the text, and whether only its beginning was read."""
    limit, needed = service.settings.max_characters // len(model.columns), model.method.columns
    record = {name: fields.get(name, "")[:limit] for name in model.columns if name in fields or name in needed}
    [labels] = await service.tag(model, rows_of(None, [record], model, service.settings), k=MOST_SHOWN)
    vocabulary = model.method.vocabulary_
    suggested = [
        LabelToShow(
            id=vocabulary.ids[label],
            name=vocabulary.names[label],
            path=vocabulary.path(label),
            score=round(score, 6),
            checked=score >= threshold,
        )
        for place, (label, score) in enumerate(zip(labels.labels, labels.scores, strict=True))
        if place < N_SHOWN or score >= threshold
    ]
    return suggested, _route(model, labels.scores, threshold), labels.cut


def _route(model: ServedModel, scores: list[float], threshold: float) -> Route | None:
    """Return who should look at a text if only the checked labels are filed; None where scores are not calibrated."""
    calibration = model.method.chain_.calibration
    if calibration is None:
        return None
    whole = np.array([scores], np.float32)
    checked = np.where(whole >= threshold, whole, np.float32(-np.inf))
    return route_of(float(calibration.recall.in_lists(whole, checked)[0]))
