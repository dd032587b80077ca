"""P-DQN on Moving: stop inside the target by accelerating, turning and braking."""

from easydict import EasyDict

main_config = gym_hybrid_pdqn_config = EasyDict(
    exp_name="gym_hybrid_pdqn_seed0",
    env=dict(
        env_id="Moving-v0",
        collector_env_num=8,
        evaluator_env_num=50,
        n_evaluator_episode=100,
        stop_value=1.8,
    ),
    policy=dict(
        model=dict(
            obs_shape=10,
            action_shape=dict(action_type_shape=3, action_args_shape=2),
            encoder_hidden_size_list=[128, 128],
        ),
        # With less hurry, arriving now and later are worth nearly the same, and it dithers.
        discount_factor=0.95,
        random_collect_size=1000,
        learn=dict(
            update_per_collect=2,
            batch_size=128,
            dis_learning_rate=0.001,
            cont_learning_rate=0.0003,
            double_q=True,
        ),
        collect=dict(n_sample=8, noise_sigma=0.1),
        eval=dict(evaluator=dict(eval_freq=1000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=20000),
            replay_buffer=dict(replay_buffer_size=100000),
        ),
    ),
)

create_config = gym_hybrid_pdqn_create_config = EasyDict(
    env=dict(
        type="gym_hybrid",
        import_names=["dizoo.gym_hybrid.envs.gym_hybrid_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="pdqn"),
)
