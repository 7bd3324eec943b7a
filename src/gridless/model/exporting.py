"""Results for machines: estimates as JSON, the network as ONNX, curves as JSON, CSV, HEPData."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import yaml
from torch import Tensor

from gridless.errors import InputError
from gridless.likelihood import minimum
from gridless.likelihood.estimate import Caveat, Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.model import Model
from gridless.templates.arrays import Array

_POINTS = 201


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


def curve(likelihood: Likelihood) -> dict[str, Any]:
    """The likelihood for machines: its Chebyshev coefficients and the profile of each parameter."""
    estimate = likelihood.maximum()
    profiles = {
        name: {"value": values.tolist(), "delta_log_likelihood": rises.tolist()}
        for name, values, rises in _profiles(likelihood)
    }
    return {
        "parameters": list(likelihood.grid.parameters),
        "bounds": likelihood.grid.bounds.tolist(),
        "events": likelihood.events,
        "best": estimate.values.tolist(),
        "coefficients": likelihood.coefficients.tolist(),
        "convention": "-log L = sum c[k, l, ...] T_k(2 t_1 - 1) T_l(2 t_2 - 1) ..., "
        "t = (theta - low) / (high - low)",
        "lowest": minimum.value(likelihood.coefficients, likelihood.grid.to_unit(estimate.values)),
        "profiles": profiles,
    }


def hepdata(likelihood: Likelihood) -> str:
    """The profile likelihood of each parameter as a HEPData table in YAML."""
    tables = []
    for name, values, rises in _profiles(likelihood):
        tables.append(
            {
                "independent_variables": [
                    {"header": {"name": name}, "values": [{"value": float(v)} for v in values]}
                ],
                "dependent_variables": [
                    {
                        "header": {"name": "-Delta log L"},
                        "qualifiers": [{"name": "EVENTS", "value": likelihood.events}],
                        "values": [{"value": float(rise)} for rise in rises],
                    }
                ],
            }
        )
    return str(yaml.safe_dump_all(tables, sort_keys=False))


def scan_csv(likelihood: Likelihood) -> str:
    """The profile of every parameter as lines of `parameter,value,delta_log_likelihood`."""
    lines = ["parameter,value,delta_log_likelihood"]
    for name, values, rises in _profiles(likelihood):
        lines += [f"{name},{v:.10g},{rise:.10g}" for v, rise in zip(values, rises, strict=True)]
    return "\n".join(lines) + "\n"


def _profiles(likelihood: Likelihood) -> Iterator[tuple[str, Array, Array]]:
    """Every parameter with values over its range and the profile likelihood there."""
    for name, (low, high) in zip(likelihood.grid.parameters, likelihood.grid.bounds, strict=True):
        values = np.linspace(low, high, _POINTS)
        yield name, values, likelihood.profile(name, values)


def estimate_json(
    estimate: Estimate, level: float | None = None, wider: Array | None = None
) -> dict[str, Any]:
    """An estimate for machines."""
    parameters = {}
    for p, name in enumerate(estimate.parameters):
        low, high = estimate.intervals[p].tolist()
        simulation = estimate.errors_simulation
        parameters[name] = {
            "value": float(estimate.values[p]),
            "low": low,
            "high": high,
            "error": float(estimate.errors[p]),
            "error_simulation": None if simulation is None else float(simulation[p]),
        }
        if wider is not None:
            parameters[name]["interval"] = {"level": level, "low": wider[p][0], "high": wider[p][1]}
    return {
        "parameters": parameters,
        "correlation": estimate.correlation.tolist(),
        "events": estimate.events,
        "valid": estimate.valid,
        "p_value": estimate.p_value,
        "outside": estimate.outside,
        "warnings": caveat_rows(estimate.warnings),
    }


def caveat_rows(caveats: Iterable[Caveat]) -> list[dict[str, str]]:
    """Warnings for machines."""
    return [{"name": caveat.name, "text": caveat.text} for caveat in caveats]
