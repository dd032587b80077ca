"""Lines of the established key concept pages that need more than one process."""

from __future__ import annotations

import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from ding.entry import cli, eval, parallel_pipeline
from ding.entry.dist import Plan
from dizoo.classic_control.cartpole.config.parallel.cartpole_dqn_config import (
    create_config,
    main_config,
    system_config,
)

PARALLEL = Path(__file__).parents[2] / "dizoo/classic_control/cartpole/config/parallel"
FILE = "cartpole_dqn_config.py"
with_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")


@pytest.fixture(autouse=True)
def config_beside(directory: Path) -> None:
    shutil.copy(PARALLEL / FILE, directory)


def ding(line: str) -> int:
    return cli.main(shlex.split(line))


def test_a_parallel_config_trains_and_is_evaluated() -> None:
    assert ding(f"-m parallel -c {FILE} -s 0 --env-step 100") == 0
    assert ding(f"-m eval -c {FILE} -s 0") == 0
    assert ding(f"-m serial -c {FILE} -s 0 --env-step 100 --exp-name serial") == 0
    assert eval([main_config, create_config, system_config]) > 0


def test_unified_entry_function() -> None:
    parallel_pipeline([main_config, create_config, system_config], seed=0, max_env_step=100)
    assert Path("cartpole_dqn_parallel_seed0/result.json").is_file()


@with_ray
def test_plan_for_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert ding(f"-m dist --module config -p local -c {FILE} -s 0") == 0
    told = capsys.readouterr().out
    for role in ("learner0", "collector0", "collector1"):
        assert f"--module-name {role} -c {FILE}.pkl &" in told
    assert f"ding -m dist --module coordinator -c {FILE}.pkl" in told


SLURM = f"-m dist --module config -p slurm -c {FILE} -s 0 -lh 10-10-10-10"


@with_ray
def test_plan_for_slurm() -> None:
    assert ding(f"{SLURM} -clh 10-10-10-[11-12]") == 0
    script = Path(f"{FILE}.sbatch").read_text()
    assert "#SBATCH --nodes=4\n" in script  # the coordinator's, too
    assert "#SBATCH --nodelist=10-10-10-10,10-10-10-11,10-10-10-12\n" in script
    assert "learners=(10-10-10-10)\ncollectors=(10-10-10-11 10-10-10-12)\n" in script
    host, _, port = Plan.read(f"{FILE}.pkl").address.partition(":")
    assert host and port == "6379"  # where it was written, and the coordinator is started by hand


@with_ray
@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ("10-10-10-[11-12", "-clh 10-10-10-[11-12: brackets or commas are out of place"),
        ("10-10-10-$", "host = '10-10-10-$': must be the name of one node"),
    ],
)
def test_an_error_writes_nothing(
    hosts: str, message: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ding(f"{SLURM} -clh '{hosts}'") == 1
    assert message in capsys.readouterr().err
    assert [path.name for path in directory.iterdir()] == [FILE]


@pytest.mark.parametrize("module", ["learner", "collector", "coordinator"])
def test_a_module_without_its_plan_says_what_writes_it(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ding(f"-m dist --module {module} -c {FILE}.pkl -s 0") == 1
    assert f"{FILE}.pkl" in capsys.readouterr().err
