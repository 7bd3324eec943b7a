"""The network in ONNX gives what the model gives."""

import numpy as np
import pytest
import torch

import gridless as gl
from gridless.density.activations import ACTIVATIONS
from gridless.model.storage.onnx import onnx_bytes


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_onnx_of_every_activation_with_bent_inputs(activation):
    import onnx
    from onnx.reference import ReferenceEvaluator

    random = np.random.default_rng(1)
    theta = np.repeat([0.2, 0.5, 0.8], 300)
    x = np.stack([random.normal(theta), np.exp(3 * random.normal(size=900))], axis=1)
    options = {"hidden": (3, 2), "epochs": 1, "replicas": 0, "ensemble": 2}
    model = gl.fit(gl.Templates(x, theta, (0, 1)), activation=activation, **options)
    assert (model.network.bend > 0).tolist() == [False, True]
    assert model.network.shift[1] != 0
    made = onnx.load_model_from_string(onnx_bytes(model))
    (y,) = ReferenceEvaluator(made).run(None, {"x": x.astype(np.float32)})
    standard = model.network.standardise(torch.tensor(x)).float()
    ours = model.network.conditioner(standard).detach().mT.numpy()
    np.testing.assert_allclose(y, ours, atol=1e-4)
