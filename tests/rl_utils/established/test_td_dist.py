import numpy as np
import pytest
import torch

from ding.rl_utils import (
    categorical_projection,
    dist_1step_td_data,
    dist_1step_td_error,
    dist_nstep_td_data,
    dist_nstep_td_error,
    evaluate_quantile_at_action,
    fqf_calculate_fraction_loss,
    fqf_nstep_td_data,
    fqf_nstep_td_error,
    iqn_nstep_td_data,
    iqn_nstep_td_error,
    qrdqn_nstep_td_data,
    qrdqn_nstep_td_error,
    quantile_huber,
)

DONE = torch.tensor([0.0, 1.0])


def test_projection_by_hand():
    # atoms at -1, 0, 1; 0.25 is shared 3 : 1, what lies outside goes to the edge
    p = torch.tensor([[0.5, 0.25, 0.25]])
    atoms = torch.tensor([[0.25, -7.0, 1.0]])
    projected = categorical_projection(p, atoms, -1.0, 1.0)
    assert projected.tolist() == [[0.25, 0.375, 0.375]]


@pytest.mark.parametrize("n_atom", [2, 51])
def test_projection_keeps_mass_and_mean(n_atom):
    generator = torch.Generator().manual_seed(0)
    p = torch.softmax(torch.randn(20, n_atom, generator=generator, dtype=torch.float64), dim=-1)
    atoms = torch.rand(20, n_atom, generator=generator, dtype=torch.float64) * 4 - 2
    projected = categorical_projection(p, atoms, -2.0, 2.0)
    support = torch.linspace(-2, 2, n_atom, dtype=torch.float64)
    torch.testing.assert_close(projected.sum(-1), torch.ones(20, dtype=torch.float64))
    torch.testing.assert_close((projected * support).sum(-1), (p * atoms).sum(-1))
    assert (projected >= 0).all()


def c51(batch=3, actions=2, atoms=5, steps=2):
    generator = torch.Generator().manual_seed(1)

    def probabilities():
        logit = torch.randn(batch, actions, atoms, generator=generator, dtype=torch.float64)
        return torch.softmax(logit, dim=-1)

    return dist_nstep_td_data(
        probabilities(), probabilities(), torch.tensor([0, 1, 1]), torch.tensor([1, 0, 1]),
        torch.randn(steps, batch, generator=generator, dtype=torch.float64),
        torch.tensor([0.0, 1.0, 0.0]), None,
    )  # fmt: skip


def c51_reference(data, gamma, v_min, v_max, n_atom, value_gamma=None):
    """Atom by atom."""
    support = np.linspace(v_min, v_max, n_atom)
    width = support[1] - support[0]
    losses = []
    for b, (a, next_a) in enumerate(zip(data.act, data.next_n_act, strict=True)):
        reward = sum(gamma**k * data.reward[k, b].item() for k in range(len(data.reward)))
        factor = gamma ** len(data.reward) if value_gamma is None else value_gamma[b]
        target = np.zeros(n_atom)
        for z, p in zip(support, data.next_n_dist[b, next_a].tolist(), strict=True):
            place = np.clip(reward + factor * (1 - data.done[b].item()) * z, v_min, v_max)
            for k in range(n_atom):
                target[k] += p * max(0.0, 1 - abs(place - support[k]) / width)
        losses.append(-(target * np.log(data.dist[b, a].numpy())).sum())
    return np.array(losses)


def test_distributional_against_a_reference():
    data = c51()
    loss, per_sample = dist_nstep_td_error(data, 0.9, -2.0, 2.0, 5, nstep=2)
    expected = c51_reference(data, 0.9, -2.0, 2.0, 5)
    np.testing.assert_allclose(per_sample.numpy(), expected)
    assert loss.item() == pytest.approx(expected.mean())
    gammas = torch.tensor([0.5, 0.6, 0.7], dtype=torch.float64)
    short = dist_nstep_td_error(data, 0.9, -2.0, 2.0, 5, 2, value_gamma=gammas)[1]
    np.testing.assert_allclose(short, c51_reference(data, 0.9, -2.0, 2.0, 5, gammas.numpy()))
    weighted = dist_nstep_td_error(data._replace(weight=torch.tensor([0.0, 3.0, 0.0])), 0.9, -2.0,
                                   2.0, 5, 2)[0]  # fmt: skip
    assert weighted.item() == pytest.approx(expected[1])
    assert dist_nstep_td_error(data._replace(weight=0.5), 0.9, -2.0, 2.0, 5, 2)[0] == loss / 2


def test_distributional_one_step_and_agents():
    data = c51(steps=1)
    one = dist_1step_td_data(*data)._replace(reward=data.reward[0])
    loss, per_sample = dist_nstep_td_error(data, 0.9, -2.0, 2.0, 5)
    assert dist_1step_td_error(one, 0.9, -2.0, 2.0, 5) == loss
    agents = data._replace(
        dist=data.dist[:, None].repeat(1, 2, 1, 1),
        next_n_dist=data.next_n_dist[:, None].repeat(1, 2, 1, 1),
        act=data.act[:, None].repeat(1, 2),
        next_n_act=data.next_n_act[:, None].repeat(1, 2),
        weight=torch.ones(3),
    )
    shared, each = dist_nstep_td_error(agents, 0.9, -2.0, 2.0, 5)
    torch.testing.assert_close(each, per_sample[:, None].repeat(1, 2))
    torch.testing.assert_close(shared, loss)


def test_distributional_zero_probability_is_finite():
    data = c51()
    dist = torch.zeros_like(data.dist)
    dist[..., 0] = 1
    loss, _ = dist_nstep_td_error(data._replace(dist=dist), 0.9, -2.0, 2.0, 5, 2)
    assert torch.isfinite(loss)


