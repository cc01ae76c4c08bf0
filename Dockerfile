# The command line and the Python package, in an image that needs nothing else:
#
#     docker build -t sparsegp .
#     docker run --rm sparsegp demo
#     docker run --rm -v "$PWD":/data sparsegp fit table.csv --target y -o model.safetensors
#     docker run --rm -it -v "$PWD":/data --entrypoint python sparsegp
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin sparsegp
RUN python3 -m venv /maturin && /maturin/bin/pip install --no-cache-dir 'maturin>=1.9,<2' \
    && /maturin/bin/maturin build --release --locked -m crates/sparsegp-python/Cargo.toml -o /wheels

FROM python:3.13-slim-bookworm
COPY --from=build /src/target/release/sparsegp /usr/local/bin/sparsegp
COPY --from=build /wheels /wheels
RUN wheel=$(ls /wheels/*.whl) && pip install --no-cache-dir "${wheel}[plot]" pandas && rm -r /wheels
WORKDIR /data
ENTRYPOINT ["sparsegp"]
CMD ["help"]
