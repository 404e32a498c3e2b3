"""Weights of an exported graph in one byte each.

    float32 (n_in, n_out)  ->  int8, and one scale for every 32 neighbouring inputs of an output

Constant matrices that inputs are multiplied with become 8-bit blocks (`MatMulNBits` of onnxruntime): layers of the
encoder and the table of labels alike. States stay float32: it is rounding these to one byte, with one scale for a whole
batch as dynamic quantisation does, that changes lists. Embeddings and the weights that single texts gather keep their
type.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from longtail.errors import MissingExtraError

BLOCK = 32
"""Weights that share a scale."""


def quantise(source: Path, target: Path) -> None:
    """Write a graph with weights in 8 bits."""
    try:
        import onnx

        with _quiet():
            from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    except ImportError as error:
        raise MissingExtraError(
            f"8-bit weights need {error.name}, not installed here; install with pip install 'longtail[onnx]'"
        ) from error
    model = onnx.load(source)
    as_products(model.graph)
    quantiser = MatMulNBitsQuantizer(model, bits=8, block_size=BLOCK, is_symmetric=True, accuracy_level=0)
    with _quiet():
        quantiser.process()
    onnx.save(quantiser.model.model, target)


def as_products(graph: Any) -> None:
    """Write `Gemm` nodes with constant weights as a product and a sum, which is what gets 8-bit weights."""
    import onnx

    constants = {tensor.name: tensor for tensor in graph.initializer}
    turned = {node.output[0]: node.input[0] for node in graph.node if _turns_a_matrix(node)}
    nodes = []
    for node in graph.node:
        facts = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        plain = facts.get("alpha", 1.0) == facts.get("beta", 1.0) == 1.0 and not facts.get("transA", 0)
        weight = turned.get(node.input[1], node.input[1]) if node.op_type == "Gemm" else ""
        if not plain or weight not in constants:
            nodes.append(node)
            continue
        first, given, *offset = node.input
        if bool(facts.get("transB", 0)) != (given in turned):
            matrix = np.ascontiguousarray(onnx.numpy_helper.to_array(constants[weight]).T)
            weight = f"{weight}_turned"
            graph.initializer.append(onnx.numpy_helper.from_array(matrix, weight))
        product = f"{node.output[0]}_product" if offset else node.output[0]
        nodes.append(onnx.helper.make_node("MatMul", [first, weight], [product], f"{node.name}_product"))
        if offset:
            nodes.append(onnx.helper.make_node("Add", [product, *offset], [node.output[0]], f"{node.name}_sum"))
    _replace(graph, nodes)


def _turns_a_matrix(node: Any) -> bool:
    return node.op_type == "Transpose" and [list(one.ints) for one in node.attribute] == [[1, 0]]


def _replace(graph: Any, nodes: list[Any]) -> None:
    """Set the nodes of a graph, and drop the constants and the turned matrices that none of them reads."""
    outputs = {value.name for value in graph.output}
    read = {name for node in nodes for name in node.input} | outputs
    kept = [node for node in nodes if not _turns_a_matrix(node) or node.output[0] in read]
    read = {name for node in kept for name in node.input} | outputs
    constants = [tensor for tensor in graph.initializer if tensor.name in read]
    graph.ClearField("node")
    graph.node.extend(kept)
    graph.ClearField("initializer")
    graph.initializer.extend(constants)


@contextmanager
def _quiet() -> Iterator[None]:
    """Undo what the quantiser does to logging: it makes the whole process talk when it is imported."""
    root = logging.getLogger()
    handlers, level, disabled = root.handlers[:], root.level, root.manager.disable
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.disable(disabled)
