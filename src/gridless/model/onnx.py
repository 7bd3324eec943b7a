"""The network in ONNX, for programs without torch."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from gridless.errors import InputError
from gridless.files.write import write_whole
from gridless.model.model import Model


def onnx_bytes(model: Model) -> bytes:
    """The network in ONNX: `x` (events, observables) in, the raw outputs `y` (members, events,
    outputs) out, of which `Network.split` reads the transpose. Metadata say what
    they mean."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ModuleNotFoundError as error:
        raise InputError("ONNX needs onnx; pip install 'gridless[onnx]'") from error
    network = model.network
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: Tensor) -> str:
        array = np.ascontiguousarray(value.detach().numpy(), np.float32)
        constants.append(numpy_helper.from_array(array, name))
        return name

    def apply(kind: str, inputs: list[str], output: str) -> str:
        nodes.append(helper.make_node(kind, inputs, [output]))
        return output

    shifted = apply("Sub", ["x", constant("mean", network.mean)], "shifted")
    plain = apply("Div", [shifted, constant("scale", network.scale)], "plain")
    straight = constant("straight", (network.bend == 0).float())
    bent = constant("bent", (network.bend > 0).float())
    # bend is 0 or 1: an observable is taken as it is, or as its asinh.
    kept = apply("Mul", [plain, straight], "kept")
    curved = apply("Mul", [apply("Asinh", [plain], "asinh"), bent], "curved")
    standard = apply("Add", [kept, curved], "standard")
    h, last = standard, len(network.biases) - 1
    for layer in range(last + 1):
        weights = constant(f"weights_{layer}", network.weights[layer])
        product = apply("MatMul", [h, weights], f"product_{layer}")
        h = apply(
            "Add", [product, constant(f"bias_{layer}", network.biases[layer])], f"layer_{layer}"
        )
        if layer < last:
            h = _activate(apply, network.activation, h, layer)
    if last:
        weights = constant("bypass", network.weights[last + 1])
        h = apply(
            "Add", [h, apply("MatMul", [standard, weights], "straight_product")], "with_bypass"
        )
    apply("Identity", [h], "y")
    outputs = network.biases[last].shape[-1]
    graph = helper.make_graph(
        nodes,
        "gridless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["events", len(model.observables)])],
        [
            helper.make_tensor_value_info(
                "y", TensorProto.FLOAT, [network.members, "events", outputs]
            )
        ],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(
        made,
        {
            "observables": ",".join(model.observables),
            "parameters": ",".join(model.grid.parameters),
            "bounds": str(model.grid.bounds.tolist()),
            "basis": network.basis.name,
            "basis_options": str(network.basis.options()),
            "components": str(network.components),
        },
    )
    checker.check_model(made)
    return bytes(made.SerializeToString())


def _activate(apply: Any, activation: str, h: str, layer: int) -> str:
    """The activation in ONNX's own operators."""
    if activation == "silu":
        gate = apply("Sigmoid", [h], f"gate_{layer}")
        return str(apply("Mul", [h, gate], f"active_{layer}"))
    return str(apply({"tanh": "Tanh", "relu": "Relu"}[activation], [h], f"active_{layer}"))


def write_onnx(path: str | Path, model: Model) -> Path:
    """Write the network of a model as an ONNX file, for programs without torch.

    Needs the extra `onnx`. The file maps `x` (events, observables) to the raw outputs of the
    network; its metadata say what they mean.

    Parameters
    ----------
    path : str or Path
        The file to write.
    model : Model
        The model whose network to write.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(500, seed=1), hidden=3, epochs=2, replicas=0)
    >>> gl.write_onnx("model.onnx", model).name
    'model.onnx'
    """
    target = Path(path)
    write_whole(target, onnx_bytes(model))
    return target
