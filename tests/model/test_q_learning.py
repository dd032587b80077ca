import torch

from ding.model import BDQ, C51DQN, FQF, IQN, QRDQN, RainbowDQN, SQNModel
from ding.rl_utils import (
    bdq_nstep_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
    fqf_nstep_td_data,
    fqf_nstep_td_error,
    iqn_nstep_td_data,
    iqn_nstep_td_error,
    q_nstep_td_data,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
)

B, A = 6, 3
OBS = torch.randn(B, 4)
ACTION = torch.randint(A, (B,))
REWARD, DONE = torch.randn(1, B), torch.zeros(B)


def learns(model, loss):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = loss().item()
    for _ in range(80):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return loss().item() < 0.5 * first


def targets(model):
    with torch.no_grad():
        return {key: value.clone() for key, value in model(OBS).items()}


def test_outputs_fit_the_losses():
    c51 = C51DQN(4, A, [16], v_min=-3.0, v_max=3.0)
    goal = targets(c51)["distribution"]

    def c51_loss():
        data = (c51(OBS)["distribution"], goal, ACTION, ACTION, REWARD, DONE, None)
        return dist_nstep_td_error(dist_nstep_td_data(*data), 0.0, -3.0, 3.0, 51)[0]

    before = c51_loss().item()
    learns(c51, c51_loss)
    assert c51_loss().item() < before - 0.5

    qr = QRDQN(4, A, [16], num_quantiles=8)
    goal = targets(qr)["q"]

    def qr_loss():
        output = qr(OBS)
        data = (output["q"], goal, ACTION, ACTION, REWARD, DONE, output["tau"], None)
        return qrdqn_nstep_td_error(qrdqn_nstep_td_data(*data), 0.0)[0]

    assert learns(qr, qr_loss)


def test_outputs_of_quantile_networks_fit_the_losses():
    iqn = IQN(4, A, [16], num_quantiles=8)
    goal = targets(iqn)["q"]

    def iqn_loss():
        output = iqn(OBS)
        data = (output["q"], goal, ACTION, ACTION, REWARD, DONE, output["quantiles"], None)
        return iqn_nstep_td_error(iqn_nstep_td_data(*data), 0.0)[0]

    assert learns(iqn, iqn_loss)
    fqf = FQF(4, A, [16], num_quantiles=8)
    goal = targets(fqf)["q"]

    def fqf_loss():
        output = fqf(OBS)
        data = (output["q"], goal, ACTION, ACTION, REWARD, DONE, output["quantiles_hats"], None)
        return fqf_nstep_td_error(fqf_nstep_td_data(*data), 0.0)[0]

    assert learns(fqf, fqf_loss)


def test_branches_fit_the_loss():
    model, action = BDQ(4, 2, A, layer_num=1), torch.randint(A, (B, 2))
    goal = targets(model)["logit"]

    def loss():
        data = (model(OBS)["logit"], goal, action, action, REWARD, DONE, None)
        return bdq_nstep_td_error(q_nstep_td_data(*data), 0.0)[0]

    assert learns(model, loss)


def test_rainbow_is_noisy_unless_told_otherwise():
    assert not torch.equal(RainbowDQN(4, A)(OBS)["logit"], RainbowDQN(4, A).eval()(OBS)["logit"])
    for model in (C51DQN(4, A), RainbowDQN(4, A, noise=False)):
        assert torch.equal(model(OBS)["logit"], model.eval()(OBS)["logit"])


def test_two_networks_of_sqn():
    output = SQNModel(4, A)(OBS)
    first, second = output["q_value"]
    assert not torch.equal(first, second)
    assert torch.equal(output["logit"], torch.minimum(first, second))
