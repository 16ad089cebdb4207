# Any image with Python 3.11 or newer and its venv module.
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
RUN python3 -m venv /opt/remora
COPY requirements.txt requirements-postgres.txt /src/
# EXTRA=postgres adds the driver of PostgreSQL.
ARG EXTRA=
RUN /opt/remora/bin/pip install --no-cache-dir --require-hashes -r /src/requirements.txt \
    ${EXTRA:+-r /src/requirements-$EXTRA.txt}
COPY pyproject.toml README.md config.yaml /src/
COPY gateway /src/gateway
COPY channels /src/channels
COPY memory /src/memory
COPY agents /src/agents
COPY languages /src/languages
# pip and the build tools stay behind: nothing is installed in the running image.
RUN /opt/remora/bin/pip install --no-cache-dir --no-deps --no-build-isolation /src \
 && /opt/remora/bin/pip uninstall --yes --quiet hatchling editables pathspec pluggy trove-classifiers setuptools pip \
 && rm -rf /src

FROM ${BASE}
COPY --from=build /opt/remora /opt/remora
# Two arenas: with one for each thread, glibc keeps some 10 MB more of what was freed.
ENV PATH=/opt/remora/bin:$PATH HOME=/home/remora LANG=C.UTF-8 MALLOC_ARENA_MAX=2
# One volume holds all that is a person's own: config.yaml, agents, .env and the data. `remora init` writes there.
RUN useradd --create-home --uid 10001 remora \
 && install -d -o remora -g remora -m 700 /home/remora/.config /home/remora/.config/remora
USER remora
WORKDIR /home/remora/.config/remora
VOLUME /home/remora/.config/remora
HEALTHCHECK --interval=30s --timeout=15s --start-period=60s CMD ["remora", "status"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["remora"]
CMD ["serve"]
