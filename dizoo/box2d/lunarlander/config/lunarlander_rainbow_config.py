"""Rainbow on LunarLander."""

from easydict import EasyDict

main_config = lunarlander_rainbow_config = EasyDict(
    exp_name="lunarlander_rainbow_seed0",
    env=dict(
        env_id="LunarLander-v3",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=40,
        stop_value=220,  # a margin over the usual 200, so that other starts reach that too
    ),
    policy=dict(
        model=dict(
            obs_shape=8,
            action_shape=4,
            encoder_hidden_size_list=[256, 256],
            v_min=-300.0,
            v_max=300.0,
        ),
        discount_factor=0.99,
        learn=dict(
            update_per_collect=4,
            batch_size=64,
            learning_rate=0.0005,
            target_update_freq=250,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.01, decay=30000),
            replay_buffer=dict(replay_buffer_size=200000),
        ),
    ),
)

create_config = lunarlander_rainbow_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="rainbow")
)
