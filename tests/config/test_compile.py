from __future__ import annotations

import copy
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from easydict import EasyDict

from ding.config import compile_config, explain, override, read_config
from ding.utils.errors import ConfigError, DingError

from . import fakes
from .fakes import CREATE, main_config, run

pytestmark = pytest.mark.usefixtures("parts")


def test_defaults_of_every_part_are_in_their_places() -> None:
    cfg = run(main_config())
    assert isinstance(cfg, EasyDict) and isinstance(cfg.policy.learn, EasyDict)
    assert cfg.exp_name == "default_experiment" and cfg.checkpoint_seconds == 60.0
    assert cfg.env.manager.retry_type == "reset" and cfg.env.manager.type == "base"
    assert cfg.env.act_scale is True and cfg.env.collector_env_num == 8
    assert cfg.policy.learn.learner.hook.save_ckpt_after_iter == 10000
    assert cfg.policy.collect.collector.collect_print_freq == 100
    assert cfg.policy.eval.evaluator.eval_freq == 1000
    assert cfg.policy.other.commander.type == "base"
    assert cfg.policy.learn.betas == (0.9, 0.999) and cfg.policy.other.eps.start == 0.5
    assert "reward_model" not in cfg and "unroll_len" not in cfg.policy


def test_a_policys_default_for_a_part_wins_over_the_parts_own() -> None:
    buffer = run(main_config()).policy.other.replay_buffer
    assert buffer.replay_buffer_size == 77 and buffer.deepcopy is False


def test_the_users_values_win() -> None:
    main = main_config(learn={"batch_size": 32, "learner": {"train_iterations": 7}})
    main["env"]["manager"] = {"max_retry": 3}
    cfg = run(main | {"exp_name": "mine"})
    assert (cfg.policy.learn.batch_size, cfg.policy.learn.learner.train_iterations) == (32, 7)
    assert cfg.env.manager.max_retry == 3 and cfg.exp_name == "mine"


def test_inputs_are_not_changed() -> None:
    main, create = main_config(batch_size=2), copy.deepcopy(CREATE)
    before = copy.deepcopy(main)
    cfg = run(main, create)
    cfg.policy.learn.batch_size = 999
    assert main == before and create == CREATE
    assert run(main, create).policy.learn.batch_size == 2


