"""Settings in environment variables, as Apache's images take them (apply-config-from-env.py): for a server in a container.

`PULSAR_PREFIX_<key>=value` is always taken, and a key that nobody knows is refused; there it is added to the file in silence. A
variable whose name is itself a key is taken where it is asked for (`--from-env`): elsewhere it may mean something else.
"""

from collections.abc import Mapping

from cli.configuration.loading import known_keys
from ports.settings import BadSetting, known_key

PREFIX = "PULSAR_PREFIX_"


def environment_settings(environment: Mapping[str, str], *, with_plain_names: bool) -> list[str]:
    """`KEY=VALUE` each, to stand before those of the command line. BadSetting names the variable and the nearest one."""
    known = known_keys()
    plain = {name: environment[name] for name in known if name in environment} if with_plain_names else {}
    prefixed = {_checked(name, known): value for name, value in sorted(environment.items()) if name.startswith(PREFIX)}
    return [f"{key}={value.strip()}" for key, value in {**plain, **prefixed}.items()]


def _checked(name: str, known: list[str]) -> str:
    try:
        return known_key(name.removeprefix(PREFIX), known)
    except BadSetting as error:
        raise BadSetting(f"{name}: {error}") from error
