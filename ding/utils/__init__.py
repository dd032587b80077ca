"""What every other package may use: data layout, registries, errors, seeds, logs, files."""

from ding.utils.errors import CheckpointError, ConfigError, DingError
from ding.utils.registry import (
    BUFFER_REGISTRY,
    COMMANDER_REGISTRY,
    ENV_MANAGER_REGISTRY,
    ENV_REGISTRY,
    ENV_WRAPPER_REGISTRY,
    LEARNER_REGISTRY,
    MIXER_REGISTRY,
    MODEL_REGISTRY,
    POLICY_REGISTRY,
    REGISTRIES,
    SERIAL_COLLECTOR_REGISTRY,
    SERIAL_EVALUATOR_REGISTRY,
    Registry,
    import_names,
)
from ding.utils.seed import set_pkg_seed

import_module = import_names

__all__ = [
    "BUFFER_REGISTRY",
    "COMMANDER_REGISTRY",
    "ENV_MANAGER_REGISTRY",
    "ENV_REGISTRY",
    "ENV_WRAPPER_REGISTRY",
    "LEARNER_REGISTRY",
    "MIXER_REGISTRY",
    "MODEL_REGISTRY",
    "POLICY_REGISTRY",
    "REGISTRIES",
    "SERIAL_COLLECTOR_REGISTRY",
    "SERIAL_EVALUATOR_REGISTRY",
    "CheckpointError",
    "ConfigError",
    "DingError",
    "Registry",
    "import_module",
    "import_names",
    "set_pkg_seed",
]
