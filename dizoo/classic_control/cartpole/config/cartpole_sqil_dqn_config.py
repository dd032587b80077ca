"""SQIL by DQN on CartPole-v1, from five episodes of an expert; the env's rewards are not used.

Reddy et al. 2020, https://arxiv.org/abs/1905.11108

ding -m serial -e cartpole -p ppo --exp-name expert
ding demo make expert --episodes 5 -o cartpole_expert.hdf5
"""

from easydict import EasyDict

main_config = cartpole_sqil_dqn_config = EasyDict(
    exp_name="cartpole_sqil_dqn_seed0",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=20,
        stop_value=490,  # a margin over the usual 475, so that other starts reach that too
    ),
    policy=dict(
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[256, 256], dueling=False),
        discount_factor=0.99,
        # Smaller steps and slower targets balanced the pole too, but let the cart drift off the
        # track; these values were changed together, so none of them alone is known to matter.
        learn=dict(
            update_per_collect=4,
            batch_size=64,
            learning_rate=0.002,
            target_update_freq=10,
            grad_clip_type="clip_norm",
            grad_clip_value=10.0,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            demonstrations=dict(
                path="cartpole_expert.hdf5",
                n_episode=5,
                share=0.5,
                agent_reward=0.0,
                expert_reward=1.0,
            ),
            eps=dict(type="linear", start=1.0, end=0.04, decay=4000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = cartpole_sqil_dqn_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="dqn")
)
