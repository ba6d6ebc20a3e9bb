"""docker-compose.yml and Dockerfile as data, and what they become on one machine without containers.

Each service gets an address of its own on loopback, which takes the place of its name; its volumes become directories. Nothing
else of a command, an environment or a health check is changed: what the file says is what is tested.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.started_process import ROOT

COMPOSE = ROOT / "docker-compose.yml"
SECURED = ROOT / "docker-compose.tls.yml"
"""Over COMPOSE: TLS and tokens."""
SECRETS = "${SECRETS:-./deploy/secrets}"
DOCKERFILE = ROOT / "Dockerfile"
HOME = "/interpulse"
"""Directory of the checkout in the image."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Instruction of a Dockerfile, in the build stage `stage` (from 0)."""

    stage: int
    word: str
    arguments: str


def dockerfile() -> list[Instruction]:
    """Without comments; lines that go on are one. Each line is an instruction that Docker knows."""
    found: list[Instruction] = []
    stage = -1
    for text in DOCKERFILE.read_text().replace("\\\n", " ").splitlines():
        if text and not text.startswith("#"):
            word, _, arguments = text.partition(" ")
            stage += word == "FROM"
            found.append(Instruction(stage, word, arguments.strip()))
    return found


def image_environment() -> dict[str, str]:
    """ENV of the last stage, with this checkout in the place of the image's."""
    lines = [each for each in dockerfile() if each.word == "ENV" and each.stage == dockerfile()[-1].stage]
    pairs = [pair.partition("=") for each in lines for pair in shlex.split(each.arguments)]
    return {name: value.replace(HOME, str(ROOT)) for name, _, value in pairs}


def image_entrypoint() -> list[str]:
    (line,) = [each.arguments for each in dockerfile() if each.word == "ENTRYPOINT"]
    return [str(word) for word in yaml.safe_load(line)]


class _Override(list[Any]):
    """A list with the tag `!override`: it takes the place of what files before have."""


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """YAML with Compose's tag."""


_Loader.add_constructor("!override", lambda loader, node: _Override(loader.construct_sequence(node)))


def services(*files: Path) -> dict[str, dict[str, Any]]:
    """Services of the files (docker-compose.yml by default), anchors and merges resolved, later files over earlier ones."""
    found: dict[str, dict[str, Any]] = {}
    for file in files or (COMPOSE,):
        found = _merged("services", found, yaml.load(file.read_text(), _Loader)["services"])  # a SafeLoader
    return found


def _merged(key: str, one: Any, other: Any) -> Any:
    """Values merged by Compose's rules: mappings by key, volumes by their place inside, commands whole, lists joined."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{each: _merged(each, one[each], value) if each in one else value for each, value in other.items()}}
    if key == "volumes":
        return list({each.split(":")[-2 if each.endswith(":ro") else -1]: each for each in (*one, *other)}.values())
    is_whole = key in ("command", "test", "entrypoint") or isinstance(other, _Override) or not isinstance(other, list)
    return other if is_whole else [*one, *other]


def is_ours(service: Mapping[str, Any]) -> bool:
    return str(service["image"]) == "interpulse"


class Places:
    """Places of services on this machine: `network` is the first three numbers of their addresses; `secrets` has the files of
    deploy/make-secrets."""

    def __init__(self, network: str, directory: Path, *files: Path, secrets: Path | None = None) -> None:
        self.directory, self._secrets = directory, secrets
        self.services = services(*files)
        self.addresses = {name: f"{network}.{number}" for number, name in enumerate(self.services, 1)}
        names = "|".join(map(re.escape, sorted(self.addresses, key=len, reverse=True)))
        self._name = re.compile(rf"(?<![\w.-])({names})(?![\w.-])")

    def placed(self, text: str) -> str:
        """With addresses for names."""
        return self._name.sub(lambda match: self.addresses[match[0]], text)

    def command(self, name: str) -> list[str]:
        """Command that the image would run; the command's first word is one of ours, and no service."""
        first, *rest = self.services[name]["command"]
        return [*image_entrypoint(), first, *map(self.placed, rest)]

    def environment(self, name: str) -> dict[str, str]:
        """The image's and the service's, volumes as directories."""
        service = self.services[name]
        own = {key: self._with_paths(name, self.placed(value)) for key, value in service.get("environment", {}).items()}
        return {**image_environment(), **own}

    def _with_paths(self, name: str, text: str) -> str:
        """Volumes are directories of the service's own, secrets the files that were made."""
        for mount in self.services[name].get("volumes", ()):
            outside, inside, *_ = mount.replace(SECRETS, "secrets").split(":")
            made = outside.removeprefix("secrets/")
            here = self.directory / name if made == outside else (self._secrets or self.directory) / made
            text = re.sub(rf"(?:(?<=file://)|(?<![\w/])){re.escape(inside)}(?=[/']|$)", str(here), text)
        return text

    def health_check(self, name: str) -> list[str]:
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return [self._with_paths(name, self.placed(word)) for word in command]
