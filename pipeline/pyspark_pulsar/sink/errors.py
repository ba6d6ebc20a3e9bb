"""What stops writing. Each message names the topic or the column, and what to do."""

from ..errors import PipelineError


class WrongFrame(PipelineError):
    """A column that cannot be written, or a row that no broker takes."""


class NotDeduplicated(PipelineError):
    """guarantee=deduplication, and the topic does not deduplicate."""


class Interrupted(PipelineError):
    """A broker was lost while messages were on their way, and the guarantee forbids to send them again."""


class BatchChanged(PipelineError):
    """A batch that is written again has other rows than before: what is stored cannot be told from what is not."""


class TransactionLost(PipelineError):
    """A transaction of a batch that counts as written was aborted, because its time was up."""
