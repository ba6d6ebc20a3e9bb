"""Clock, Rng, Disk and their real form; configuration reader; logging.

Nothing above reads time, chance, files or threads itself.

A port is a plain noun (`Disk`); its real form is `Real...`, its simulated twin `Sim...` in `simulation/`.
Monotonic time is asyncio's `loop.time()`, which the simulation's event loop provides too.
"""
