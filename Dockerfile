# darkroom with the TFX 1.21 line on Debian 13. What is in it and how to run it: docs/guides/container.md.
#
#   make image                                            stage `runtime`, which is also the default
#   make image STAGE=beam-worker IMAGE=darkroom-beam:dev  the same, started by Beam's boot program
#   make image STAGE=cuda IMAGE=darkroom:dev-cuda         the same, with NVIDIA's libraries for GPUs
#   make image STAGE=core IMAGE=darkroom-core:dev         without TensorFlow and TFX, a seventh of it
#
# To pin the base, give it by digest: --build-arg BASE=python:3.11-slim-trixie@sha256:...

ARG BASE=python:3.11-slim-trixie
# The same version of Beam as in constraints/image.txt.
ARG BEAM_SDK=apache/beam_python3.11_sdk:2.77.0

FROM ${BASE} AS base

FROM base AS dependencies
ARG PIP_INDEX_URL
WORKDIR /build
# pyfarmhash has no wheel; strip comes with the compiler.
RUN apt-get update && apt-get install -y --no-install-recommends g++
COPY constraints/image.txt ./
# All in one layer. The tools that build the four source packages of the lock come from the lock, too,
# so every installed package has a checked hash. Then everything that nothing reads at run time is
# removed: TensorFlow's headers, the symbols of its libraries, and the tests of all packages. Some files
# of some packages are not valid for this Python; they are never imported. Bytecode with a hash of its
# source does not depend on the times of files.
RUN install="python -m pip --python /opt/darkroom/bin/python install -q --no-cache-dir \
      --no-compile --no-deps --no-build-isolation --require-hashes" && \
    sed -n '/^\(setuptools\|wheel\)==/,/[^\\]$/p' image.txt > builders.txt && \
    python -m venv --without-pip /opt/darkroom && \
    $install -r builders.txt && \
    $install -r image.txt && \
    cd /opt/darkroom/lib/python3.11/site-packages && \
    rm -r tensorflow/include && \
    find tensorflow -name '*.so*' -type f -exec strip --strip-unneeded {} + && \
    find . -type d -name tests -prune -exec rm -r {} + && \
    { python -m compileall -q -j 0 --invalidation-mode unchecked-hash . || true; }

FROM dependencies AS project
COPY LICENSE README.md pyproject.toml setup.py ./
COPY src src
COPY components components
COPY pipelines pipelines
RUN python -m pip --python /opt/darkroom/bin/python install -q --no-compile --no-deps \
      --no-build-isolation --prefix /project . && \
    python -m compileall -q -s /project -p /opt/darkroom --invalidation-mode unchecked-hash \
      /project/lib
# Debian's packages are those of the base: no image contains the compiler above.
COPY tools/make_sbom.py ./
COPY --from=base /var/lib/dpkg/status base-packages
RUN PYTHONPATH=/project/lib/python3.11/site-packages /opt/darkroom/bin/python -m pip check && \
    PYTHONPATH=/project/lib/python3.11/site-packages /opt/darkroom/bin/python make_sbom.py \
      --packages base-packages --output /project/sbom.cdx.json

FROM base AS runtime
COPY --from=dependencies /opt/darkroom /opt/darkroom
COPY --from=project /project /opt/darkroom
# Any user may run it, even one without a name; files below its home are temporary.
ENV PATH=/opt/darkroom/bin:${PATH} HOME=/tmp LOGNAME=darkroom PYTHONUNBUFFERED=1
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["darkroom"]
CMD ["--help"]
ARG BASE
ARG VERSION=0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="darkroom" \
      org.opencontainers.image.description="Turns image datasets into verified TFRecords and trained models." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.authors="The darkroom developers" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE}"

# What TensorFlow's extra `and-cuda` adds, and nothing else of its lock. TensorFlow looks for it beside
# itself. The driver comes from the node.
FROM project AS cuda-libraries
COPY constraints/cuda.txt ./
RUN sed -n '/^nvidia-/,/[^\\]$/p' cuda.txt > nvidia.txt && \
    /opt/darkroom/bin/python -m pip install -q --no-cache-dir --no-compile --no-deps --ignore-installed \
      --require-hashes --prefix /cuda -r nvidia.txt && \
    PYTHONPATH=/project/lib/python3.11/site-packages:/cuda/lib/python3.11/site-packages \
      /opt/darkroom/bin/python make_sbom.py --packages base-packages --output /cuda/sbom.cdx.json