def test_distributional_gradient():
    data = c51()
    logit = torch.randn(3, 2, 5, dtype=torch.float64, requires_grad=True)

    def loss(logit):
        dist = torch.softmax(logit, dim=-1)
        return dist_nstep_td_error(data._replace(dist=dist), 0.9, -2.0, 2.0, 5, 2)[0]

    assert torch.autograd.gradcheck(loss, logit)


def quantile_reference(q, target, tau, kappa=1.0):
    """Pair by pair: (B, N), (B, M), (B, N) -> (B,)."""
    losses = np.zeros(len(q))
    for b in range(len(q)):
        for i in range(q.shape[1]):
            for y in target[b]:
                error = y - q[b, i]
                size = abs(error)
                huber = 0.5 * error**2 if size <= kappa else kappa * (size - 0.5 * kappa)
                side = tau[b, i] if error >= 0 else 1 - tau[b, i]
                losses[b] += side * huber / kappa / target.shape[1]
    return losses


def test_quantile_loss_by_hand():
    # errors 0.5 (below one) and -3 (above), at fraction 0.25
    q, target, tau = torch.zeros(1, 1), torch.tensor([[0.5, -3.0]]), torch.tensor([[0.25]])
    assert quantile_huber(q, target, tau).item() == pytest.approx((0.25 * 0.125 + 0.75 * 2.5) / 2)


@pytest.mark.parametrize("kappa", [1.0, 0.3])
def test_quantile_loss_against_a_reference_and_gradient(kappa):
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.randn(3, 5, generator=generator, dtype=torch.float64) * 2
    tau = torch.rand(3, 4, generator=generator, dtype=torch.float64)
    expected = quantile_reference(q.detach().numpy(), target.numpy(), tau.numpy(), kappa)
    np.testing.assert_allclose(quantile_huber(q, target, tau, kappa).detach(), expected)
    assert torch.autograd.gradcheck(lambda q: quantile_huber(q, target, tau, kappa), q)


def quantile_data(layout):
    """The same numbers for QR-DQN 'ban', IQN 'nba' and FQF 'bna': B 2, A 3, N 4, M 5."""
    generator = torch.Generator().manual_seed(2)
    q = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64)
    next_q = torch.randn(2, 3, 5, generator=generator, dtype=torch.float64)
    reward = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    tau = torch.rand(2, 4, generator=generator, dtype=torch.float64)
    order = ["ban".index(axis) for axis in layout]
    action, next_action = torch.tensor([2, 0]), torch.tensor([1, 2])
    columns = q.permute(order), next_q.permute(order), action, next_action, reward, DONE
    chosen, following = q[[0, 1], action].numpy(), next_q[[0, 1], next_action].numpy()
    target = (reward[0] + 0.5 * reward[1]).numpy()[:, None] + 0.25 * following * [[1], [0]]
    return columns, tau, quantile_reference(chosen, target, tau.numpy())


def test_qrdqn():
    columns, tau, expected = quantile_data("ban")
    data = qrdqn_nstep_td_data(*columns, tau.unsqueeze(-1), None)
    loss, per_sample = qrdqn_nstep_td_error(data, 0.5, nstep=2)
    np.testing.assert_allclose(per_sample, expected)
    assert loss.item() == pytest.approx(expected.mean())
    even = torch.arange(0.125, 1, 0.25, dtype=torch.float64)
    shaped = [
        qrdqn_nstep_td_error(data._replace(tau=t), 0.5, 2)[1]
        for t in (even, even.reshape(1, 4, 1), even.repeat(2, 1))
    ]
    assert torch.equal(shaped[0], shaped[1]) and torch.equal(shaped[0], shaped[2])
    same = qrdqn_nstep_td_error(data, 0.5, 2, value_gamma=torch.full((2,), 0.25).double())[0]
    assert same == loss


def test_iqn():
    columns, tau, expected = quantile_data("nba")
    data = iqn_nstep_td_data(*columns, tau.t().reshape(-1, 1), torch.tensor([1.0, 3.0]))
    loss, per_sample = iqn_nstep_td_error(data, 0.5, nstep=2)
    np.testing.assert_allclose(per_sample, expected)
    assert loss.item() == pytest.approx((expected * [1, 3]).mean())


def test_fqf():
    columns, tau, expected = quantile_data("bna")
    data = fqf_nstep_td_data(*columns, tau, None)
    loss, per_sample = fqf_nstep_td_error(data, 0.5, nstep=2)
    np.testing.assert_allclose(per_sample, expected)
    assert loss.item() == pytest.approx(expected.mean())
    picked = evaluate_quantile_at_action(columns[0], columns[2])
    assert picked.shape == (2, 4, 1) and torch.equal(picked[0, :, 0], columns[0][0, :, 2])


def test_fraction_loss_has_the_gradient_of_the_paper():
    # increasing quantiles: 2 F(tau_i) - F(mid before) - F(mid after)
    at = torch.tensor([[[1.0], [2.0]]])
    middle = torch.tensor([[[0.5], [1.75], [4.0]]])
    quantiles = torch.tensor([[0.0, 0.2, 0.5, 1.0]], requires_grad=True)
    loss = fqf_calculate_fraction_loss(at, middle, quantiles, torch.tensor([0]))
    loss.backward()
    assert quantiles.grad.tolist() == [[0.0, 2 * 1 - 0.5 - 1.75, 2 * 2 - 1.75 - 4, 0.0]]
    assert loss.item() == pytest.approx(-0.25 * 0.2 - 1.75 * 0.5)
