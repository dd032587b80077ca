"""PPO with hybrid actions on Moving."""

from easydict import EasyDict

main_config = gym_hybrid_hppo_config = EasyDict(
    exp_name="gym_hybrid_hppo_seed0",
    env=dict(
        env_id="Moving-v0",
        collector_env_num=8,
        evaluator_env_num=50,
        n_evaluator_episode=100,
        stop_value=1.8,
    ),
    policy=dict(
        action_space="hybrid",
        model=dict(
            obs_shape=10,
            action_shape=dict(action_type_shape=3, action_args_shape=2),
            share_encoder=False,
            encoder_hidden_size_list=[128, 128],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.97,
        learn=dict(
            epoch_per_collect=10,
            batch_size=256,
            learning_rate=0.0005,
            entropy_weight=0.003,
        ),
        collect=dict(n_sample=2048, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=400)),
    ),
)

create_config = gym_hybrid_hppo_create_config = EasyDict(
    env=dict(
        type="gym_hybrid",
        import_names=["dizoo.gym_hybrid.envs.gym_hybrid_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)
