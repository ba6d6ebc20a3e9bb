"""`bin/pulsar-client [options] produce|consume|read ...`. Exit code 0, or 1 with the reason on stderr."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cli.admin.arguments import WrongUsage, parse
from cli.admin.table import Option, options, positionals
from cli.admin.usage import synopsis
from cli.client.commands import COMMANDS, OWN, refuse_what_is_not_offered
from cli.client_configuration import ClientConfiguration, ConfigurationError, load_client_configuration

JSON = Option("json", ("--json",), "flag", False, None)
HELP = ("-h", "--help")
_CONFIGURED = {
    "url": "broker_service_url",
    "auth-plugin": "auth_plugin",
    "auth-params": "auth_params",
    "tlsTrustCertsFilePath": "tls_trust_certs",
}


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    at = next((index for index, word in enumerate(words) if word in COMMANDS), len(words))
    if at == len(words) or any(word in HELP for word in words):
        asked = any(word in HELP for word in words)
        print(_usage(words[at] if at < len(words) else None), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 1
    from cli.client.connection import ClientError

    try:
        own = parse((), OWN, words[:at])
        command = COMMANDS[words[at]]
        shown = (*options(command), JSON)
        values = parse(positionals(command), shown, words[at + 1 :], at + 1)
        refuse_what_is_not_offered({**own, **values}, (*OWN, *shown))
        return _done(words[at], configured(own), values)
    except WrongUsage as error:
        print(f"{error}\n{_usage(words[at])}", file=sys.stderr)
    except (ClientError, ConfigurationError, OSError) as error:
        print(f"bin/pulsar-client: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def configured(own: Mapping[str, Any]) -> ClientConfiguration:
    return load_client_configuration()._replace(**{field: own[key] for key, field in _CONFIGURED.items() if own.get(key)})


def _done(name: str, configuration: ClientConfiguration, values: Mapping[str, Any]) -> int:
    module, _, function = COMMANDS[name].run.partition(":")
    run = getattr(importlib.import_module(f"cli.client.{module}"), function)
    if name == "produce":
        print(f"{run(configuration, values)} messages successfully produced")
    else:
        run(configuration, values, lambda line: print(line, flush=True))
    return 0


def _usage(name: str | None) -> str:
    shown = [COMMANDS[name]] if name else list(COMMANDS.values())
    own = " ".join(f"[{max(option.names, key=len)}=<{option.key}>]" for option in OWN)
    return "\n".join(
        [f"Usage: pulsar-client {own} COMMAND ...", *(f"  {each.name} {synopsis(each)} [--json]" for each in shown)]
    )


if __name__ == "__main__":
    sys.exit(main())
