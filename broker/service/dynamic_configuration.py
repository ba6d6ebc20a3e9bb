"""Settings that change while brokers run: Apache's map of keys to values in metadata, watched, the same on every broker.

Owns the map at `/admin/configuration` (a JSON object of strings, as DynamicConfigurationResources writes it) and its watch.
The given `DynamicSettings` knows the meaning of a key, and puts a value in force. A key that is removed has
the value of the configuration file again (BrokerService.handleDynamicConfigurationUpdates).
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from metadata.store import MUST_NOT_EXIST, BadVersion, MetadataError, MetadataStore, Notification
from ports.logs import line
from ports.settings import BadSetting

from ..errors import BrokerError, ServerError
from .catalogue.namespaces import to_json

log = logging.getLogger(__name__)

PATH = "/admin/configuration"
_ATTEMPTS_MAX = 10


class NotDynamic(BrokerError):
    """A key that is not one of `names` (Apache answers 412)."""

    def __init__(self, verb: str) -> None:
        super().__init__(ServerError.NOT_ALLOWED, f"Can't {verb} non-dynamic configuration")


class BadDynamicValue(BrokerError):
    """A value that the key cannot have, or that would have no effect here; the message says why (412)."""

    def __init__(self, message: str) -> None:
        super().__init__(ServerError.NOT_ALLOWED, message)


class DynamicSettings(Protocol):
    """The settings of this process, as far as they change."""

    @property
    def dynamic_names(self) -> Collection[str]: ...
    def check(self, changed: Mapping[str, str]) -> None:
        """BadSetting when not all of these dynamic values could be in force together."""

    def apply(self, changed: Mapping[str, str]) -> None:
        """These dynamic values and no others are in force when it returns. BadSetting: nothing has changed."""

    def in_effect(self) -> Mapping[str, str]:
        """Every key of a broker with the value that it has now, as text; secrets masked."""


class NothingDynamic:
    """The DynamicSettings of a broker without a configuration (tests, tools)."""

    dynamic_names: Collection[str] = ()

    def check(self, changed: Mapping[str, str]) -> None: ...

    def apply(self, changed: Mapping[str, str]) -> None: ...

    def in_effect(self) -> Mapping[str, str]:
        return {}


class DynamicConfiguration:
    """Dynamic settings of all brokers on one metadata store. `start` before topics are loaded; `close` twice is fine."""

    def __init__(
        self,
        store: MetadataStore,
        settings: DynamicSettings | None = None,
        applied: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`applied` is called after each change, and updates parts that have copied values of the settings."""
        self._store = store
        self._applied = applied
        self._settings: DynamicSettings = settings or NothingDynamic()
        self._turn = asyncio.Lock()
        self._in_force: dict[str, str] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._unwatch = store.watch(PATH, self._changed)

    async def start(self) -> None:
        """Puts the stored values in force. MetadataError."""
        await self._refresh()

    def close(self) -> None:
        self._unwatch()
        for task in self._tasks:
            task.cancel()

    # ---- What the admin REST asks

    def names(self) -> list[str]:
        """The keys that `change` takes (GET /admin/v2/brokers/configuration)."""
        return sorted(self._settings.dynamic_names)

    def runtime(self) -> dict[str, str]:
        """Every key with its value in this broker (GET .../configuration/runtime); secrets are masked."""
        return dict(self._settings.in_effect())

    async def all(self) -> dict[str, str]:
        """Returns the stored values (GET .../configuration/values)."""
        return (await self._stored())[0]

    async def change(self, key: str, value: str) -> None:
        """Stored, and in force in this broker; others follow their watch. NotDynamic, BadDynamicValue."""
        if key not in self._settings.dynamic_names:
            raise NotDynamic("update")
        try:
            self._settings.check({**self._in_force, key: value})
        except BadSetting as error:
            raise BadDynamicValue(str(error)) from error
        await self._store_change({key: value})

    async def remove(self, key: str) -> None:
        """The configuration file's value is in force again. A key that is not stored is fine. NotDynamic."""
        if key not in self._settings.dynamic_names:
            raise NotDynamic("delete")
        await self._store_change({key: None})

    # ---- Within

    async def _store_change(self, changes: Mapping[str, str | None]) -> None:
        for _ in range(_ATTEMPTS_MAX):
            stored, version = await self._stored()
            wanted = {key: value for key, value in {**stored, **changes}.items() if value is not None}
            if wanted != stored:
                try:
                    await self._store.put(PATH, to_json(wanted), version)
                except BadVersion:
                    continue  # another writer changed another key meanwhile: apply the change to that version
            await self._refresh()
            return
        raise BrokerError(ServerError.METADATA, "The dynamic configuration is being changed by others all the time")

    def _changed(self, notification: Notification) -> None:
        if notification.path == PATH:
            task = asyncio.get_running_loop().create_task(self._follow(), name="dynamic configuration")
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _follow(self) -> None:
        try:
            await self._refresh()
        except MetadataError as error:
            log.error(line("the dynamic configuration stays as it was", error=error))

    async def _refresh(self) -> None:
        """One after the other, so that the last to read is the last to be in force."""
        async with self._turn:
            stored, _ = await self._stored()
            sound = self._sound(stored)
            if sound != self._in_force:
                self._settings.apply(sound)
                if self._applied is not None:
                    await self._applied()
                log.info(line("dynamic settings are in force", keys=",".join(sorted(sound)) or "none"))
            self._in_force = sound

    def _sound(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Returns the values that can be in force: an Apache broker beside this one stores values that it never checks."""
        sound: dict[str, str] = {}
        for key, value in sorted(stored.items()):
            try:
                if key not in self._settings.dynamic_names:
                    raise BadSetting(f"{key}: not a dynamic key here")
                self._settings.check({**sound, key: value})
                sound[key] = value
            except BadSetting as error:
                log.error(line("dynamic setting refused", key=key, why=error, at=PATH))
        return sound

    async def _stored(self) -> tuple[dict[str, str], int]:
        found = await self._store.get(PATH)
        if found is None:
            return {}, MUST_NOT_EXIST
        try:
            document = json.loads(found.value or b"{}")
        except ValueError as error:
            raise MetadataError(f"unreadable value at {PATH}: {error}") from error
        if not isinstance(document, dict):
            raise MetadataError(f"unreadable value at {PATH}: not an object")
        return {key: _text(value) for key, value in document.items()}, found.stat.version


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
