FROM python:3.12-slim

WORKDIR /app
COPY requirements.txt pyproject.toml README.md ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt
COPY gateway gateway
COPY channels channels
COPY memory memory
COPY agents agents
COPY config.yaml ./
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
 && useradd --create-home remora && mkdir data && chown remora data
USER remora
VOLUME /app/data
ENTRYPOINT ["remora"]
CMD ["chat"]
