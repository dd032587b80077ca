from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from ding.envs.obs_map import obs_map
from ding.utils.batch import stack
from ding.utils.errors import DingError

BOX = spaces.Box(-1, 1, (2,), dtype=np.float32)


def test_numbers_become_one_hot() -> None:
    one = obs_map(spaces.Discrete(3, start=-1))
    assert one.presented == spaces.Box(0, 1, (3,))
    assert one(-1).tolist() == [1, 0, 0] and one(np.int64(1)).tolist() == [0, 0, 1]
    assert one(np.array([0, 1])).tolist() == [[0, 1, 0], [0, 0, 1]]
    several = obs_map(spaces.MultiDiscrete([2, 3]))
    assert several(np.array([1, 2])).tolist() == [0, 1, 0, 0, 1]
    assert several(np.array([[0, 0], [1, 1]])).tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 1, 0]]
    with pytest.raises(DingError, match=r"the observation 2 lies outside its space Discrete\(3"):
        one(2)


def test_bits_and_scalars_become_floats_in_a_vector() -> None:
    bits = obs_map(spaces.MultiBinary(2))
    assert bits(np.array([0, 1], np.int8)).dtype == np.float32
    scalar = obs_map(spaces.Box(0, 5, (), dtype=np.float64))
    assert scalar.presented == spaces.Box(0, 5, (1,), dtype=np.float32)
    assert scalar(2.5).tolist() == [2.5] and scalar(2.5).dtype == np.float32
    assert scalar(np.array([1.0, 2.0])).tolist() == [[1], [2]]


def test_images_get_their_channels_first() -> None:
    space = spaces.Box(0, 255, (16, 20, 3), dtype=np.uint8)
    image = space.sample()
    seen = obs_map(space, "what it sees")
    assert seen.presented == spaces.Box(0, 255, (3, 16, 20), dtype=np.uint8)
    assert seen(image)[2, 5, 7] == image[5, 7, 2]
    assert seen(np.stack([image, image]))[1, 0, 3, 4] == image[3, 4, 0]
    (said,) = seen.notes
    assert said == "what it sees: images (16, 20, 3) become (3, 16, 20), channels first"
    frames = spaces.Box(0, 255, (4, 16, 20, 3), dtype=np.uint8)
    stacked = frames.sample()
    assert obs_map(frames)(stacked)[3 * 2 + 1, 5, 6] == stacked[2, 5, 6, 1]


@pytest.mark.parametrize("shape", [(3, 40, 40), (15, 20, 3), (20, 20, 2), (20, 20)])
def test_other_arrays_stay(shape: tuple[int, ...]) -> None:
    seen = obs_map(spaces.Box(0, 255, shape, dtype=np.uint8))
    assert seen.presented.shape == shape and not seen.notes


def test_dicts_and_tuples_part_by_part() -> None:
    inner = spaces.Tuple([spaces.Discrete(2), BOX])
    seen = obs_map(spaces.Dict(pair=inner, word=spaces.Text(3), x=BOX))
    assert seen.presented == spaces.Dict(
        pair=spaces.Dict({"0": spaces.Box(0, 1, (2,)), "1": BOX}), x=BOX
    )
    x = np.float32([0.5, 1])
    obs = {"pair": (1, x), "word": "abc", "x": x}
    assert seen(obs)["pair"]["0"].tolist() == [0, 1] and set(seen(obs)) == {"pair", "x"}
    assert seen(stack([obs, obs]))["pair"]["0"].tolist() == [[0, 1], [0, 1]]
    assert seen.notes == ("observation['word'] (Text) has no numbers and is left out",)


def test_masks_and_goals_stay() -> None:
    mask, bits = spaces.MultiBinary(2), spaces.MultiBinary(3)
    assert obs_map(spaces.Dict(obs=BOX, action_mask=mask)).presented["action_mask"] == mask  # type: ignore[index]
    goals = spaces.Dict(observation=bits, achieved_goal=bits, desired_goal=bits)
    seen = obs_map(goals).presented
    assert seen["desired_goal"] == bits and seen["observation"] != bits  # type: ignore[index]


@pytest.mark.parametrize("space", [spaces.Text(3), spaces.Dict(a=spaces.Text(3))])
def test_nothing_but_words_is_refused(space: spaces.Space) -> None:
    with pytest.raises(DingError, match=r"obs is a .* space, which is not supported"):
        obs_map(space, "obs")
