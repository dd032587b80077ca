"""Every template model by its registered name: shapes, gradients, learning, acting."""

from functools import partial

import pytest
import torch

from ding.model import create_model
from ding.torch_utils import Adam
from ding.utils.errors import ConfigError
from ding.utils.registry import MODEL_REGISTRY

B, T, A = 4, 3, 2
HYBRID = {"action_type_shape": 3, "action_args_shape": 2}
SMALL = {4: [16, 8], (4, 64, 64): [4, 4, 4, 8]}
GTRXL = dict(att_layer_num=1, memory_len=2, att_head_dim=4, hidden_size=8)
OF_AGENTS = ("mavac", "havac", "discrete_maqac", "continuous_maqac")
MODES = ("compute_actor", "compute_critic", "compute_actor_critic")


def obs_of(shape, *leading):
    if isinstance(shape, int):
        return torch.randn(*leading, shape)
    return torch.randint(0, 255, (*leading, *shape), dtype=torch.uint8)


def build(name, obs_shape, **options):
    sizes = SMALL[obs_shape]
    if name in ("qac", "continuous_qac", "discrete_qac", "qac_dist", "hybrid_qac"):
        options.setdefault("encoder_hidden_size_list", sizes)
    if name == "bdq":
        settings = dict(num_branches=2, action_bins_per_branch=A)
    elif name in ("pdqn", "hybrid_vac", "hybrid_qac"):
        settings = dict(action_shape=HYBRID)
    else:
        settings = dict(action_shape=A)
    settings |= GTRXL if name == "gtrxldqn" else {}
    settings |= dict(collector_env_num=2) if name == "ngu" else {}
    settings |= dict(twin_critic=True) if name in ("qac", "hybrid_qac") else {}
    if name == "coma":
        shapes = {"agent_state": 4, "global_state": 3}
        return create_model({"type": name, "agent_num": 2, "obs_shape": shapes, "action_shape": A})
    if name in OF_AGENTS:  # which see vectors
        settings |= dict(agent_obs_shape=4, global_obs_shape=3, agent_num=2)
        return create_model({"type": name, **settings})
    if name == "collaq":
        settings |= dict(agent_num=2, alone_obs_shape=2, global_obs_shape=3)
        return create_model({"type": name, "obs_shape": 4, "hidden_size_list": [8], **settings})
    if name in ("qmix", "wqmix", "qtran"):
        settings |= dict(agent_num=2, global_obs_shape=3, hidden_size_list=sizes)
        return create_model({"type": name, "obs_shape": obs_shape, **settings})
    options = {"encoder_hidden_size_list": sizes, **options}
    return create_model({"type": name, "obs_shape": obs_shape, **settings, **options})


def plain(model, obs):
    return [model(obs(B))]


def in_modes(model, obs):
    return [model(obs(B), mode) for mode in model.modes]


def as_vac(model, obs):
    return [model(obs(B), mode) for mode in MODES]


def of_agents(model, obs):
    return [model({"obs": {"agent_state": obs(B, 2), "global_state": torch.ones(B, 3)}})]


def of_agents_and_star(model, obs):
    x = {"agent_state": obs(B, 2), "global_state": torch.ones(B, 3)}
    return [model({"obs": x}, q_star=star) for star in (False, True)]


def of_agents_alone(model, obs):
    state = torch.linspace(-1, 1, B * 8).view(B, 2, 4)
    x = {"agent_state": state, "global_state": torch.ones(B, 3)}
    x |= {"agent_alone_state": state[..., :2], "agent_alone_padding_state": 0.5 * state}
    return [model({"obs": x})]


def of_agents_and_critic(model, obs):
    state = torch.linspace(-1, 1, B * 8).view(B, 2, 4)
    x = {"agent_state": state, "global_state": state[:, 0, :3]}
    return [model(x, mode) for mode in MODES]


def of_agents_with_actions(model, obs):
    state = torch.linspace(-1, 1, B * 8).view(B, 2, 4)
    x = {"agent_state": state, "global_state": state[:, 0, :3]}
    action = torch.linspace(-1, 1, B * 2 * A).view(B, 2, A)
    return [model(x), model({"obs": x, "action": action}, "compute_critic")]


def of_agents_with_choices(model, obs):
    state = torch.linspace(-1, 1, B * 8).view(B, 2, 4)
    x = {"agent_state": state, "global_state": state[:, 0, :3]}
    action = torch.tensor([[0, 1], [1, 0]] * 2)
    return [model(x), model({"obs": x, "action": action}, "compute_critic")]


def with_action(model, obs):
    x = obs(B)
    return [model(x), model({"obs": x, "action": torch.randn(B, A)}, "compute_critic")]


