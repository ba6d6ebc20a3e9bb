"""The table of the shell's commands: names, options and words are those of Apache's BookieShell 4.17.

`where` is the module of this package and the function in it, `async (shell, given) -> exit code`; `failure` is the exit code of
one that could not do it, as Apache's (-1 is 255). Imports none of them.
"""

from dataclasses import dataclass

from cli.bookkeeper_shell.options import Option

FAILED = 255


@dataclass(frozen=True, slots=True)
class Command:
    """`arguments` is what comes beside the options, for the usage."""

    name: str
    what: str
    where: str
    options: tuple[Option, ...] = ()
    arguments: str = ""
    failure: int = FAILED


LEDGER = Option("l", "ledgerid", "ledgerId", "Ledger ID")
MESSAGE = Option("m", "msg", note="Print message body")
COOKIE_FILE = Option("cf", "cookie-file", "file", "The file to be uploaded as cookie")
CONFIRMATION = (
    Option("n", "nonInteractive", note="Do not ask whether old data may go"),
    Option("f", "force", note="With -n: old data goes"),
)
_BOOKIES = (
    Command(
        "listbookies",
        "List the bookies, which are running as either readwrite or readonly mode",
        "cluster:list_bookies",
        (
            Option("rw", "readwrite", note="Print readwrite bookies"),
            Option("ro", "readonly", note="Print readonly bookies"),
            Option("a", "all", note="Print all bookies that have a cookie"),
            Option("h", "hostnames", note="Without effect: the hostname is always printed"),
        ),
        failure=FAILED,
    ),
    Command("bookieinfo", "Free and total disk space of the writable bookies", "cluster:bookie_info"),
    Command("clusterinfo", "The state of the cluster of bookies, as JSON", "cluster:cluster_info"),
    Command(
        "endpointinfo",
        "A bookie's addresses, as registered",
        "cluster:endpoint_info",
        (Option("b", "bookieid", "bookieId", "Bookie Id"),),
    ),
    Command("whatisinstanceid", "Print the instanceid of the cluster", "cluster:what_is_instance_id"),
)
_LEDGERS = (
    Command(
        "ledgermetadata",
        "Print the metadata of a ledger, write it to a file, or put it back from one",
        "ledgers:ledger_metadata",
        (
            LEDGER,
            Option("dumptofile", takes="file", note="Dump metadata for ledger, to a file"),
            Option("restorefromfile", takes="file", note="Restore metadata for ledger, from a file"),
            Option("update", note="With -restorefromfile: also when the ledger exists"),
        ),
    ),
    Command(
        "listledgers",
        "List all ledgers on the cluster (this may take a long time)",
        "ledgers:list_ledgers",
        (
            Option("m", "meta", note="Print metadata"),
            Option("bookieid", takes="bookieId", note="List ledgers residing in this bookie"),
        ),
    ),
)
_ENTRIES = (
    Command(
        "readledger",
        "Read a range of entries from a ledger",
        "entries:read_ledger",
        (
            MESSAGE,
            LEDGER,
            Option("fe", "firstentryid", "entryId", "First Entry ID (default 0)"),
            Option("le", "lastentryid", "entryId", "Last Entry ID (default: to the end)"),
            Option("r", "force-recovery", note="Fence and close the ledger before reading: its writer must stop"),
            Option("b", "bookie", "bookieId", "Only read from a specific bookie"),
        ),
    ),
    Command(
        "deleteledger",
        "Delete a ledger",
        "entries:delete_ledger",
        (LEDGER, Option("f", "force", note="Do not ask")),
    ),
    Command(
        "simpletest",
        "Make a ledger, write entries to it, read them, delete it",
        "entries:simple_test",
        (
            Option("e", "ensemble", "size", "Ensemble size (default 3)"),
            Option("w", "writeQuorum", "size", "Write quorum size (default 2)"),
            Option("a", "ackQuorum", "size", "Ack quorum size (default 2)"),
            Option("n", "numEntries", "count", "Entries to write (default 1000)"),
        ),
    ),
    Command(
        "bookiesanity",
        "As simpletest, with the bookie of this configuration alone",
        "entries:bookie_sanity",
        (
            Option("e", "entries", "count", "Total entries to be added for the test (default 10)"),
            Option("t", "timeout", "seconds", "For writing, and for reading (default 1)"),
        ),
    ),
    Command(
        "updateBookieInLedger",
        "Replace a bookie by another in the metadata of all ledgers: its data was moved there (this may take a long time)",
        "entries:update_bookie_in_ledger",
        (
            Option("sb", "srcBookie", "bookieId", "The bookie to be replaced; it must be stopped"),
            Option("db", "destBookie", "bookieId", "The one that has its data now"),
            Option("s", "updatespersec", "count", "Ledgers updated in a second (default: 5)"),
            Option("r", "maxOutstandingReads", "count", "Without effect: one is read at a time"),
            Option("l", "limit", "count", "At most so many ledgers (default: no limit)"),
            Option("v", "verbose", "true|false", "Print each ledger"),
            Option("p", "printprogress", "seconds", "Without effect"),
        ),
    ),
)
_REPLICATION = (
    Command(
        "listunderreplicated",
        "List ledgers marked as underreplicated",
        "replication:list_underreplicated",
        (
            Option("mr", "missingreplica", "bookieId", "Ledgers that miss this bookie"),
            Option("emr", "excludingmissingreplica", "bookieId", "None of those that miss this bookie"),
            Option("pmr", "printmissingreplica", note="Print the missing replicas"),
            Option("prw", "printreplicationworkerid", note="Print which worker repairs it"),
            Option("c", "onlydisplayledgercount", note="Only print how many there are"),
        ),
    ),
    Command("whoisauditor", "Print the node which holds the auditor lock", "replication:who_is_auditor"),
    Command(
        "autorecovery",
        "Enable or disable autorecovery in the cluster; without an option, print which it is",
        "replication:autorecovery",
        (Option("e", "enable", note="Enable autorecovery"), Option("d", "disable", note="Disable autorecovery")),
    ),
    Command(
        "queryautorecoverystatus",
        "Which ledgers are being repaired, and by whom",
        "replication:query_autorecovery_status",
        (Option("v", "verbose", note="With the ledgers' sizes"),),
    ),
    Command(
        "lostbookierecoverydelay",
        "Get or set LostBookieRecoveryDelay (in seconds) in the metadata store",
        "replication:lost_bookie_recovery_delay",
        (Option("g", "get", note="Get the value"), Option("s", "set", "seconds", "Set the value")),
        failure=1,
    ),
    Command("triggeraudit", "Have the auditor look for lost bookies now", "replication:trigger_audit"),
    Command(
        "forceauditchecks",
        "Reset the time at which checks of the auditor ran last, so that they run at its next start",
        "replication:force_audit_checks",
        (
            Option("calc", "checkallledgerscheck", note="Force the check of all ledgers"),
            Option("ppc", "placementpolicycheck", note="Force the check of the placement policy"),
            Option("rc", "replicascheck", note="Force the check of replicas"),
        ),
    ),
)
_REPAIR = (
    Command(
        "recover",
        "Copy entries of failed bookies to others, and take them out of the ledgers",
        "repair:recover_bookies",
        (
            Option("q", "query", note="Only print which ledgers contain them"),
            Option("dr", "dryrun", note="Only print what would be done"),
            Option("f", "force", note="Do not ask"),
            Option("l", "ledger", "ledgerId", "Recover a specific ledger"),
            Option("sk", "skipOpenLedgers", note="Leave open ledgers as they are"),
            Option("d", "deleteCookie", note="Delete their cookies when nothing is left there"),
            Option("sku", "skipUnrecoverableLedgers", note="Go on after a ledger that cannot be recovered"),
            Option("rate", "replicationRate", "bytes", "Copied in a second, at most"),
        ),
        "<bookie id>[,<bookie id>...]",
    ),
    Command(
        "decommissionbookie",
        "Wait until all that a stopped bookie has is copied to others, then delete its cookie",
        "repair:decommission_bookie",
        (Option("bookieid", takes="bookieId", note="Which bookie (default: that of this configuration)"),),
    ),
)
_INIT = "See that a new bookie may begin with this configuration: nothing is in its directories, nobody knows its id"
_METADATA = (
    Command(
        "bookieformat",
        "Remove everything that the stopped bookie of this configuration has",
        "format:bookie_format",
        (*CONFIRMATION, Option("d", "deleteCookie", note="Delete its cookie from the metadata store too")),
        failure=1,
    ),
    Command("initbookie", _INIT, "format:init_bookie", failure=1),
    Command("bookieinit", "The same as initbookie", "format:init_bookie", failure=1),
    Command("metaformat", "Format bookkeeper metadata", "metadata:meta_format", CONFIRMATION, failure=1),
    Command("initnewcluster", "Make the metadata of a new cluster", "metadata:init_new_cluster", failure=1),
    Command(
        "nukeexistingcluster",
        "Delete all metadata of a cluster whose bookies are stopped",
        "metadata:nuke_existing_cluster",
        (
            Option("p", "zkledgersrootpath", "path", "The path that goes: /ledgers"),
            Option("i", "instanceid", "id", "Of the cluster, as whatisinstanceid prints it"),
            Option("f", "force", note="Whatever its instance id"),
        ),
        failure=1,
    ),
)
_COOKIES = (
    Command("cookie_create", "Create a cookie for a bookie, from a file", "cookies:create", (COOKIE_FILE,), "<bookie id>"),
    Command("cookie_delete", "Delete the cookie of a bookie", "cookies:delete", (), "<bookie id>"),
    Command(
        "cookie_update",
        "Replace the cookie of a bookie by that of a file",
        "cookies:update",
        (COOKIE_FILE,),
        "<bookie id>",
    ),
    Command("cookie_get", "Print the cookie of a bookie", "cookies:get", (), "<bookie id>"),
    Command(
        "cookie_generate",
        "Write the cookie that a bookie would have to a file",
        "cookies:generate",
        (
            Option("j", "journal-dirs", "dirs", "The journal directories used by this bookie"),
            Option("l", "ledger-dirs", "dirs", "The ledger directories used by this bookie"),
            Option("ix", "index-dirs", "dirs", "The index directories used by this bookie"),
            Option("i", "instance-id", "id", "Of the cluster; default: that of the cluster at metadataServiceUri"),
            Option("o", "output-file", "file", "Where the cookie is written"),
        ),
        "<bookie id>",
    ),
)
_STORAGE = (
    Command("lastmark", "Print last log marker", "storage:last_mark"),
    Command(
        "listfilesondisc",
        "List the files of this configuration's journal and ledger directories",
        "storage:list_files_on_disc",
        (
            Option("txn", "journal", note="Journal files"),
            Option("log", "entrylog", note="Entry logs"),
            Option("idx", "index", note="Indexes"),
        ),
    ),
    Command(
        "readjournal",
        "Print the content of a journal file",
        "storage:read_journal",
        (Option("dir", takes="directory", note="Journal directory (needed if there are several)"), MESSAGE),
        "<journal id | journal file name>",
    ),
    Command(
        "readlog",
        "Print what an entry log holds",
        "storage:read_log",
        (
            MESSAGE,
            LEDGER,
            Option("e", "entryid", "entryId", "With -l: only this entry"),
            Option("sp", "startpos", "offset", "Entries from this position on"),
            Option("ep", "endpos", "offset", "Entries up to this position"),
        ),
        "<entry log id | entry log file name>",
    ),
    Command(
        "readlogmetadata",
        "Print which ledgers have how much of an entry log",
        "storage:read_log_metadata",
        (),
        "<entry log id in hexadecimal | entry log file name>",
    ),
    Command(
        "ledger",
        "Print where the entries of a ledger are on this bookie, as of its last checkpoint",
        "storage:ledger",
        (Option("m", "meta", note="Print meta information"),),
        "<ledger id>",
        failure=1,
    ),
    Command(
        "localconsistencycheck",
        "Check that index and entry logs agree, and every checksum",
        "storage:local_consistency_check",
        failure=1,
    ),
)
_GROUPS = (_STORAGE, _BOOKIES, _LEDGERS, _ENTRIES, _REPLICATION, _REPAIR, _METADATA, _COOKIES)
COMMANDS: dict[str, Command] = {each.name: each for group in _GROUPS for each in group}
_NO_INDEX = "entries are found by an index beside each entry log here, in one format"
REFUSED: dict[str, str] = {
    "convert-to-db-storage": f"there is nothing to convert: {_NO_INDEX}",
    "convert-to-interleaved-storage": f"there is nothing to convert: {_NO_INDEX}",
    "rebuild-db-ledger-locations-index": f"there is no RocksDB: {_NO_INDEX}; a damaged one is rebuilt when the bookie starts",
    "rebuild-db-ledgers-index": f"there is no RocksDB: {_NO_INDEX}; a damaged one is rebuilt when the bookie starts",
    "check-db-ledgers-index": "there is no RocksDB: `localconsistencycheck` checks index and entry logs",
    "regenerate-interleaved-storage-index-file": f"there is no index for each ledger: {_NO_INDEX}",
    "updatecookie": "a bookie keeps its id and its directories: `cookie_update` and `cookie_delete` change the cluster's",
    "updateledgers": "`updateBookieInLedger -sb OLD -db NEW` puts one bookie's name in place of another's",
    "activeledgers": "`readlogmetadata` prints the ledgers of an entry log, and how much of it is still in use",
}
"""Commands that Apache has and that mean nothing here, with the reason."""
