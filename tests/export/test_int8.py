from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="pip install 'longtail[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'longtail[onnx]'")

from longtail.export.int8 import quantise  # noqa: E402


@pytest.mark.parametrize("turned", ["by a node", "by the product", "not at all"])
def test_constant_weights_become_one_byte_and_products_stay_nearly_the_same(turned: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs, weights, offset = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 64), (64, 48), (48,)))
    kept = weights if turned == "not at all" else np.ascontiguousarray(weights.T)
    helper = onnx.helper
    turning = helper.make_node("Transpose", ["weights"], ["columns"], perm=[1, 0])
    read = "columns" if turned == "by a node" else "weights"
    product = helper.make_node("Gemm", ["inputs", read, "offset"], ["outputs"], transB=int(turned == "by the product"))
    graph = helper.make_graph(
        [turning, product] if turned == "by a node" else [product],
        "test",
        [helper.make_tensor_value_info("inputs", onnx.TensorProto.FLOAT, [None, 64])],
        [helper.make_tensor_value_info("outputs", onnx.TensorProto.FLOAT, [None, 48])],
        [onnx.numpy_helper.from_array(kept, "weights"), onnx.numpy_helper.from_array(offset, "offset")],
    )
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "whole.onnx")
    before = logging.getLogger().handlers[:], logging.getLogger().level
    quantise(tmp_path / "whole.onnx", tmp_path / "light.onnx")
    assert (logging.getLogger().handlers, logging.getLogger().level) == before
    light = onnx.load(tmp_path / "light.onnx")
    assert [node.op_type for node in light.graph.node] == ["MatMulNBits", "Add"]
    session = onnxruntime.InferenceSession(str(tmp_path / "light.onnx"), providers=["CPUExecutionProvider"])
    [outputs] = session.run(None, {"inputs": inputs})
    difference = np.abs(outputs - (inputs @ weights + offset)).max()
    assert 0 < difference < 0.1
