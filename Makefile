# The entry point. Every target does its own set-up; a second run starts at once.
#
# PYTHON chooses the interpreter: a version (3.12), a command or a path.
PYTHON ?=
UV ?= uv
UPGRADE ?=
# The part that `make test-part` tests: core, make, look, read, learn or top. The environment of the
# first three is small, as none of them needs TensorFlow.
PART ?= core
# A version of kfp, for make test-kfp; the newest if it is empty.
KFP ?=
SECONDS ?= 600
# DOCKER, IMAGE, STAGE and BUILD_FLAGS are those of make image: see docs/guides/container.md.
DOCKER ?= docker
STAGE ?= runtime
IMAGE ?= darkroom:$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
BUILD_FLAGS ?=
# Processes that share the tests of `make test`; each takes up to 2 GB.
WORKERS ?= 2
CONFIG_KUBEFLOW ?= docs/examples/kubeflow.toml
CONFIG_VERTEX ?= docs/examples/vertex.toml

# Without its bytecode TFX takes half a minute to import.
unexport PYTHONDONTWRITEBYTECODE

IN_TFX = VENV=$$(sh tools/setup_env.sh tfx '$(PYTHON)') && "$$VENV/bin/python"
IN_DEMO = VENV=$$(sh tools/setup_env.sh demo '$(PYTHON)') && "$$VENV/bin/python"
IN_CORE = VENV=$$(sh tools/setup_env.sh core '$(PYTHON)') && "$$VENV/bin/python"
IN_KFP = VENV=$$(KFP='$(KFP)' sh tools/setup_env.sh kfp '$(PYTHON)') && "$$VENV/bin/python"
IN_DOCS = VENV=$$(sh tools/setup_env.sh docs '$(PYTHON)') && "$$VENV/bin/python"
IN_TORCH = VENV=$$(sh tools/setup_env.sh torch '$(PYTHON)') && "$$VENV/bin/python"
IN_NEWEST = BARE=$$(sh tools/setup_env.sh bare '$(PYTHON)') && \
	VENV=$$(sh tools/setup_env.sh newest '$(PYTHON)') && \
	DARKROOM_BARE_PYTHON="$$BARE/bin/python" "$$VENV/bin/python"
