# Interpulse's image: the servers of this checkout with compiled kernels, for a user without rights.
#   docker build -t interpulse . && docker run --rm -p 6650:6650 -p 8080:8080 interpulse standalone --set bindAddress=0.0.0.0

FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /interpulse
COPY requirements.lock requirements-build.lock ./
COPY bin/prepare bin/compile-kernels bin/
COPY wire wire
RUN python3 bin/prepare && ls wire/kernels/*.so

FROM python:3.12-slim
RUN useradd --system --uid 10000 --home-dir /interpulse interpulse && mkdir /data && chown interpulse /data
WORKDIR /interpulse
COPY --from=build /interpulse/.venv .venv
COPY --from=build /interpulse/wire wire
COPY conf conf
COPY ports ports
COPY metadata metadata
COPY bookie bookie
COPY bookkeeper bookkeeper
COPY managed_ledger managed_ledger
COPY broker broker
COPY handlers handlers
COPY cli cli
RUN python -m compileall -q bookie bookkeeper broker cli handlers managed_ledger metadata ports wire && ln -s /data data
ENV PATH=/interpulse/.venv/bin:/usr/local/bin:/usr/bin:/bin PYTHONPATH=/interpulse PYTHONHASHSEED=0
USER interpulse
VOLUME /data
EXPOSE 6650 8080 3181 8000
ENTRYPOINT ["python", "-P", "-m", "cli"]
CMD ["standalone", "--from-env"]
