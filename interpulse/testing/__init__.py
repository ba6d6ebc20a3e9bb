"""A Pulsar broker for tests: the pytest fixture `pulsar_broker`, and `broker()` for programs.

    async with broker() as started:                  # or `with`
        client = pulsar.Client(started.service_url)

Owns nothing itself: `interpulse.testing.process` starts and ends the server, `interpulse.pytest_plugin` is what pytest loads.
"""

from interpulse.testing.process import Broker, BrokerDidNotStart, broker

__all__ = ["Broker", "BrokerDidNotStart", "broker"]
