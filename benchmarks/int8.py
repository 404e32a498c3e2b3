"""What 8-bit weights of an exported network cost, scheme by scheme: nDCG@5, unchanged lists, bytes, processor time.

    python benchmarks/int8.py                      trains lightxml/laptop on debtags-sample first
    python benchmarks/int8.py --model my-model     a trained model of a network on debtags-sample

Every scheme starts from the graph that `longtail export` writes; the last row is torch's dynamic quantisation of the
encoder, which is what `precision="int8"` computes. Times are of the process, one thread, so that other work on the
machine counts little.
"""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from machine import describe_run
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

import longtail
from longtail.evaluation import truth_for
from longtail.export.int8 import as_products, quantise
from longtail.export.onnx import export_onnx, lists_of
from longtail.export.parity import same_labels
from longtail.export.runner import Runner
from longtail.methods.base import Method
from longtail.metrics import MetricOptions, evaluate
from longtail.types import LabelMatrix, TopK

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "int8.json"
Scheme = Callable[[Path, Path], None]


def dynamic(**options: Any) -> Scheme:
    """States and weights in one byte while they are multiplied."""
    return lambda source, target: quantize_dynamic(source, target, weight_type=QuantType.QInt8, **options)


def blocks(accuracy_level: int, only: Callable[[Any], bool] | None = None) -> Scheme:
    """Weights in blocks; level 4 also rounds states to one byte, block by block."""

    def write(source: Path, target: Path) -> None:
        model = onnx.load(source)
        as_products(model.graph)
        left_out = [node.name for node in model.graph.node if only is not None and not only(node)]
        quantiser = MatMulNBitsQuantizer(
            model,
            bits=8,
            block_size=32,
            is_symmetric=True,
            accuracy_level=accuracy_level,
            nodes_to_exclude=left_out,
        )
        quantiser.process()
        onnx.save(quantiser.model.model, target)

    return write


def main() -> None:
    logging.disable(logging.INFO)  # onnxruntime names every node that it leaves alone
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a trained model")
    parser.add_argument("--data", default="debtags-sample")
    parser.add_argument("--texts", type=int, default=667, help="at most so many test texts")
    given = parser.parse_args()
    data = longtail.load_dataset(given.data)
    model = longtail.load_model(given.model) if given.model else longtail.LightXML("lightxml/laptop").fit(data.train)
    test = data.test.take(np.arange(min(given.texts, len(data.test))))
    truth, _ = truth_for(model.vocabulary_, test)
    with TemporaryDirectory() as folder:
        place = Path(folder) / "export"
        written = export_onnx(model, place, test)
        plain = place / "model.onnx"
        shutil.copy(plain, Path(folder) / "whole.onnx")
        rows = {"float32": measured(model, place, test, truth, None)}
        first = rows["float32"].pop("lists")
        for name, scheme in SCHEMES.items():
            scheme(Path(folder) / "whole.onnx", plain)
            rows[name] = measured(model, place, test, truth, first)
            del rows[name]["lists"]
            print(name, rows[name], flush=True)
    rows["torch, dynamic (precision int8)"] = of_torch(model, test, truth, first)
    result = {
        "command": f"python benchmarks/int8.py {shlex.join(sys.argv[1:])}".strip(),
        "machine": describe_run(1),
        "data": given.data,
        "method": model.name,
        "n_training_texts": model.facts_["n_texts"],
        "n_texts": len(test),
        "agreement": written.plain()["agreement"],
        "schemes": rows,
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(rows, indent=1))


def measured(model: Method, place: Path, test: Any, truth: LabelMatrix, first: TopK | None) -> dict[str, Any]:
    """Return the figures of the graph in a folder."""
    runner = Runner(place, threads=1)
    start = time.process_time()
    lists = lists_of(runner, model, test.texts)
    took = time.process_time() - start
    return figures(model, lists, truth, first) | {
        "bytes": (place / "model.onnx").stat().st_size,
        "cpu_ms_per_text": 1000 * took / len(lists),
        "lists": lists,
    }


def of_torch(model: Method, test: Any, truth: LabelMatrix, first: TopK) -> dict[str, Any]:
    """Return the figures of torch's own scheme."""
    start = time.process_time()
    lists = model.top_k(test, 20, precision="int8", threads=1)
    took = time.process_time() - start
    return figures(model, lists, truth, first) | {"cpu_ms_per_text": 1000 * took / len(lists)}


def figures(model: Method, lists: TopK, truth: LabelMatrix, first: TopK | None) -> dict[str, Any]:
    options = MetricOptions(at=(1, 5), propensities=(model.options.propensity,))
    values = evaluate(lists, truth, model.train_counts_, int(model.facts_["n_texts"]), options).values
    same = {} if first is None else {"same_lists": same_labels(first, lists)}
    return {"nDCG@5": values["nDCG@5"], "P@1": values["P@1"], **same}


def is_label_table(node: Any) -> bool:
    """The last product of the graph."""
    return "addmm" in node.name


SCHEMES: dict[str, Scheme] = {
    "weights in blocks of 32 (longtail export --int8)": quantise,
    "weights and states in blocks of 32": blocks(4),
    "label table alone, weights in blocks of 32": blocks(0, is_label_table),
    "dynamic, one scale per matrix": dynamic(per_channel=False),
    "dynamic, one scale per output": dynamic(per_channel=True),
    "dynamic, one scale per output, 7 bits": dynamic(per_channel=True, reduce_range=True),
}

if __name__ == "__main__":
    main()
