"""Export the network of a model as an ONNX graph, with all that a program without longtail needs to use it.

    DIR/model.onnx       token ids to the numbers and scores of the best labels
    DIR/tokenizer.json   or words.txt: texts to token ids
    DIR/labels.json      numbers of labels to ids and names
    DIR/config.json      inputs, outputs, how texts are read, and how near the export is to the model
    DIR/run.py           a runner that needs onnxruntime, numpy and, for word pieces, tokenizers
    DIR/README.md        the same in words

Nothing is written unless the runner, on a sample of texts, gives the scores of the model itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split, Texts, as_table
from longtail.errors import ConfigError, DataError, MissingExtraError
from longtail.evaluation import truth_for
from longtail.export.parity import COMPARED, Agreement, check, compare, made_texts, same_labels
from longtail.export.readme import readme
from longtail.labels.model_labels import check_known
from longtail.methods.base import Method
from longtail.metrics import MetricOptions, evaluate
from longtail.persist import FolderWriter, check_replaceable, write_folder
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH
from longtail.scores.step import Curve
from longtail.tables import json_text
from longtail.types import LabelMatrix, TopK

if TYPE_CHECKING:
    from longtail.export.runner import Runner
    from longtail.nn.tagger import Tagger

EXPORT = "ONNX export"
RUNNER = Path(__file__).with_name("runner.py")
_NEEDED = ("onnx", "onnxruntime", "onnxscript")
_MOST_COMPARED, _MOST_JUDGED = 300, 2000
"""Texts that scores are compared on, and texts that the loss of 8-bit weights is measured on."""
_SPARE = 15
"""Labels behind the five compared ones that the model is asked for, so that those that changed places are found."""


@dataclass(frozen=True)
class Int8Loss:
    """What weights of one byte cost, on texts with known labels."""

    n_texts: int
    ndcg_before: float
    """nDCG@5 of the graph with float32 weights, from 0 to 1."""
    ndcg_after: float
    """nDCG@5 with weights of one byte."""
    same_lists: float
    """Share of texts whose five best labels are the same ones."""
    bytes_before: int
    bytes_after: int

    @property
    def loss(self) -> float:
        """How much of nDCG@5 is lost, in points of per cent."""
        return 100 * (self.ndcg_before - self.ndcg_after)


@dataclass(frozen=True)
class OnnxExport:
    """A written export."""

    path: Path
    agreement: Agreement
    """How near the graph's scores, with float32 weights, are to the model's."""
    int8: Int8Loss | None = None

    def plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        int8 = None if self.int8 is None else {**asdict(self.int8), "loss": self.int8.loss}
        return {"path": str(self.path), "agreement": asdict(self.agreement), "int8": int8}


def export_onnx(
    model: Method,
    folder: str | Path,
    texts: Split | Texts | None = None,
    *,
    labels_per_text: int = LIST_LENGTH,
    int8: bool = False,
    run: Run | None = None,
) -> OnnxExport:
    """Write a trained model as an ONNX graph with tokeniser, labels and a runner; an older export is replaced.

    Raises:
        ConfigError: The model is not one network, its scores are changed in a way that a graph cannot hold, or the
            graph's scores differ from the model's by more than 0.0001.

    Args:
        model: A trained model of one network.
        folder: Where the export is written.
        texts: The sample that scores are compared on, at most 300 texts; a split with labels for `int8`. By default,
            texts made of words that the model knows.
        labels_per_text: How many labels the graph gives each text.
        int8: Write weights in one byte each, and measure what that costs.
        run: How the work is done.
    """
    run = run or Run()
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"an export needs {', '.join(missing)}, not installed here; install with pip install 'longtail[onnx]'"
        )
    if labels_per_text < COMPARED:
        raise ConfigError(f"labels_per_text must be at least {COMPARED}, got {labels_per_text}")
    if int8 and not (isinstance(texts, Split) and len(texts) and texts.labels.n_seen()):
        raise DataError("8-bit weights need texts with known labels, to measure their loss, got none; give some")
    check_replaceable(folder, EXPORT)
    from longtail.nn.recording import record

    tagger, curve = model.exported_network(), exported_curve(model)
    sample = _sample(model, tagger, texts)
    with write_folder(folder, EXPORT) as writer:
        _write_parts(writer, model, tagger, labels_per_text)
        with run.progress.step("record the network"):
            record(tagger, writer.path / "model.onnx", labels_per_text, curve)
        with run.progress.step("compare scores"):
            agreement = _agreement(writer.path, model, sample, run)
        check(agreement)
        loss = _quantise(writer, model, texts, run) if int8 and isinstance(texts, Split) else None
        config = _config(model, tagger, labels_per_text, agreement, loss)
        _write_config(writer, config)
        writer.text("README.md", readme(config))
    return OnnxExport(Path(folder), agreement, loss)


def exported_curve(model: Method) -> Curve | None:
    """Return the curve that a model's scores are read from; None if they stay as they are."""
    curves = [curve for step in model.chain_.steps if (curve := step.exported_curve())[0]]
    if len(curves) > 1:
        raise ConfigError("a model must have at most one calibration for an export, got several; train it again")
    return curves[0] if curves else None


