from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ding.config import compile_config, explain
from ding.config.docs import comment_docs, field_docs

from . import fakes


class Commented:
    """A part as users write it."""

    config: ClassVar[dict[str, Any]] = dict(
        # How often,
        # in iterations.
        freq=3,
        plain=1,
        inner={
            # Meaning of x.
            "x": 2,
        },
    )


def test_docs_are_inherited_and_missing_source_is_no_error() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Sub(fakes.LearnConfig):
        more: list[int] = field(default_factory=list)
        """Of my own."""

    assert field_docs(Sub) == {"batch_size": "Samples per update.", "more": "Of my own."}
    namespace: dict[str, Any] = {"__name__": "typed_in"}
    exec("class C:\n    a: int = 1\n    'doc'", namespace)
    assert field_docs(namespace["C"]) == {}


def test_comments_above_the_keys_of_a_dict_are_its_docs() -> None:
    assert comment_docs(Commented) == {
        "freq": "How often, in iterations.",
        "inner.x": "Meaning of x.",
    }
    assert comment_docs(fakes.OpenEnv) == {} and comment_docs(int) == {}


def test_docs_reach_explain(parts: None) -> None:
    cfg = compile_config({}, Commented, fakes.TypedPolicy, save_cfg=False)
    assert explain(cfg, "env.manager.freq") == "3 (default of Commented): How often, in iterations."
    assert explain(cfg, "env.manager.inner.x") == "2 (default of Commented): Meaning of x."