# Not those that install other tools from the network, or need a dataset: they are run by hand.
BENCHMARKS = $(filter-out $(addprefix benchmarks/,installing.py recorder.py side_by_side%.py \
	wrong_labels.py cleaning.py),$(wildcard benchmarks/*.py))
CORE = not long and not slow and not newest and not flink and not spark and not tensorflow and not tfx
# What the newest packages can break: the core, input, training, notebooks.
NEWEST_TESTS = $(addprefix tests/,audit cli conversion dataset images input kfp manifest notebooks \
	options pipelines/local runtime storage training validation)
FUZZ_TARGETS = $(wildcard tests/fuzz/fuzz_*.py)
COMPILE_TOOL = $(UV) pip compile -q --generate-hashes --no-header --no-annotate --no-emit-index-url \
	$(if $(UPGRADE),--upgrade)
COMPILE = $(COMPILE_TOOL) pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help setup demo compile test test-part test-fast test-core test-newest test-kfp test-torch test-engines test-flink test-spark test-orchestrators test-readers test-browser test-long test-image test-setup fuzz lint typecheck docs sentences reference bench image release-check clean lock

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make the virtual environment of the TFX line that this machine can install
	@$(IN_TFX) -c 'import os, sys; print("Ready: source", os.path.relpath(sys.prefix) + "/bin/activate")'

demo: ## Run the whole pipeline on 400 drawings; without TFX where it cannot be had
	@$(IN_DEMO) -m darkroom.cli demo

compile: ## Compile the pipeline for Kubeflow and Vertex into build (CONFIG_KUBEFLOW=, CONFIG_VERTEX=)
	@mkdir -p build && $(IN_TFX) -m darkroom.cli compile --target kubeflow \
		--config $(CONFIG_KUBEFLOW) -o build/pipeline.yaml && "$$VENV/bin/python" -m darkroom.cli \
		compile --target vertex --config $(CONFIG_VERTEX) -o build/pipeline.json

test: ## Run all tests (minutes); the last lines say what took how long
	@$(IN_TFX) -m pytest -n $(WORKERS) --dist worksteal

test-part: ## Run the tests of one part, without other parts (PART=core, make, look, read, learn, top)
	@$(if $(filter core make look,$(PART)),$(IN_CORE),$(IN_TFX)) -m pytest -n $(WORKERS) \
		--dist worksteal --part $(PART)

test-fast: ## Run the quick tests, without TensorFlow: after each change
	@$(IN_TFX) -m pytest -n $(WORKERS) --dist worksteal -m '$(CORE) and not heavy'

test-core: ## Run the quick tests where neither tfx nor TensorFlow is installed (PYTHON=3.10 to 3.14)
	@$(IN_CORE) -m pytest -m '$(CORE)'

test-newest: ## Try the newest packages, without constraints (PYTHON=3.12 or 3.13)
	@$(IN_NEWEST) -m pytest -n $(WORKERS) --dist worksteal \
		-m 'newest or not (long or slow or tfx or e2e)' $(NEWEST_TESTS)

test-kfp: ## Try the components without TFX with a version of kfp (KFP=2.5.0 PYTHON=3.10 to 3.13)
	@$(IN_KFP) -m pytest -m 'newest or ($(CORE))' tests/kfp

test-torch: ## Read records in PyTorch, JAX and others, without TensorFlow (PYTHON=3.12 or 3.13)
	@$(IN_TORCH) -m pytest tests/torch

test-engines: ## Run what needs a real engine: Prism (Go), containers (make image first), other machines
	@$(IN_TFX) -m pytest -m long tests/engines tests/input/test_service_hosts.py \
		tests/conversion/test_same_bytes.py tests/pipelines/compilation/test_containers.py

test-flink: ## Convert on a cluster of Flink, of separate processes: needs Java 17 and Maven
	@$(IN_TFX) -m pytest -m flink tests/engines

test-spark: ## Convert on a cluster of Spark, of separate processes: needs Java 17 and Maven
	@$(IN_TFX) -m pytest -m spark tests/engines

test-orchestrators: ## Run the examples for Airflow, Dagster and Prefect, which it installs
	@$(IN_NEWEST) -m pytest -m newest tests/orchestrators

test-readers: ## Read datasets with TFDS, DALI, mlcroissant, Hugging Face and others, which it installs
	@$(IN_CORE) -m pytest -m newest tests/readers

test-browser: ## Use the gallery in headless Chromium, which must be there, with clicks and axe-core
	@$(IN_TFX) -m pytest -m newest tests/browser

test-long: ## Run the long versions of tests: kills, corruption, determinism, scale
	@$(IN_TFX) -m pytest -m long

test-image: ## Build the container image, or take DARKROOM_IMAGE, and try it: needs an engine
	@$(IN_CORE) -m pytest -m long tests/container

test-setup: ## Try set-up on bare Debian 12 and 13: needs root and debootstrap, takes minutes
	@[ "$$(id -u)" = 0 ] && command -v debootstrap >/dev/null || \
		{ echo "error: make test-setup needs root, and Debian's debootstrap" >&2; exit 3; }
	@$(IN_CORE) -m pytest -m long tests/packaging/test_bare_systems.py

fuzz: ## Look for inputs that break the readers, for SECONDS=600 in all, into build/fuzz
	@$(IN_TFX) -c 'import atheris' && for target in $(FUZZ_TARGETS); do \
		"$$VENV/bin/python" $$target build/fuzz/$$(basename $$target .py) \
		-max_total_time=$$(($(SECONDS) / $(words $(FUZZ_TARGETS)))) || exit; done

lint: ## Check style, format and words
	@$(IN_TFX) -m ruff check . && "$$VENV/bin/python" -m ruff format --check . && \
		"$$VENV/bin/python" tools/check_words.py

typecheck: ## Check types under the package's real import names
	@rm -rf build/typecheck
	@$(IN_TFX) setup.py -q build_py --build-lib build/typecheck && \
		MYPYPATH=build/typecheck "$$VENV/bin/python" -m mypy -p darkroom

docs: ## Build the site into build/docs: a broken link, a name without documentation is an error
	@rm -rf build/docs build/docs-package
	@$(IN_DOCS) setup.py -q build_py --build-lib build/docs-package && \
		"$$VENV/bin/python" -m sphinx -q -W --keep-going -d build/docs-cache docs build/docs && \
		"$$VENV/bin/python" -m pytest -q --noconftest tests/docs/test_site.py && \
		"$$VENV/bin/python" tools/docs/sentences.py --brief

sentences: ## Print how long the sentences of the documentation are
	@python3 tools/docs/sentences.py

reference: ## Write the pages of docs/reference, and the files of components, that come from the code
	@$(IN_TFX) tools/docs/pages.py && "$$VENV/bin/python" tools/write_kfp_components.py && \
		"$$VENV/bin/python" tests/bad_input/faults.py

bench: ## Run the benchmarks behind the published numbers (more than an hour)
	@$(IN_TFX) -c 'import darkroom' && \
		for script in $(BENCHMARKS); do "$$VENV/bin/python" "$$script" || exit; done

image: ## Build the container image IMAGE=darkroom:VERSION; STAGE=beam-worker, core or cuda
	$(DOCKER) build --target $(STAGE) -t $(IMAGE) --build-arg VERSION=$(lastword $(subst :, ,$(IMAGE))) \
		--build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg CREATED=$$(git show -s --format=%cI HEAD) $(BUILD_FLAGS) .

release-check: ## Build wheel and sdist into dist, install each elsewhere, and use it
	@$(IN_CORE) tools/check_release.py

clean: ## Remove what the other targets made, except the virtual environments
	rm -rf build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src components pipelines tests -type d -name __pycache__ -prune -exec rm -rf {} +

lock: ## Write constraints/ again, with uv; UPGRADE=1 takes the newest versions
	echo 'tfx==1.21.*' | $(COMPILE) - --all-extras --python-version 3.11 \
		--python-platform x86_64-manylinux_2_39 -o constraints/tfx-1.21-py311.txt
	echo 'tfx==1.16.*' | $(COMPILE) - --all-extras --python-version 3.10 \
		--python-platform x86_64-manylinux_2_28 -o constraints/tfx-1.16-py310.txt
	printf 'tfx==1.21.*\npip\n' | $(COMPILE) - --extra tfx --extra dataflow --extra gcp --extra aws \
		--extra pretrained --extra reader --python-version 3.11 --python-platform x86_64-manylinux_2_39 \
		-c constraints/tfx-1.21-py311.txt -o constraints/image.txt
	echo 'tensorflow[and-cuda]' | $(COMPILE_TOOL) - --python-version 3.11 \
		--python-platform x86_64-manylinux_2_39 -c constraints/image.txt -o constraints/cuda.txt
	$(COMPILE) --extra beam --extra gcp --extra aws --python-version 3.11 \
		--python-platform x86_64-manylinux_2_39 -c constraints/image.txt -o constraints/image-core.txt
	$(COMPILE) --extra dev --extra beam --universal --python-version 3.10 -o constraints/core.txt
	$(COMPILE_TOOL) --group docs --universal --python-version 3.11 -o constraints/docs.txt
	echo uv | $(COMPILE_TOOL) - --universal --python-version 3.8 -o constraints/uv.txt
	echo ziglang | $(COMPILE_TOOL) - --universal --python-version 3.8 -o constraints/ziglang.txt