FROM runtime AS cuda
COPY --from=cuda-libraries /cuda /opt/darkroom
# What Kubernetes' device plugin and Docker's --gpus give to a container; where GKE's nodes mount
# the driver; and the one folder that the wheel of TensorFlow 2.21 forgets to look in. Without it, all
# GPUs are idle.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/opt/darkroom/lib/python3.11/site-packages/nvidia/cusolver/lib

FROM base AS core-dependencies
ARG PIP_INDEX_URL
WORKDIR /build
RUN apt-get update && apt-get install -y --no-install-recommends binutils
COPY constraints/image.txt constraints/image-core.txt ./
# As above, without a compiler: all packages have wheels. What builds the project stays out of the
# image. The symbols of libraries are a quarter of all, mostly Beam's; those in folders `*.libs` were
# changed after they were linked, and strip would break them. Of Amazon's interfaces, S3 and what gives
# credentials for it is kept, and of Arrow all but Flight.
RUN install="python -m pip --python /opt/darkroom/bin/python install -q --no-cache-dir \
      --no-compile --no-deps --no-build-isolation --require-hashes" && \
    sed -n '/^\(setuptools\|wheel\)==/,/[^\\]$/p' image.txt > builders.txt && \
    python -m venv --without-pip /opt/darkroom && \
    $install --target builders -r builders.txt && \
    $install --only-binary :all: -r image-core.txt && \
    cd /opt/darkroom/lib/python3.11/site-packages && \
    find . -type d \( -name tests -o -name include \) -prune -exec rm -r {} + && \
    find . -name '*.so*' -type f -not -path './*.libs/*' -exec strip --strip-unneeded {} + && \
    find botocore/data -mindepth 1 -maxdepth 1 -type d ! -name s3 ! -name signin ! -name 'sso*' \
      ! -name sts -exec rm -r {} + && \
    rm pyarrow/libarrow_flight* pyarrow/_flight* && \
    { python -m compileall -q -j 0 --invalidation-mode unchecked-hash . || true; }

FROM core-dependencies AS core-project
COPY LICENSE README.md pyproject.toml setup.py ./
COPY src src
COPY components components
COPY pipelines pipelines
RUN PYTHONPATH=/build/builders python -m pip --python /opt/darkroom/bin/python install -q \
      --no-compile --no-deps --no-build-isolation --prefix /project . && \
    python -m compileall -q -s /project -p /opt/darkroom --invalidation-mode unchecked-hash \
      /project/lib
COPY tools/make_sbom.py ./
COPY --from=base /var/lib/dpkg/status base-packages
RUN PYTHONPATH=/project/lib/python3.11/site-packages python -m pip \
      --python /opt/darkroom/bin/python check && \
    PYTHONPATH=/project/lib/python3.11/site-packages /opt/darkroom/bin/python make_sbom.py \
      --packages base-packages --output /project/sbom.cdx.json

FROM base AS core
COPY --from=core-dependencies /opt/darkroom /opt/darkroom
COPY --from=core-project /project /opt/darkroom
ENV PATH=/opt/darkroom/bin:${PATH} HOME=/tmp LOGNAME=darkroom PYTHONUNBUFFERED=1
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["darkroom"]
CMD ["--help"]
ARG BASE
ARG VERSION=0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
LABEL org.opencontainers.image.title="darkroom core" \
      org.opencontainers.image.description="Turns image datasets into verified TFRecords." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.authors="The darkroom developers" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE}"

# After the other stages: an engine without BuildKit builds, and pulls, all that come before the stage
# that was asked for.
FROM ${BEAM_SDK} AS beam-sdk

FROM runtime AS beam-worker
COPY --from=beam-sdk /opt/apache/beam /opt/apache/beam
# Otherwise boot makes a virtual environment of the base's Python, without our packages.
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
ENTRYPOINT ["/opt/apache/beam/boot"]
CMD []

# The last stage is the default.
FROM runtime
