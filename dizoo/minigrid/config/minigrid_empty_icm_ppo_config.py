"""PPO with ICM on MiniGrid-Empty-8x8-v0."""

from easydict import EasyDict

main_config = minigrid_empty_icm_ppo_config = EasyDict(
    exp_name="minigrid_empty_icm_ppo_seed0",
    env=dict(
        env_id="MiniGrid-Empty-8x8-v0",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=40,
        stop_value=0.95,
    ),
    reward_model=dict(
        type="icm",
        intrinsic_reward_weight=0.0005,
        hidden_size_list=[64, 64],
        learning_rate=0.0005,
        batch_size=256,
        update_per_collect=8,
        clear_buffer_per_iters=1,
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=984,
            action_shape=7,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.99,
        learn=dict(epoch_per_collect=4, batch_size=256, learning_rate=0.001, entropy_weight=0.01),
        collect=dict(n_sample=1024),
        eval=dict(evaluator=dict(eval_freq=32)),
    ),
)

create_config = minigrid_empty_icm_ppo_create_config = EasyDict(
    env=dict(type="minigrid", import_names=["dizoo.minigrid.envs.minigrid_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)
