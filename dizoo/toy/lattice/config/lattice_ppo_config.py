"""PPO with several discrete actions at once on the lattice."""

from easydict import EasyDict

main_config = lattice_ppo_config = EasyDict(
    exp_name="lattice_ppo_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-2.05,  # the best return is -2
    ),
    policy=dict(
        model=dict(
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.9,
        learn=dict(epoch_per_collect=4, batch_size=256, learning_rate=0.001),
        collect=dict(n_sample=1024, gae_lambda=0.9),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = lattice_ppo_create_config = EasyDict(
    env=dict(type="lattice", import_names=["dizoo.toy.lattice.envs.lattice_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)
