"""PPO on CartPole-v1 (episodes of 500 steps)."""

from easydict import EasyDict

main_config = cartpole_ppo_config = EasyDict(
    exp_name="cartpole_ppo_seed0",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=20,
        stop_value=475,
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=4,
            action_shape=2,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.98,
        learn=dict(
            epoch_per_collect=10,
            batch_size=256,
            learning_rate=0.001,
            entropy_weight=0.0,
            clip_ratio=0.2,
        ),
        collect=dict(n_sample=1024, gae_lambda=0.9),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = cartpole_ppo_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="ppo")
)
