# Two doors. `make lab` opens the lessons; `make test` runs every test. Both need make and Python 3.11 or newer.
#
#   PYTHON=python3.12              another Python for .venv
#   LABKIT_LAB="--no-browser"      options for `labkit lab`
#   TORCH_INDEX=https://...        where PyTorch comes from (README: older drivers); without a GPU, its CPU wheels
#   EXTRAS=lab                     what `make lab` installs: without train no PyTorch, and lessons 00 to 03 and 09
#   PYTEST="-k emulator"           options for pytest

PYTHON ?= python3
EXTRAS ?= lab,train
LABKIT_LAB ?=
PYTEST ?=

VENV := .venv
PY := $(VENV)/bin/python
PINS := binder/requirements.txt

# The CUDA generation that the driver speaks, from nvidia-smi; empty without one. Drivers run older code, so
# everything above 13 takes gpu13. Evaluated only where something is installed.
CUDA = $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Za-z ]*Version: *\([0-9][0-9]*\).*/\1/p' | head -n 1)
GPU_EXTRA = $(shell n="$(CUDA)"; if [ "$${n:-0}" -ge 13 ]; then echo gpu13; elif [ "$${n:-0}" = 12 ]; then echo gpu12; fi)
# Tests compile the kernels for GPUs that are not there, which Linux alone can.
COMPILER_EXTRA = $(or $(GPU_EXTRA),$(if $(filter Linux,$(shell uname -s)),gpu13))

# PyPI's PyTorch for Linux brings 3 GB of CUDA libraries; where no driver could use them, PyTorch's own build for
# the processor is asked for first.
TORCH_INDEX ?= $(if $(CUDA),,$(if $(filter Linux,$(shell uname -s)),https://download.pytorch.org/whl/cpu))
comma := ,
LAB_EXTRAS = $(EXTRAS)$(addprefix $(comma),$(GPU_EXTRA))
TEST_EXTRAS = test$(addprefix $(comma),$(COMPILER_EXTRA))

PIP = $(PY) -m pip install --disable-pip-version-check --quiet --constraint $(VENV)/constraints.txt

# PyTorch alone, from its own index; where that cannot be reached, PyPI's build will do.
define torch
@$(PIP) --no-deps --retries 1 --timeout 20 --index-url "$(TORCH_INDEX)" torch 2>$(VENV)/torch.log \
	|| echo "$(TORCH_INDEX) has no PyTorch for this machine or cannot be reached; it comes with the rest."

endef

# $(call install,EXTRAS): the package, editable, against the pinned set. The set pins CUDA 13's pieces; for
# CUDA 12 pip picks them, and everything else stays pinned.
define install
@case ",$(1)," in *,gpu12,*) sed -E '/^(cuda-|nvidia-cuda-|nvidia-nv)/d' $(PINS) ;; *) cat $(PINS) ;; esac >$(VENV)/constraints.txt
@echo "Installing labkit [$(1)] into $(VENV); the first time this takes some minutes."
$(if $(and $(TORCH_INDEX),$(filter train test,$(subst $(comma), ,$(1)))),$(torch))
@$(PIP) --editable ".[$(1)]"
endef

.DEFAULT_GOAL := help
.PHONY: help lab test check exercises clean

help:
	@echo "make lab        open JupyterLab at the first lesson"
	@echo "make test       run every test: unit, notebooks, browser where Chromium is installed"
	@echo "make check      lint, formatting, types"
	@echo "make exercises  write exercises/ anew from solutions/"
	@echo "make clean      remove .venv and what builds and tests leave behind"

lab: $(VENV)/.lab
	@$(PY) -m labkit lab $(LABKIT_LAB)

test: $(VENV)/.test
	$(PY) -m pytest $(PYTEST)

check: $(VENV)/.test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

exercises: $(VENV)/.test
	$(PY) -m labkit author sync

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find labkit tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is made once, and filled again when the pins or the package's metadata change.
$(VENV)/.lab: $(VENV)/.made pyproject.toml $(PINS)
	$(call install,$(LAB_EXTRAS))
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml $(PINS)
	$(call install,$(TEST_EXTRAS))
	@touch $@

$(VENV)/.made:
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no '$(PYTHON)' here: install Python 3.11 or newer, or say which with 'make lab PYTHON=/path/to/python3'." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "labkit needs Python 3.11 or newer and '$(PYTHON)' is older: install one and name it, e.g. 'make lab PYTHON=python3.12'." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { echo "'$(PYTHON)' cannot make virtual environments: on Debian and Ubuntu 'apt-get install python3-venv' adds that." >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV)
	@touch $@
