"""The network in ONNX, for programs without torch."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gridless.density.conditioner import ModuleEnsemble, Perceptron
from gridless.density.network import MIN_BEND, Network
from gridless.errors import InputError, check_kind
from gridless.files.sources import as_path
from gridless.files.write import write_whole
from gridless.model.model import Model

OPSET = 17
IR_VERSION = 8


def onnx_bytes(model: Model) -> bytes:
    """The network in ONNX: `x` (events, observables) in, the raw outputs `y` (members, events,
    outputs) out, of which `Network.mixture` reads the transpose. Metadata say what they mean.

    A network of your own is translated by torch, which refuses what it cannot.
    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise InputError("ONNX needs onnx; pip install 'gridless[onnx]'") from error
    network = model.network
    made = _by_hand(network) if isinstance(network.conditioner, Perceptron) else _by_torch(network)
    onnx.helper.set_model_props(
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
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


class _Graph:
    """Nodes and constants of an ONNX graph as they are added."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Tensor) -> str:
        from onnx import numpy_helper

        array = np.ascontiguousarray(value.detach().numpy(), np.float32)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def apply(self, operator: str, inputs: list[str], output: str) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [output]))
        return output


def _by_hand(network: Network) -> Any:
    """Our own perceptrons, operator by operator."""
    from onnx import TensorProto, helper

    conditioner = network.conditioner
    assert isinstance(conditioner, Perceptron)
    graph = _Graph()
    constant, apply = graph.constant, graph.apply
    standard = _standardised(network, constant, apply)
    h, last = standard, len(conditioner.biases) - 1
    for layer in range(last + 1):
        weights = constant(f"weights_{layer}", conditioner.weights[layer])
        bias = constant(f"bias_{layer}", conditioner.biases[layer])
        product = apply("MatMul", [h, weights], f"product_{layer}")
        h = apply("Add", [product, bias], f"layer_{layer}")
        if layer < last:
            h = _activated(apply, conditioner.activation, h, layer)
    if last:
        weights = constant("bypass", conditioner.weights[last + 1])
        straight = apply("MatMul", [standard, weights], "straight_product")
        h = apply("Add", [h, straight], "with_bypass")
    apply("Identity", [h], "y")
    outputs = conditioner.biases[last].shape[-1]
    inputs = len(network.mean)
    made = helper.make_graph(
        graph.nodes,
        "gridless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["events", inputs])],
        [
            helper.make_tensor_value_info(
                "y", TensorProto.FLOAT, [network.members, "events", outputs]
            )
        ],
        graph.constants,
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(made, opset_imports=[opset], ir_version=IR_VERSION)


def _standardised(network: Network, constant: Callable[..., str], apply: Callable[..., str]) -> str:
    """`Network.standardise`: y, or asinh(b y) / b - shift where the bend b is above 0, between the
    ends of what was simulated."""
    near = apply("Sub", ["x", constant("mean", network.mean)], "near")
    shifted = apply("Sub", [near, constant("mean_rest", network.mean_rest)], "shifted")
    plain = apply("Div", [shifted, constant("scale", network.scale)], "plain")
    bent = network.bend > 0
    # An observable that is not bent has b = 1 here, and its asinh counts 0 times.
    b = constant("bend", torch.where(bent, network.bend.clamp(min=MIN_BEND), 1.0))
    arc = apply("Div", [apply("Asinh", [apply("Mul", [plain, b], "bent")], "asinh"), b], "arc")
    kept = apply("Mul", [plain, constant("is_straight", (~bent).float())], "kept")
    curved = apply("Mul", [arc, constant("is_bent", bent.float())], "curved")
    added = apply("Add", [kept, curved], "added")
    unlimited = apply("Sub", [added, constant("shift", network.shift)], "unlimited")
    above = apply("Max", [unlimited, constant("low", network.low)], "above")
    return apply("Min", [above, constant("high", network.high)], "standard")


def _activated(apply: Callable[..., str], activation: str, h: str, layer: int) -> str:
    """The activation in ONNX's own operators."""
    if activation == "silu":
        gate = apply("Sigmoid", [h], f"gate_{layer}")
        return apply("Mul", [h, gate], f"active_{layer}")
    return apply({"tanh": "Tanh", "relu": "Relu"}[activation], [h], f"active_{layer}")


class _Members(nn.Module):
    """Every member one after the other, as torch's exporter can follow them."""

    def __init__(self, network: Network, conditioner: ModuleEnsemble) -> None:
        super().__init__()
        self.network = network
        self.members = nn.ModuleList(conditioner.as_modules())
        self.start = conditioner.start

    def forward(self, x: Tensor) -> Tensor:
        network = self.network
        y = (x - network.mean - network.mean_rest) / network.scale
        # `Network.standardise` with an asinh in operators that the exporter knows.
        b = network.bend.clamp(min=MIN_BEND)
        u = (b * y).abs()
        arc = y.sign() * torch.log(u + torch.sqrt(u * u + 1)) / b
        y = torch.where(network.bend > 0, arc, y) - network.shift
        y = torch.minimum(torch.maximum(y, network.low), network.high)
        return torch.stack([member(y) + self.start for member in self.members])


def _by_torch(network: Network) -> Any:
    """Any other module, by torch's exporter, which needs no package beside onnx."""
    import onnx

    assert isinstance(network.conditioner, ModuleEnsemble)
    module = _Members(network, network.conditioner).eval()
    content = io.BytesIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch prefers an exporter that needs onnxscript
            torch.onnx.export(
                module,
                (torch.zeros(2, len(network.mean)),),
                content,  # type: ignore[arg-type]  # what torch writes to a path it writes to this
                dynamo=False,
                input_names=["x"],
                output_names=["y"],
                dynamic_axes={"x": {0: "events"}, "y": {1: "events"}},
                opset_version=OPSET,
            )
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"network: torch cannot write {network.conditioner.describe()} as ONNX ({reason}); use "
            "layers that ONNX knows, or our own network"
        ) from error
    return onnx.load_model_from_string(content.getvalue())


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
    check_kind(model, Model, "model")
    target = as_path(path)
    write_whole(target, onnx_bytes(model))
    return target
