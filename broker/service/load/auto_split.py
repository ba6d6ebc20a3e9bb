"""AutoSplit: splits bundles of this broker that have been too much for several looks (Apache: BundleSplitterTask)."""

import logging
from collections.abc import Mapping

from metadata.store import MetadataError
from ports.logs import line

from ...errors import BrokerError
from ..errors import BundleNotFound
from ..ownership.bundles import Bundle
from .bundle_splits import BundleSplits
from .loads import BundleStats
from .settings import LoadSettings
from .splitting import CannotSplit

HITS = 3
"""Looks in a row at which a bundle must be too much (loadBalancerNamespaceBundleSplitConditionHitCountThreshold)."""
log = logging.getLogger(__name__)


class AutoSplit:
    """Owns the number of successive rounds in which each bundle was too large."""

    def __init__(self, settings: LoadSettings, splits: BundleSplits) -> None:
        self._settings, self._splits = settings, splits
        self._hits: dict[Bundle, int] = {}

    async def on_look(self, stats: Mapping[Bundle, BundleStats]) -> None:
        """One bundle at a time is split; a bundle that cannot be split is left as it is, and logged."""
        if not self._settings.load_balancer_auto_bundle_split_enabled:
            return
        rule = self._settings.split_rule
        self._hits = {bundle: self._hits.get(bundle, 0) + 1 for bundle, each in stats.items() if rule.asks(each)}
        for bundle, hits in list(self._hits.items()):
            if hits >= HITS:
                del self._hits[bundle]
                await self._split(bundle)
                return

    async def _split(self, bundle: Bundle) -> None:
        unload = self._settings.load_balancer_auto_unload_split_bundles_enabled
        try:
            await self._splits.split(bundle.namespace, bundle.range, unload=unload)
        except (CannotSplit, BundleNotFound, BrokerError, MetadataError) as error:
            log.warning(line("bundle is not split", bundle=bundle, reason=error))
