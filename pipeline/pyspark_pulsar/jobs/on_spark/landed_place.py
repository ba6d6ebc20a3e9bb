"""The place that `land` writes to, over Hadoop's own calls, which Spark uses too: its content, and the writing of it.

`data/batch=N` is whole from the moment on when it is there. `data/_half-N-...` is a batch on its way, which readers of Parquet
pass over; each run has names of its own, so that two at the same time do not write into each other's. `landing.json` says of
which topics the place is (`origin`). `take_back` removes what a run made if no batch was begun.
"""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from ...errors import PipelineError
from ...positions import Place
from ...stream_offsets import places_in
from .origin import Origin, decode, encode, told_topics
from .spark_errors import reason

_WHOLE, _HALF = "data/batch={:09}", "data/_half-{:09}"


class NotLanded(PipelineError):
    """A run that was not begun, or ended before its time: where to, which topics, up to which position, and why."""


class LandedPlace:
    """`to`: as the user wrote it."""

    def __init__(self, spark: Any, to: str) -> None:
        if not to.strip():
            raise NotLanded("--to: the name of a directory is needed, data/ and checkpoint/ are made in it")
        self._spark, self._to = spark, to
        self._made: list[str] = []
        self._made_outside: list[Any] = []
        hadoop = spark._jvm.org.apache.hadoop.fs
        self._path = hadoop.Path
        try:
            self._files = hadoop.Path(to).getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        except Exception as error:
            raise NotLanded(f"--to {to}: no such file system: {reason(str(error))}") from error

    def _at(self, name: str) -> Any:
        return self._path(f"{self._to}/{name}" if name else self._to)

    def _has(self, name: str) -> bool:
        return bool(self._files.exists(self._at(name)))

    # ---- Before

    def check_goes_on(self, now: Origin, accepts_change: bool) -> None:
        """Nothing is written. NotLanded, PipelineError."""
        try:
            self._check(now, accepts_change)
        except PipelineError:
            raise
        except Exception as error:
            raise NotLanded(f"--to {self._to}: it cannot be looked at: {reason(str(error))}") from error

    def _check(self, now: Origin, accepts_change: bool) -> None:
        landed = self._files.globStatus(self._at("data/batch=*")) or ()
        if len(landed) and not self._has(
            "checkpoint/offsets"
        ):  # batches are known by numbers, which begin anew with a checkpoint
            raise NotLanded(
                f"--to {self._to}: there are {len(landed)} batches under data/ and no checkpoint/ that says what is in them: "
                "bring it back, or land in another place"
            )
        before = self._origin(now)
        if before != now and not accepts_change:
            raise NotLanded(
                f"--to {self._to}: what was landed there is {before}, and this is {now}: one copy would have both. Land in "
                "another place. Where that is meant (the same brokers at another address, topics that are added to the copy "
                "or left out from now on) say so once: --accept-change"
            )

    def _origin(self, now: Origin) -> Origin:
        """Origin of the place's content; `now` where nothing says otherwise."""
        if self._has("landing.json"):
            return decode(self._text("landing.json"), f"{self._to}/landing.json")
        topics = self.reached()
        return now if now.has_all(topics) else told_topics(topics, now.service_url)

    def prepare(self, now: Origin) -> None:
        """Makes the directories that a run needs, and checks that they can be written. NotLanded."""
        try:
            self._note_absent()
            for each in ("data", "data/_writable"):
                if not self._files.mkdirs(self._at(each)):
                    raise OSError("it cannot be made")
            self._files.delete(self._at("data/_writable"), True)
            if not self._has("landing.json") or self._origin(now) != now:
                self._write_whole("landing.json", encode(now))
        except Exception as error:
            self.take_back()
            raise NotLanded(f"--to {self._to}: nothing can be written there: {reason(str(error))}") from error

    def _note_absent(self) -> None:
        """Notes what this run is about to make, for `take_back`: the place's own, then outer directories, innermost first."""
        self._made = [each for each in ("checkpoint", "landing.json", "data") if not self._has(each)]
        outer = self._at("")
        while outer is not None and not self._files.exists(outer):
            self._made_outside.append(outer)
            outer = outer.getParent()

    def take_back(self) -> None:
        """Removes what this run made, unless a batch was begun: the next run goes on with that one."""
        if self._has("checkpoint/offsets/0"):
            return
        for each in self._made:
            self._files.delete(self._at(each), True)
        for outer in self._made_outside:
            if self._files.exists(outer) and not len(self._files.listStatus(outer)):
                self._files.delete(outer, False)

    # ---- Batches

    def land(self, frame: Any, batch: int) -> int:
        """Number of landed messages; for a batch that is there already, the number it has."""
        whole, half = _WHOLE.format(batch), f"{_HALF.format(batch)}-{uuid.uuid4().hex[:8]}"
        if not self._has(whole):
            try:
                frame.write.parquet(f"{self._to}/{half}")
                # another run may have been quicker: its batch has the same messages
                if not self._has(whole) and not self._files.rename(self._at(half), self._at(whole)):
                    raise OSError(f"{self._to}/{half} cannot be renamed to {whole}")
            except BaseException as error:
                self._files.delete(self._at(half), True)
                if self._has(whole):  # the other run's batch holds; this run's half of it goes
                    raise PipelineError(
                        f"batch {batch} was landed by another run at the same time, and this one ends: let there be one"
                    ) from error
                raise
        for left in self._files.globStatus(self._at(f"{_HALF.format(batch)}*")) or ():
            self._files.delete(left.getPath(), True)
        return int(self._spark.read.schema(frame.schema).parquet(f"{self._to}/{whole}").count())

    def reached(self) -> Mapping[str, Place]:
        """Place up to which each topic is landed: the end of the newest batch that is whole. Empty before the first."""
        found = self._files.globStatus(self._at("checkpoint/offsets/[0-9]*")) or ()
        planned = [int(each.getPath().getName()) for each in found if each.getPath().getName().isdecimal()]
        done = [each for each in planned if self._has(_WHOLE.format(each))]
        if not done:
            return {}
        text = self._text(f"checkpoint/offsets/{max(done)}")
        return places_in(json.loads(text.splitlines()[-1]))

    # ---- Files

    def _text(self, name: str) -> str:
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def _write_whole(self, name: str, text: str) -> None:
        half = self._at(f"_{name}-{uuid.uuid4().hex[:8]}")
        stream = self._files.create(half, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        self._files.delete(self._at(name), False)
        if not self._files.rename(half, self._at(name)):
            raise OSError(f"{half.toString()} cannot be renamed to {name}")
