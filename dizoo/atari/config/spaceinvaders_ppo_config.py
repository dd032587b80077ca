"""PPO on SpaceInvaders."""

from easydict import EasyDict

main_config = spaceinvaders_ppo_config = EasyDict(
    exp_name="spaceinvaders_ppo_seed0",
    env=dict(
        env_id="ALE/SpaceInvaders-v5",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=1000,
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            encoder_hidden_size_list=[32, 64, 64, 512],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
        ),
        recompute_adv=False,  # it would be another pass over all frames for every epoch
        discount_factor=0.99,
        learn=dict(
            epoch_per_collect=4,
            batch_size=256,
            learning_rate=0.00025,
            lr_scheduler=dict(type="linear", unit="env_step", decay=10000000),
            entropy_weight=0.01,
            clip_ratio=0.1,
        ),
        collect=dict(n_sample=1024, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=2000)),
    ),
)

create_config = spaceinvaders_ppo_create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="ppo"),
)