def with_hybrid_action(model, obs):
    x = obs(B)
    actor = model(x)
    action = {"action_type": torch.zeros(B), "action_args": actor["action_args"]}
    return [actor, model({"obs": x, "action": action}, "compute_critic")]


def parametrised(model, obs):
    args = model(obs(B), "compute_continuous")
    return [args, model({"state": obs(B), **args}, "compute_discrete")]


def in_sequence(model, obs, **extra):
    return [model({"obs": obs(T, B), "prev_state": None, **extra})]


def recurrent_vac(model, obs):
    return [model({"obs": obs(T, B), "prev_state": None}, mode) for mode in MODES]


PAST = dict(
    prev_action=torch.zeros(T, B, dtype=torch.long),
    prev_reward_extrinsic=torch.randn(T, B),
    beta=torch.ones(T, B, dtype=torch.long),
)
CALLS = {
    **dict.fromkeys(
        [
            *("dqn", "c51dqn", "rainbowdqn", "qrdqn", "iqn", "fqf", "bdq", "sqn", "pg"),
            *("discrete_bc", "continuous_bc"),
        ],
        plain,
    ),
    **dict.fromkeys(["vac", "hybrid_vac", "acer", "discrete_qac"], in_modes),
    **dict.fromkeys(["qac", "continuous_qac", "qac_dist"], with_action),
    "ppg": as_vac,
    "hybrid_qac": with_hybrid_action,
    "pdqn": parametrised,
    "drqn": in_sequence,
    "ngu": partial(in_sequence, **PAST),
    "recurrent_vac": recurrent_vac,
    **dict.fromkeys(["qmix", "qtran"], of_agents),
    "wqmix": of_agents_and_star,
    "collaq": of_agents_alone,
    **dict.fromkeys(["mavac", "havac"], of_agents_and_critic),
    "coma": of_agents_with_choices,
    **dict.fromkeys(["discrete_maqac", "continuous_maqac"], of_agents_with_actions),
    "gtrxldqn": lambda model, obs: [model(obs(T, B))],
}


def total(output):
    """A sum of squares of every tensor with a gradient."""
    if isinstance(output, torch.Tensor):
        return output.square().sum() if output.requires_grad else 0.0
    parts = output.values() if isinstance(output, dict) else output
    return sum(total(part) for part in parts)


def test_every_registered_model_is_tested():
    assert set(CALLS) == set(MODEL_REGISTRY.query())


@pytest.mark.parametrize("obs_shape", SMALL, ids=["vector", "image"])
@pytest.mark.parametrize("name", CALLS)
def test_gradients_reach_all_parameters(name, obs_shape):
    model = build(name, obs_shape)
    total(CALLS[name](model, partial(obs_of, obs_shape))).backward()
    without = [
        n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()
    ]
    assert without == []


@pytest.mark.parametrize("name", CALLS)
def test_one_batch_can_be_learnt(name):
    torch.manual_seed(0)
    model, fixed = build(name, 4).eval(), {}

    def obs(*leading):
        return fixed.setdefault(leading, obs_of(4, *leading))

    def loss():
        if hasattr(model, "reset_memory"):
            model.reset_memory()
        return ((value_of(CALLS[name](model, obs)) - 0.5).square()).mean()

    optimizer = Adam(model.parameters(), lr=0.01)
    first = loss().item()
    for _ in range(60):
        optimizer.step_on(loss())
    assert loss().item() < 0.2 * first + 1e-4


def value_of(outputs):
    """The tensors of actions and values of all outputs, flat."""
    flat = []
    for output in outputs:
        for key in ("logit", "action", "value", "q_value", "action_args"):
            flat += leaves(output.get(key, []))
    return torch.cat([leaf.flatten() for leaf in flat])


def leaves(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = [v for k, v in tree.items() if k != "sigma"] if isinstance(tree, dict) else tree
    return [leaf for part in parts for leaf in leaves(part)]


@pytest.mark.parametrize("name", ["c51dqn", "rainbowdqn", "qrdqn", "iqn", "fqf"])
def test_several_actions_and_masks(name):
    model = create_model({"type": name, "obs_shape": 4, "action_shape": [2, 3]})
    output = model({"obs": obs_of(4, B), "action_mask": [torch.ones(B, 2), torch.ones(B, 3)]})
    assert [logit.shape for logit in output["logit"]] == [(B, 2), (B, 3)]
    assert len(output["action_mask"]) == 2
    assert all(len(value) == 2 for value in output.values())


def test_options_that_are_passed_on_are_checked():
    cfg = {"type": "ppg", "obs_shape": 4, "action_shape": 2}
    with pytest.raises(ConfigError, match="did you mean 'share_encoder'"):
        create_model({**cfg, "share_encodr": True})
    assert create_model({**cfg, "share_encoder": False}).actor_critic.share_encoder is False
