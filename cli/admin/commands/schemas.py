"""Schemas: files of the form {"type": ..., "schema": ..., "properties": {...}} go to the server and come back."""

import json
from pathlib import Path
from typing import Any

from cli.admin.arguments import WrongUsage
from cli.admin.context import CommandFailed, Context
from cli.admin.output import pretty
from cli.admin.request import get as asked
from cli.admin.request import post, topic_name


def _path(context: Context) -> str:
    return f"schemas/{topic_name(context.values['topic']).path.partition('/')[2]}"


def get(context: Context) -> None:
    version, every = context.values.get("version"), context.values["all-version"]
    if version is not None and every:
        raise WrongUsage("Only one or neither of --version and --all-version can be specified.")
    if every:
        for each in (context.ask(asked(f"{_path(context)}/schemas")) or {}).get("getSchemaResponses", []):
            context.write(pretty(each))
        return
    context.write(pretty(context.ask(asked(f"{_path(context)}/schema" + (f"/{version}" if version is not None else "")))))


def _from_file(context: Context) -> Any:
    name = context.values["filename"]
    try:
        return json.loads(Path(name).read_text())
    except (OSError, ValueError) as error:
        raise CommandFailed(f"{name}: {error}") from None


def upload(context: Context) -> None:
    context.ask(post(f"{_path(context)}/schema", _from_file(context)))


def compatibility(context: Context) -> None:
    context.ask(post(f"{_path(context)}/compatibility", _from_file(context)))


def extract(context: Context) -> None:
    raise CommandFailed(
        f"not offered here: {context.values['jar']} would have to be run by a JVM; write the schema and upload it"
    )
