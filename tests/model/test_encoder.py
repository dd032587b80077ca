import numpy as np
import pytest
import torch

from ding.model import ConvEncoder, DictEncoder, FCEncoder, encoder_for
from ding.utils.errors import ConfigError


@pytest.mark.parametrize(
    ("obs_shape", "kind"),
    [
        (4, FCEncoder),
        ((4,), FCEncoder),
        ([3, 5], FCEncoder),
        ((), FCEncoder),
        ((2, 36, 36), ConvEncoder),
        ({"a": 3, "b": (1, 36, 36)}, DictEncoder),
    ],
)
def test_encoder_by_shape(obs_shape, kind):
    encoder = encoder_for(obs_shape, [8, 8, 16])

    def obs(shape):
        return torch.randn(5, *((shape,) if isinstance(shape, int) else shape))

    is_dict = isinstance(obs_shape, dict)
    x = {k: obs(s) for k, s in obs_shape.items()} if is_dict else obs(obs_shape)
    assert type(encoder) is kind
    assert encoder(x).shape == (5, encoder.output_size)
    assert encoder.output_size == (32 if is_dict else 16)


def test_conv_encoder_default_is_convolutions_then_fully_connected():
    encoder = ConvEncoder((4, 84, 84))
    kinds = [type(layer).__name__ for layer in encoder.main]
    assert kinds == ["Conv2d", "ReLU"] * 3 + ["Flatten", "Linear", "ReLU"]
    assert encoder.main[7].in_features == 64 * 7 * 7


def test_uint8_is_scaled():
    encoder = encoder_for((1, 36, 36), [4, 4, 8])
    frames = torch.randint(256, (2, 1, 36, 36), dtype=torch.uint8)
    torch.testing.assert_close(encoder(frames), encoder(frames.float() / 255))
    vector = encoder_for(3, [8])
    torch.testing.assert_close(
        vector(torch.full((1, 3), 255, dtype=torch.uint8)), vector(torch.ones(1, 3))
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_the_layout_for_gradients_changes_nothing_else(dtype):
    encoder = ConvEncoder((4, 84, 84), [4, 8, 8, 16])
    frames = torch.randint(0, 256, (3, 4, 84, 84)).to(dtype)
    before = frames.clone()
    with_gradient = encoder(frames)
    plain = encoder.main(frames / 255.0 if dtype is torch.uint8 else frames)
    torch.testing.assert_close(with_gradient, plain)
    parameters = list(encoder.parameters())
    pairs = [torch.autograd.grad(out.square().sum(), parameters) for out in (with_gradient, plain)]
    for one, other in zip(*pairs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))
    with torch.no_grad():
        torch.testing.assert_close(encoder(frames), plain)
    assert torch.equal(frames, before)


def test_leading_time_axis_is_kept():
    encoder = encoder_for((1, 36, 36), [4, 4, 8])
    x = torch.randn(3, 2, 1, 36, 36)
    torch.testing.assert_close(encoder(x)[1], encoder(x[1]))
    vector = encoder_for((3, 2), [8])
    y = torch.randn(4, 5, 3, 2)
    torch.testing.assert_close(vector(y)[2], vector(y[2]))


def test_double_and_integer_observations_are_cast():
    encoder = encoder_for(3, [8])
    whole = torch.tensor([[1, 2, 3]])
    torch.testing.assert_close(encoder(whole), encoder(whole.float()))
    torch.testing.assert_close(encoder(whole.double()), encoder(whole.float()))


def test_numpy_integers_are_sizes():
    assert encoder_for(np.int64(3), [8]).main[0].in_features == 3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: encoder_for("4", [8]), "obs_shape must be a positive integer.*'4'"),
        (
            lambda: encoder_for((4, -1), [8]),
            r"obs_shape must hold positive integers, got \(4, -1\)",
        ),
        (lambda: encoder_for(0, [8]), "positive integers, got 0"),
        (lambda: encoder_for(4, []), "encoder_hidden_size_list is empty"),
        (lambda: encoder_for({}, [8]), "empty dict"),
        (lambda: ConvEncoder((3, 8, 8), [8, 8, 8]), "too small for kernel_size"),
        (lambda: encoder_for((3, 84, 84), [8]), "shorter than kernel_size"),
        (lambda: ConvEncoder((84, 84)), r"needs obs_shape \(C, H, W\)"),
        (lambda: ConvEncoder((1, 84, 84), stride=[1]), "the same length, got 3, 1, 3"),
    ],
)
def test_errors_name_what_is_wrong(build, message):
    with pytest.raises(ConfigError, match=message):
        build()
