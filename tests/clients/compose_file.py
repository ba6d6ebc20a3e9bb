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
DOCKERFILE = ROOT / "Dockerfile"
HOME = "/magnetar"
"""Of the image: where this checkout is."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """Of a Dockerfile, of the build stage `stage` (from 0)."""

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


def services() -> dict[str, dict[str, Any]]:
    """As the file has them, anchors and merges resolved."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def is_ours(service: Mapping[str, Any]) -> bool:
    return str(service["image"]) == "magnetar"


class Places:
    """Where services are on this machine: `network` is the first three numbers of their addresses."""

    def __init__(self, network: str, directory: Path) -> None:
        self.directory = directory
        self.addresses = {name: f"{network}.{number}" for number, name in enumerate(services(), 1)}
        names = "|".join(map(re.escape, sorted(self.addresses, key=len, reverse=True)))
        self._name = re.compile(rf"(?<![\w.-])({names})(?![\w.-])")

    def placed(self, text: str) -> str:
        """With addresses for names."""
        return self._name.sub(lambda match: self.addresses[match[0]], text)

    def command(self, name: str) -> list[str]:
        """What the image would run; the command's first word is one of ours, and no service."""
        first, *rest = services()[name]["command"]
        return [*image_entrypoint(), first, *map(self.placed, rest)]

    def environment(self, name: str) -> dict[str, str]:
        """The image's and the service's, volumes as directories."""
        service = services()[name]
        paths = {each.split(":")[1]: str(self.directory / name) for each in service.get("volumes", ())}
        own = {key: self.placed(value) for key, value in service.get("environment", {}).items()}
        for inside, here in paths.items():
            own = {key: re.sub(rf"(?<![\w/]){re.escape(inside)}(?=/|$)", here, value) for key, value in own.items()}
        return {**image_environment(), **own}

    def health_check(self, name: str) -> list[str]:
        kind, *command = services()[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return [self.placed(word) for word in command]
