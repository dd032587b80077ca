import pytest
import torch

from ding.model import DRQN, NGU, GTrXLDQN, RecurrentVAC, model_wrap

T, B = 4, 3
OBS = torch.randn(T, B, 5)


def stepped(model, obs, states, **kwargs):
    """The sequence one step at a time."""
    outputs = []
    for step in obs:
        output = model({"obs": step, "prev_state": states}, inference=True, **kwargs)
        states = output["next_state"]
        outputs.append(output["logit"])
    return torch.stack(outputs), states


@pytest.mark.parametrize("lstm_type", ["normal", "pytorch", "gru"])
@pytest.mark.parametrize("res_link", [False, True])
def test_sequences_and_single_steps_agree(lstm_type, res_link):
    model = DRQN(5, 2, [8, 8], lstm_type=lstm_type, res_link=res_link)
    whole = model({"obs": OBS, "prev_state": None})
    one_by_one, states = stepped(model, OBS, [None] * B)
    assert whole["logit"].shape == (T, B, 2)
    assert torch.allclose(one_by_one, whole["logit"], atol=1e-5)
    for one, other in zip(states, whole["next_state"], strict=True):
        assert all(torch.allclose(one[key], other[key], atol=1e-5) for key in one)


def test_states_after_given_steps():
    model = DRQN(5, 2, [8, 8])
    output = model({"obs": OBS, "prev_state": None}, saved_state_timesteps=[2, T])
    short = model({"obs": OBS[:2], "prev_state": None})
    plain = model({"obs": OBS, "prev_state": None})
    assert torch.allclose(output["logit"], plain["logit"], atol=1e-6)
    assert torch.allclose(output["saved_state"][0][1]["c"], short["next_state"][1]["c"], atol=1e-6)
    assert torch.equal(output["saved_state"][1][0]["h"], output["next_state"][0]["h"])


def test_burn_in_and_episodes_inside_a_sequence():
    model = DRQN(5, 2, [8, 8])
    burnt = model({"obs": OBS[:2], "prev_state": None})["next_state"]
    rest = model({"obs": OBS[2:], "prev_state": burnt})["logit"]
    assert torch.allclose(rest, model({"obs": OBS, "prev_state": None})["logit"][2:], atol=1e-6)
    reset = torch.zeros(T, B)
    reset[2, 0] = 1
    cut = model({"obs": OBS, "prev_state": None, "reset": reset})["logit"]
    fresh = model({"obs": OBS[2:], "prev_state": None})["logit"]
    assert torch.allclose(cut[2:, 0], fresh[:, 0], atol=1e-6)
    assert torch.allclose(cut[2:, 1], rest[:, 1], atol=1e-6)


def test_hidden_states_of_single_envs_are_reset():
    model = model_wrap(DRQN(5, 2, [8, 8]), "hidden_state", state_num=B)
    first = model.forward({"obs": OBS[0]}, inference=True)["logit"]
    second = model.forward({"obs": OBS[0]}, inference=True)["logit"]
    assert not torch.allclose(first, second, atol=1e-4)
    model.reset([1])
    third = model.forward({"obs": OBS[0]}, inference=True)["logit"]
    assert torch.allclose(third[1], first[1], atol=1e-6)
    assert not torch.allclose(third[0], first[0], atol=1e-4)
    only = model.forward({"obs": OBS[0, 2:]}, data_id=[2], inference=True)["logit"]
    assert only.shape == (1, 2)


def test_images_several_actions_and_masks():
    model = DRQN((4, 64, 64), [2, 3], [4, 4, 4, 8])
    obs = torch.zeros(B, 4, 64, 64, dtype=torch.uint8)
    output = model({"obs": obs, "prev_state": None}, inference=True)
    assert [logit.shape for logit in output["logit"]] == [(B, 2), (B, 3)]
    mask = torch.ones(T, B, 2)
    masked = DRQN(5, 2, [8])({"obs": OBS, "prev_state": None, "action_mask": mask})
    assert torch.equal(masked["action_mask"], mask)


def test_ngu_sees_the_last_action_and_reward():
    model = NGU(5, 2, [8, 8], collector_env_num=3)
    action, reward = torch.randint(2, (T, B)), torch.randn(T, B)
    beta = torch.randint(3, (T, B))
    same = model({"obs": OBS, "prev_state": None, "action": action, "reward": reward, "beta": beta})
    before = torch.cat([torch.full((1, B), -1), action[:-1]])
    earned = torch.cat([torch.zeros(1, B), reward[:-1]])
    inputs = {"obs": OBS, "prev_state": None, "prev_action": before, "beta": beta}
    output = model({**inputs, "prev_reward_extrinsic": earned})
    assert torch.allclose(output["logit"], same["logit"], atol=1e-6)
    other = model({**inputs, "prev_reward_extrinsic": earned + 1})
    assert not torch.allclose(output["logit"], other["logit"], atol=1e-4)


@pytest.mark.parametrize("action_space", ["discrete", "continuous"])
def test_recurrent_actor_critic(action_space):
    model = RecurrentVAC(5, 2, action_space, [8, 8])
    whole = model({"obs": OBS, "prev_state": None}, "compute_actor_critic")
    assert whole["value"].shape == (T, B)
    states, values = None, []
    for obs in OBS:
        inputs = {"obs": obs, "prev_state": states}
        output = model(inputs, "compute_actor_critic", inference=True)
        states = output["next_state"]
        values.append(output["value"])
    assert torch.allclose(torch.stack(values), whole["value"], atol=1e-5)
    masked = {"obs": OBS, "prev_state": None, "action_mask": torch.ones(T, B, 2)}
    assert "action_mask" in model(masked, "compute_actor")


def test_gtrxl_remembers_until_reset():
    model = GTrXLDQN(5, 2, encoder_hidden_size_list=[8], att_layer_num=2, memory_len=3)
    first = model(OBS)
    assert first["logit"].shape == (T, B, 2) and first["transformer_out"].shape == (T, B, 16)
    assert first["memory"].shape == (3, 3, B, 16)
    assert not torch.allclose(model(OBS)["logit"], first["logit"], atol=1e-5)
    model.reset_memory()
    assert torch.allclose(model(OBS)["logit"], first["logit"], atol=1e-6)
    assert model.get_memory() is not None


def test_memory_wrapper_forgets_single_envs():
    model = GTrXLDQN(5, 2, encoder_hidden_size_list=[8], att_layer_num=2, memory_len=3)
    wrapped = model_wrap(model, "transformer_memory", batch_size=B)
    first = wrapped.forward(OBS)["logit"]
    wrapped.reset([1])
    second = wrapped.forward(OBS)["logit"]
    assert torch.allclose(second[:, 1], first[:, 1], atol=1e-6)
    assert not torch.allclose(second[:, 0], first[:, 0], atol=1e-5)
