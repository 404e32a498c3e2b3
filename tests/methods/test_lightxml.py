"""What LightXML's options do."""

from __future__ import annotations

import pytest

from longtail.errors import ConfigError
from longtail.methods import create_method
from longtail.presets import preset_names

pytest.importorskip("torch")
RELEASED = [name for name in preset_names() if name.startswith("lightxml/") and name != "lightxml/laptop"]


def test_xlnet_learns_five_times_faster_on_eurlex_as_in_the_released_script() -> None:
    from longtail.methods.lightxml import LightXML

    model = create_method("lightxml/eurlex-4k-ensemble")
    assert isinstance(model, LightXML)
    rates = {plan.encoder.plain()["model"]: plan.training.rates for plan in model._plans()}
    assert {name: set(of.values()) for name, of in rates.items()} == {
        "bert-base-uncased": {1e-4},
        "roberta-base": {1e-4},
        "xlnet-base-cased": {5e-4},
    }


def test_there_must_be_a_factor_for_each_encoder() -> None:
    with pytest.raises(ConfigError, match=r"rate_factors must be one number per encoder \(1\), or none, got 2"):
        create_method("lightxml", {"rate_factors": [1.0, 5.0]})


@pytest.mark.parametrize("preset", RELEASED)
def test_presets_step_as_the_released_code(preset: str) -> None:
    options = create_method(preset).options.plain()
    assert options["training"]["epsilon"] == 1e-6  # transformers' AdamW
    assert options["labels"]["reduction"] == "mean"  # BCEWithLogitsLoss
    assert options["labels"]["prior"] is False
