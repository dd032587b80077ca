"""PPO on Pong, with a network of a third of the usual work, which is enough for it."""

from easydict import EasyDict

main_config = pong_ppo_config = EasyDict(
    exp_name="pong_ppo_seed0",
    env=dict(
        env_id="ALE/Pong-v5",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=18,
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            encoder_hidden_size_list=[16, 32, 32, 256],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
        ),
        recompute_adv=False,  # it would be another pass over all frames for every epoch
        discount_factor=0.99,
        learn=dict(
            epoch_per_collect=4,
            batch_size=256,
            learning_rate=0.0005,
            lr_scheduler=dict(type="linear", unit="env_step", decay=5000000),
            entropy_weight=0.01,
            clip_ratio=0.1,
        ),
        collect=dict(n_sample=1024, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=2000)),
    ),
)

create_config = pong_ppo_create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="ppo"),
)
