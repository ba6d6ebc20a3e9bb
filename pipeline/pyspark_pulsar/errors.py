"""Errors that stop a query or a job. Each message names the topic, the position or the option, and what to do."""


class PipelineError(Exception):
    """Anything of ours that a query ends with."""


class WrongOption(PipelineError):
    """An option that cannot be used: its name, its value, and what is expected."""


class NoSuchTopic(PipelineError):
    """A topic that is not there, or a pattern that no topic has."""


class NoSuchPosition(PipelineError):
    """A place that is not, and never was, in its topic."""


class DataLost(PipelineError):
    """Messages that the query wants were deleted before it read them."""


class Undecodable(PipelineError):
    """A record that cannot be read, where the option `mode` says that this is to fail."""


class Refused(PipelineError):
    """A broker answers no: credentials, rights, a name it does not take. Asking again does not help."""


class NoTransactions(Refused):
    """A broker that has no transactions."""


class Unreachable(PipelineError):
    """A broker that does not answer, or stopped to; it was asked again until the time was up."""
