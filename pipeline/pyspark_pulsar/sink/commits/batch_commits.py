"""The driver's part of guarantee=transactions: the transactions of a batch are decided once, then committed.

With a write id the decision is noted before (`commit_log`), so that a driver that comes back finishes that one, and aborts
what a second attempt wrote, and what tasks opened that were killed or came second. Without one nothing comes back for it; what
its tasks opened is noted nevertheless, in a topic of this write alone that goes with its end.
"""

import logging
from collections.abc import Sequence

from ...client.admin import delete_topic
from ...errors import NoSuchTopic, PipelineError
from ..errors import BatchChanged, TransactionLost
from ..options import TRANSACTIONS, SinkOptions
from ..task import TaskResult
from .commit_log import CommitLog, log_topic
from .commit_records import Decision, Opened, Written
from .transactions import HasEnded, TransactionClient, is_aborted

_log = logging.getLogger(__name__)


def commit(results: Sequence[TaskResult], options: SinkOptions, noted_as: str = "") -> None:
    """Commits the batch: when this returns, it is there once. TransactionLost, BatchChanged, Refused, Unreachable."""
    written = tuple(each.written for each in results if each.written is not None)
    if options.guarantee != TRANSACTIONS or not results or (not written and not results[0].write_id):
        return
    first = results[0]
    if not first.write_id:
        _commit_all(written, options, "this write")
        _end_noted(noted_as, written, options)
        return
    with CommitLog(log_topic(first.write_id, options.commits_namespace), options.access) as log:
        decided = log.last
        if decided is not None and decided.batch > first.batch:
            _abort_all(written, options)
            raise BatchChanged(
                f"write {first.write_id}: batch {first.batch} is written after batch {decided.batch} was committed. "
                "An old checkpoint, "
                "or a writeId that was used before? Begin with a new one"
            )
        if decided is None or decided.batch < first.batch:
            decided = Decision(first.batch, written)
            log.write(decided)
        else:
            _abort_all([each for each in written if each not in decided.written], options)
        _commit_all(decided.written, options, f"batch {decided.batch} of write {first.write_id}")
        _abort_all(_left(log.opened, decided), options)
        log.let_go()


def abort(results: Sequence[TaskResult], options: SinkOptions, batch: int, noted_as: str = "") -> None:
    """Aborts the transactions of a given up batch. A decided batch is not aborted: it is finished when it is written again.

    There may be no results: every task failed, or was killed.
    """
    if options.guarantee != TRANSACTIONS:
        return
    written = [each.written for each in results if each.written is not None]
    write_id = results[0].write_id if results else options.write_id
    if not write_id:
        _abort_all(written, options)
        _end_noted(noted_as, written, options)
        return
    try:
        with CommitLog(log_topic(write_id, options.commits_namespace), options.access, lasts=bool(written)) as log:
            last = log.last or Decision(batch, ())
            known = {each.txn_id for each in written}
            left = _left(log.opened, Decision(max(batch, last.batch), last.written))
        written = [each for each in written if each not in last.written] + [each for each in left if each.txn_id not in known]
    except NoSuchTopic:
        return  # no task came so far as to open one
    _abort_all(written, options)


def _end_noted(noted_as: str, known: Sequence[Written], options: SinkOptions) -> None:
    """Aborts the transactions that tasks noted and `known` lacks, and deletes the topic. The write is done, or failed, before.

    So an error here is none of the write's: transactions that stay open end when their time is up.
    """
    if not noted_as:
        return
    topic = log_topic(noted_as, options.commits_namespace)
    try:
        with CommitLog(topic, options.access, lasts=False) as log:
            opened = log.opened
        _abort_all(_left(opened, Decision(0, tuple(known))), options)
        delete_topic(topic, options.access)
    except NoSuchTopic:
        return  # no task came so far as to open one
    except PipelineError as error:
        _log.warning("transactions of killed tasks are aborted after transactionTimeoutMs, and %s may stay: %s", topic, error)


def _left(opened: Sequence[Opened], decided: Decision) -> list[Written]:
    """Transactions opened for this batch or an earlier one that are not part of it: nothing else ends them."""
    chosen = {each.txn_id for each in decided.written}
    return [Written(each.txn_id, ()) for each in opened if each.batch <= decided.batch and each.txn_id not in chosen]


def _commit_all(written: Sequence[Written], options: SinkOptions, what: str) -> None:
    for each in written:
        client = TransactionClient(each.txn_id.most, options.access)
        try:
            client.end(each.txn_id, commits=True)
        except HasEnded as error:
            # committed before and forgotten by its coordinator, or aborted: its topics know
            _check_committed(each, options, what, error)
        finally:
            client.close()


def _check_committed(written: Written, options: SinkOptions, what: str, error: HasEnded) -> None:
    lost = [topic for topic in written.topics if is_aborted(written.txn_id, topic, options.access)]
    if lost:
        raise TransactionLost(
            f"{', '.join(lost)}: a transaction of {what} was aborted before it was committed ({error}); others of "
            "it may be there. It was "
            f"open for longer than transactionTimeoutMs ({options.transaction_ms}): raise that. The rows of this "
            "batch have to be "
            "compared with the topic (bin/pulsar-pipeline reconcile), and the write begun anew"
        ) from None


def _abort_all(written: Sequence[Written], options: SinkOptions) -> None:
    for each in written:
        client = TransactionClient(each.txn_id.most, options.access)
        try:
            client.end(each.txn_id, commits=False)
        except HasEnded:
            continue  # aborted already, by its task or because its time was up
        finally:
            client.close()
