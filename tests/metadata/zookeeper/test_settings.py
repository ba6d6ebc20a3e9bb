"""Time limits of ZooKeeper that cannot be are refused with Apache's key and the value that was given."""

import pytest

from metadata.zookeeper.settings import ZooKeeperSettings
from ports.settings import BadSetting, build_settings


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [("metadataStoreSessionTimeoutMillis", 999, 1000), ("metadataStoreOperationTimeoutSeconds", 0, 1)],
)
def test_a_time_below_the_least_is_refused_with_its_key(key: str, value: int, least: int) -> None:
    with pytest.raises(BadSetting, match=f"{key}={value}: at least {least}"):
        build_settings(ZooKeeperSettings, {key: str(value)})
    build_settings(ZooKeeperSettings, {key: str(least)})
