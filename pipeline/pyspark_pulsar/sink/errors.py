"""Errors that stop writing. Each message names the topic or the column, and what to do."""

from ..errors import PipelineError


class WrongFrame(PipelineError):
    """A column that cannot be written, or a row that no broker takes."""


class TooLarge(WrongFrame):
    """A message that is larger than what brokers take. Nothing here is cut into chunks."""

    def __init__(self, topic: str, size: int, size_max: int, sequence_id: int) -> None:
        super().__init__(
            f"{topic}: a message of {size} bytes (sequence id {sequence_id}); its brokers take {size_max} (maxMessageSize), "
            "and it is not cut into chunks. Make it smaller, or pulsar.producer.compressionType, or raise that"
        )
        self.topic, self.size, self.size_max, self.sequence_id = topic, size, size_max, sequence_id


class NotDeduplicated(PipelineError):
    """guarantee=deduplication, and the topic does not deduplicate."""


class Interrupted(PipelineError):
    """A broker was lost while messages were on their way, and the guarantee forbids to send them again."""


class TakenOver(PipelineError):
    """Another attempt of the same task has its producer's name."""


class BatchChanged(PipelineError):
    """A batch that is written again has other rows than before: what is stored cannot be told from what is not."""


class TransactionLost(PipelineError):
    """A transaction of a batch that counts as written was aborted, because its time was up."""