def _sample(model: Method, tagger: Tagger, texts: Split | Texts | None) -> Any:
    """Return the table of texts that scores are compared on."""
    if texts is None:
        names = model.vocabulary_.take(model.scored_labels_[:1000]).names
        return made_texts([*names, *_known_words(tagger)], model.columns)
    table = texts.texts if isinstance(texts, Split) else as_table(texts)
    if not len(table):
        raise DataError("a sample must have texts, got none")
    return table.take(_evenly(len(table), _MOST_COMPARED))


def _known_words(tagger: Tagger) -> list[str]:
    """Return pieces or words that the network knows."""
    exported = tagger.tokeniser.exported()
    words = exported.content.split("\n") if exported.facts["kind"] == "words" else _pieces(exported.content)
    return words[:: max(1, len(words) // 1000)]


def _pieces(content: str) -> list[str]:
    from tokenizers import Tokenizer

    return sorted(Tokenizer.from_str(content).get_vocab(with_added_tokens=False))


def _write_parts(writer: FolderWriter, model: Method, tagger: Tagger, labels_per_text: int) -> None:
    """Write what stands beside the graph, with a config that is enough to run it."""
    exported = tagger.tokeniser.exported()
    writer.text(exported.facts["file"], exported.content)
    writer.text("labels.json", json_text(exported_labels(model)))
    writer.text("run.py", RUNNER.read_text(encoding="utf-8"))
    _write_config(writer, _config(model, tagger, labels_per_text))


def exported_labels(model: Method) -> dict[str, list[str | None]]:
    """Return ids and names by the numbers that the graph gives; those of a retired label are None."""
    labels, edits = model.labels, model.chain_.edits
    numbers = model.scored_labels_
    used, shown = edits.allowed(labels), edits.shown_as(labels)
    numbers = numbers if shown is None else shown[numbers]
    kept = np.ones(len(numbers), bool) if used is None else used[numbers]
    taken = labels.vocabulary.take(numbers.astype(np.int64))
    columns = {"ids": taken.ids, "names": taken.names}
    return {key: [one if keep else None for one, keep in zip(all_, kept, strict=True)] for key, all_ in columns.items()}


def _config(
    model: Method,
    tagger: Tagger,
    labels_per_text: int,
    agreement: Agreement | None = None,
    loss: Int8Loss | None = None,
) -> dict[str, Any]:
    """Return what config.json says."""
    tokens, head = tagger.options.tokens, tagger.network.head
    calibration = model.calibration
    k = min(labels_per_text, head.n_labels)
    return {
        "library_name": "longtail",
        "method": model.name,
        "inputs": {
            "input_ids": "int64 (texts, tokens), padded on the right with tokeniser.pad_id to at least 2 tokens",
            "attention_mask": "int64 (texts, tokens), 1 for a token and 0 for padding",
        },
        "outputs": {
            "scores": f"float32 (texts, {k}), best first, −inf where there is no label",
            "labels": f"int64 (texts, {k}), places in labels.json, −1 where there is none",
        },
        "labels_per_text": k,
        "n_labels": len(model.scored_labels_),
        "scores_are_probabilities": calibration is not None,
        "threshold": None if calibration is None else calibration.f1_threshold,
        "weights": "float32" if loss is None else "int8",
        "text": {"columns": list(tokens.columns), "lowercase": tokens.lowercase, "max_words": tokens.max_words},
        "tokeniser": tagger.tokeniser.exported().facts,
        "agreement": None if agreement is None else asdict(agreement),
        "int8": None if loss is None else {**asdict(loss), "loss": loss.loss},
    }


def _write_config(writer: FolderWriter, config: Mapping[str, Any]) -> None:
    writer.text("config.json", json_text(config, indent=1))


def _agreement(folder: Path, model: Method, sample: Any, run: Run) -> Agreement:
    """Return how near the lists of a written graph are to the model's, on a table of texts."""
    expected = model.top_k(sample, COMPARED + _SPARE, precision="fp32", run=run)
    return compare(expected, lists_of(_runner(folder, run), model, sample))


def _quantise(writer: FolderWriter, model: Method, split: Split, run: Run) -> Int8Loss:
    """Replace the graph by one with weights of one byte; return what that costs."""
    from longtail.export.int8 import quantise

    file = writer.path / "model.onnx"
    judged = split.take(_evenly(len(split), _MOST_JUDGED))
    check_known(judged, model.labels)
    truth, _ = truth_for(model.vocabulary_, judged)
    with run.progress.step("float32 weights"):
        before = lists_of(_runner(writer.path, run), model, judged.texts)
    whole = _bytes_of(writer.path)
    light = writer.path / "light.onnx"
    with run.progress.step("8-bit weights"):
        quantise(file, light)
        for old in writer.path.glob("model.onnx*"):
            old.unlink()
        light.rename(file)
        after = lists_of(_runner(writer.path, run), model, judged.texts)
    return Int8Loss(
        n_texts=len(judged),
        ndcg_before=_ndcg(before, truth, model),
        ndcg_after=_ndcg(after, truth, model),
        same_lists=same_labels(before, after),
        bytes_before=whole,
        bytes_after=_bytes_of(writer.path),
    )


def _runner(folder: Path, run: Run) -> Runner:
    from longtail.export.runner import Runner

    return Runner(folder, threads=run.engine.n_threads)


def lists_of(runner: Runner, model: Method, texts: Any) -> TopK:
    """Return what an export says of a table of texts, in the model's numbers."""
    labels = model.vocabulary_.position
    tagged = runner.tag(_records(texts), k=COMPARED + _SPARE)
    lists = TopK.empty(len(tagged), COMPARED + _SPARE)
    for row, best in enumerate(tagged):
        lists.labels[row, : len(best)] = [labels[one["id"]] for one in best]
        lists.scores[row, : len(best)] = [one["score"] for one in best]
    return lists


def _records(texts: Any) -> Sequence[Mapping[str, str]]:
    return [{name: value or "" for name, value in record.items()} for record in texts.to_pylist()]


def _ndcg(lists: TopK, truth: LabelMatrix, model: Method) -> float:
    options = MetricOptions(at=(COMPARED,), propensities=(model.options.propensity,))
    return evaluate(lists, truth, model.train_counts_, int(model.facts_["n_texts"]), options).values["nDCG@5"]


def _bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("model.onnx*"))


def _evenly(n_texts: int, most: int) -> NDArray[np.int64]:
    """Return at most so many of the texts, evenly spread."""
    return np.unique(np.linspace(0, n_texts - 1, min(n_texts, most)).round().astype(np.int64))