@pytest.mark.parametrize(
    ("main", "message"),
    [
        (
            main_config(learn={"lerning_rate": 0.1}),
            "unknown config key 'policy.learn.lerning_rate' (= 0.1); did you mean 'learning_rate'?",
        ),
        (main_config(colect={}), "'policy.colect' (= {}); did you mean 'collect'?"),
        (main_config(collect={"nstep": 3}), "did you mean 'policy.nstep'?"),
        (main_config(env={"act_scal": 1}), "'env.act_scal' (= 1); did you mean 'act_scale'?"),
        (main_config(env={"manager": {"max_rety": 1}}), "'env.manager.max_rety'"),
        (main_config() | {"polcy": {}}, "unknown config key 'polcy' (= {}); did you mean 'policy'"),
        (main_config(model={"obs_shap": 4}), "'policy.model.obs_shap' (= 4); did you mean"),
        (main_config(learn={"batch_size": "64"}), "'policy.learn.batch_size' must be int"),
        (main_config(env={"env_kwargs": 3}), "'env.env_kwargs' must be a dict, got 3 (int)"),
        (main_config(nstep=0), "policy': nstep must be at least 1, got 0"),
        (main_config(on_policy=True, learn={"clip": 1.0}), "has no effect with policy.on_policy"),
        (main_config(env={"evaluator_env_num": 6}), "set n_evaluator_episode=6 or evaluator_env"),
        (main_config(env={"n_evaluator_episode": 0}), "'env.n_evaluator_episode' must be at lea"),
        (main_config(env={"collector_env_num": 0}), "'env.collector_env_num' must be at least 1"),
        (main_config() | {"exp_name": " "}, "'exp_name' is empty"),
        (main_config(collect={"n_sample": 8, "n_episode": 8}), "exclude each other; keep one"),
        (
            {"policy": {}, "env": {"n_evaluator_episode": 5}},
            "'env.stop_value' is required: the mean",
        ),
        ({"policy": {}, "env": {"stop_value": 1}}, "env=dict(n_evaluator_episode=5, ...)"),
        ({"policy": {}, "env": {"stop_value": None, "n_evaluator_episode": 5}}, "env.stop_value"),
        ({"env": 3}, "'env' must be a dict"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(main: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        run(main, save_cfg=True)
    assert list(Path().iterdir()) == []


MANY = CREATE | {"env_manager": {"type": "fake_many"}}


def with_manager(**manager: Any) -> dict[str, Any]:
    return main_config(env={"manager": manager})


def test_keys_of_the_chosen_manager_type_are_taken() -> None:
    manager = run(with_manager(max_processes=5, per_process=2), MANY).env.manager
    assert (manager.max_processes, manager.per_process, manager.max_retry) == (5, 2, 1)
    named_here = run(with_manager(type="fake_many", per_process="auto")).env.manager
    assert (named_here.type, named_here.max_processes) == ("fake_many", 3)


def test_a_key_of_another_manager_type_says_which() -> None:
    message = (
        "config key 'env.manager.max_processes' (= 5) needs 'env.manager.type' = 'fake_many'; "
        "the type chosen here has no such key"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        run(with_manager(max_processes=5))


def test_an_unknown_manager_key_is_compared_with_the_chosen_types_own() -> None:
    with pytest.raises(ConfigError, match=r"max_proceses' \(= 5\); did you mean 'max_processes'\?"):
        run(with_manager(max_proceses=5), MANY)
    with pytest.raises(ConfigError, match=r"'env\.manager\.per_process' must be 'auto'"):
        run(with_manager(per_process=[1]), MANY)


def test_a_key_of_another_collector_says_which() -> None:
    main = main_config(collect={"collector": {"get_train_sample": True}})
    with pytest.raises(ConfigError, match=r"needs 'policy\.collect\.collector\.type' = 'episode'"):
        run(main)


def test_what_a_dict_policy_leaves_out_must_be_settled() -> None:
    create = CREATE | {"policy": {"type": "fake_dict"}}
    with pytest.raises(ConfigError, match=r"'policy.on_policy' is required: .*on_policy=False"):
        run(main_config(), create)
    with pytest.raises(ConfigError, match=r"n_sample' or .*collect=dict\(n_sample=8\)"):
        run(main_config(on_policy=False), create)
    cfg = run(main_config(on_policy=False, collect={"n_sample": 4, "own": 1}), create)
    assert cfg.policy.collect.own == 1  # `collect=dict()` in the class says nothing: anything goes
    assert cfg.policy.learn.learner.train_iterations == 5


def test_learner_keys_stay_checked_when_the_policy_has_defaults_for_it() -> None:
    main = main_config(on_policy=False, collect={"n_sample": 4}, learn={"learner": {"trian": 1}})
    with pytest.raises(ConfigError, match=r"policy\.learn\.learner\.trian"):
        run(main, CREATE | {"policy": {"type": "fake_dict"}})


def test_open_sections_take_any_key() -> None:
    create = CREATE | {"env": {"type": "fake_open"}}
    main = main_config(env={"map": "x", "deep": {"a": 1}}, learn={"learner": {"hook": {"my": 1}}})
    cfg = run(main, create)
    assert cfg.env.deep.a == 1 and cfg.policy.learn.learner.hook.my == 1
    assert explain(cfg, "env.deep.a") == "1 (user)"


@pytest.mark.parametrize("part", ["world_model"])
def test_parts_that_are_not_built_yet_are_refused(part: str) -> None:
    """Nothing would read their settings."""
    name = part.replace("_", " ") + "s"
    message = f"section '{part}': {name} are not built yet, so nothing would read it; leave it out"
    with pytest.raises(ConfigError, match=re.escape(message)):
        run(main_config() | {part: {"type": "gail", "hidden": 3}})
    with pytest.raises(ConfigError, match=rf"section 'create_config\.{part}': {name} are not"):
        run(main_config(), CREATE | {part: {"type": "gail"}})
    with pytest.raises(ConfigError, match=rf"section '{part}': {name} are not built yet"):
        run(main_config(), **{part: fakes.Env})
    assert part not in run(main_config() | {part: {}}, CREATE | {part: None})


def test_a_reward_model_is_a_section_of_its_own() -> None:
    for create, section in (
        (CREATE, {"type": "rnd"}),
        (CREATE | {"reward_model": {"type": "rnd"}}, {}),
    ):
        cfg = run(main_config() | {"reward_model": {**section, "batch_size": 7}}, create)
        assert (cfg.reward_model.batch_size, cfg.reward_model.update_per_collect) == (7, 100)
    with pytest.raises(ConfigError, match=r"reward_model\.bach_size.*'batch_size'"):
        run(main_config() | {"reward_model": {"type": "rnd", "bach_size": 7}}, CREATE)
    with pytest.raises(ConfigError, match=r"'reward_model\.type' is missing; one of: .*rnd"):
        run(main_config() | {"reward_model": {"batch_size": 7}}, CREATE)
    with pytest.raises(DingError, match=r"unknown reward_model 'rdn'; did you mean 'rnd'"):
        run(main_config() | {"reward_model": {"type": "rdn"}}, CREATE)
    assert "reward_model" not in run(main_config() | {"reward_model": {}}, CREATE)


def test_a_model_of_ones_own_takes_any_key() -> None:
    cfg = run(main_config(model={"type": "mine", "whatever": 1}))
    assert cfg.policy.model == {"type": "mine", "whatever": 1}


def test_older_spellings_are_accepted() -> None:
    main = main_config(learn={"nstep": 3}, batch_size=5, use_cuda=False, n_sample=16)
    cfg = run(main)
    assert (cfg.policy.nstep, cfg.policy.learn.batch_size) == (3, 5)
    assert cfg.policy.collect.n_sample == 16 and "nstep" not in cfg.policy.learn
    with pytest.raises(ConfigError, match=r"'policy.batch_size' \(= 5\) and .*learn.batch_size'"):
        run(main_config(batch_size=5, learn={"batch_size": 6}))


def test_n_episode_replaces_the_default_n_sample_and_picks_the_collector() -> None:
    cfg = run(main_config(collect={"n_episode": 8}))
    assert cfg.policy.collect.n_sample is None and cfg.policy.collect.n_episode == 8
    assert cfg.policy.collect.collector.type == "episode"
    assert cfg.policy.collect.collector.get_train_sample is False


def test_values_that_follow_from_others() -> None:
    cfg = run(main_config(unroll_len=4), seed=7)
    evaluator = cfg.policy.eval.evaluator
    assert (evaluator.stop_value, evaluator.n_episode, cfg.env.evaluator_env_num) == (195, 5, 5)
    assert cfg.policy.collect.unroll_len == 4 and cfg.seed == 7
    with pytest.raises(ConfigError, match=r"'policy.eval.evaluator.n_episode' \(= 9\)"):
        run(main_config(eval={"evaluator": {"n_episode": 9}}))


def test_create_config_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"names no policy type; write for example create_config"):
        run(main_config(), {"env": {"type": "fake"}})
    with pytest.raises(ConfigError, match=r"unknown create_config key 'polcy'; did you mean 'pol"):
        run(main_config(), {"polcy": {"type": "fake_typed"}})
    with pytest.raises(ConfigError, match=r"create_config.env must be a dict\(type=...\), got 'x'"):
        run(main_config(), CREATE | {"env": "x"})
    with pytest.raises(DingError, match=r"unknown policy 'fake_typd'; did you mean 'fake_typed'"):
        run(main_config(), CREATE | {"policy": {"type": "fake_typd"}})
    with pytest.raises(ConfigError, match=r"needs create_cfg"):
        compile_config(main_config(), auto=True)


def test_types_in_both_configs_must_agree() -> None:
    assert run(main_config(type="fake_typed")).policy.type == "fake_typed"
    assert run(main_config(type="fake_typed"), {"env": {"type": "fake"}}).policy.nstep == 1
    with pytest.raises(ConfigError, match=r"'policy.type' \(= 'fake_user'\).*'fake_typed'"):
        run(main_config(type="fake_user"))


def test_command_names_mean_the_policy() -> None:
    cfg = run(main_config(), CREATE | {"policy": {"type": "fake_typed_command"}})
    assert cfg.policy.type == "fake_typed"


def test_imports_of_built_in_parts_may_be_gone_but_not_those_of_ones_own() -> None:
    env = {"type": "fake", "import_names": ["no_such_package.env", "json"]}
    assert run(main_config(), CREATE | {"env": env}).env.import_names == ["json"]
    env = {"type": "unregistered", "import_names": ["no_such_package.env"]}
    with pytest.raises(DingError, match=r"create_config.env.import_names: cannot import 'no_such"):
        run(main_config(), CREATE | {"env": env})


def test_import_names_register_what_a_config_names(monkeypatch: pytest.MonkeyPatch) -> None:
    from ding.utils.registry import ENV_REGISTRY

    monkeypatch.setattr(ENV_REGISTRY, "_table", dict(ENV_REGISTRY._table))
    monkeypatch.syspath_prepend(str(Path().absolute()))
    Path("env_of_mine.py").write_text(
        "from ding.utils.registry import ENV_REGISTRY\n"
        "@ENV_REGISTRY.register('mine')\n"
        "class Mine:\n    config = dict(level=2)\n"
    )
    env = {"type": "mine", "import_names": ["env_of_mine"]}
    assert run(main_config(), CREATE | {"env": env}).env.level == 2
    sys.modules.pop("env_of_mine")


def test_classes_are_passed_without_auto() -> None:
    cfg = compile_config(
        {"policy": {"my_key": 4}, "env": {"anything": 1}},
        fakes.Manager,
        fakes.UserPolicy,
        fakes.Learner,
        fakes.Collector,
        fakes.Evaluator,
        fakes.Buffer,
        save_cfg=False,
    )
    assert (cfg.policy.my_key, cfg.policy.learn.batch_size, cfg.policy.learn.rho) == (4, 16, 0.1)
    assert (cfg.env.stop_value, cfg.env.n_evaluator_episode, cfg.env.anything) == (10**10, 4, 1)
    assert cfg.env.manager.max_retry == 1


def test_sources_are_remembered_and_survive_copying() -> None:
    cfg = run(override(main_config(learn={"clip": 2}), {"policy.learn.batch_size": 9}))
    for config in (cfg, copy.deepcopy(cfg), pickle.loads(pickle.dumps(cfg))):
        assert explain(config, "policy.learn.batch_size") == "9 (command line): Samples per update."
        assert explain(config, "policy.learn.clip") == "2.0 (user)"
        assert explain(config, "policy.cuda") == "False (default of TypedPolicy)"
        assert explain(config, "policy.type").startswith("'fake_typed' (create_config)")
        assert explain(config, "env.manager.type").startswith("'base' (default)")
        assert explain(config, "policy.eval.evaluator.n_episode").startswith("5 (from env.n_")
        assert explain(config, "seed").startswith("0 (argument)")
        assert config == cfg
    assert all(not key.startswith("_") for key in cfg)


def test_seed_of_the_config_gives_way_to_the_argument(caplog: pytest.LogCaptureFixture) -> None:
    assert run(main_config() | {"seed": 3}, seed=4).seed == 4
    assert "seed=3 in the config gives way to seed=4" in caplog.text
    with pytest.raises(ConfigError, match=r"'seed' must be int"):
        run(main_config(), seed="a")


@pytest.mark.parametrize("name", ["total_config.py", "formatted_total_config.py"])
def test_saved_configs_compile_to_the_same(name: str) -> None:
    env = {
        "env_kwargs": {
            "low": -float("inf"),
            "pair": (1, (2,)),
            "none": None,
            "text": "it's",
            "l": [{}],
        }
    }
    first = run(main_config(env, learn={"learning_rate": 1e-4}), seed=3, save_cfg=True)
    assert first.exp_name == "default_experiment"
    main, create = read_config(f"default_experiment/{name}")
    assert run(main, create, seed=3) == first
    assert main.env.manager.episode_num == float("inf") and main.env.env_kwargs.pair == (1, (2,))


def test_a_run_never_writes_into_an_older_directory_unless_told() -> None:
    names = [run(main_config(), save_cfg=True).exp_name for _ in range(3)]
    assert names[0] == "default_experiment" and len(set(names)) == 3
    assert re.fullmatch(r"default_experiment_\d{6}_\d{6}", names[1])
    assert read_config(f"{names[2]}/total_config.py")[0].exp_name == names[2]
    assert run(main_config(), save_cfg=True, renew_dir=False).exp_name == "default_experiment"


def test_what_no_file_can_hold_is_refused_before_anything_is_written() -> None:
    main = main_config(env={"env_kwargs": {"fn": fakes.Env}})
    with pytest.raises(ConfigError, match=r"'main_config.env.env_kwargs.fn' .*name it by a string"):
        run(main, save_cfg=True)
    assert list(Path().iterdir()) == []
    assert run(main).env.env_kwargs.fn is fakes.Env


def test_a_seed_that_nobody_passes_is_the_configs_own(caplog: pytest.LogCaptureFixture) -> None:
    config = {**main_config(), "seed": 77}
    assert run(config, seed=None).seed == 77
    assert run(main_config(), seed=None).seed == 0
    assert not caplog.records
    assert run(config, seed=3).seed == 3
    assert "seed=77 in the config gives way to seed=3" in caplog.text
