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
# `docker run -it … chat` talks in the terminal. Give it 40 s to end: docker stop -t 40.
CMD ["serve"]
