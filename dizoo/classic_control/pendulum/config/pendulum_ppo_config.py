"""PPO on Pendulum."""

from easydict import EasyDict

main_config = pendulum_ppo_config = EasyDict(
    exp_name="pendulum_ppo_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=20,
        act_scale=True,
        stop_value=-200,
    ),
    policy=dict(
        action_space="continuous",
        model=dict(
            obs_shape=3,
            action_shape=1,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.9,
        learn=dict(
            epoch_per_collect=10,
            batch_size=256,
            learning_rate=0.001,
        ),
        collect=dict(n_sample=2048, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=400)),
    ),
)

create_config = pendulum_ppo_create_config = EasyDict(
    env=dict(
        type="pendulum",
        import_names=["dizoo.classic_control.pendulum.envs.pendulum_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)
