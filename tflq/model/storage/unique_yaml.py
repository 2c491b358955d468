"""YAML without duplicate keys: PyYAML itself keeps the last of two equal keys."""

from __future__ import annotations

from collections import Counter
from typing import Any

import yaml


class _Unique(yaml.SafeLoader):
    """The safe loader, with a check of keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raise a ConstructorError if a key is duplicate."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        again = next((key for key, count in Counter(keys).items() if count > 1), None)
        if again is not None:
            raise yaml.constructor.ConstructorError(None, None, f"{again!r:.80} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def load_unique(text: str) -> Any:
    """Return the value of a document; raise as `yaml.safe_load`."""
    return yaml.load(text, _Unique)
