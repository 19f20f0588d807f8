# Four commands. Each calls what it needs; where everything is there already, that takes a second or two.
#
#   make install   create .venv with everything that run and test need
#   make run       open the page; it prints its address
#   make test      run all tests on three workers, then those that judge times alone (ARGS="..." goes to pytest)
#   make test-fast run the quick ones, while you type: no engine, browser, other server or whole comparison
#   make check     format, lint, types, layers
#
# VARIANT=cpu or VARIANT=gpu overrides which build of vLLM is installed, PYTHON=... which Python makes .venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Some images forbid Python to keep what it compiled: then each worker compiles all tests, and each child all modules.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help install run test test-fast check

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu
# The first Python that vLLM accepts.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$name -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; \
	then echo $$name; break; fi; done)

ifdef VARIANT
ifeq ($(filter cpu gpu,$(VARIANT)),)
$(error VARIANT is cpu or gpu, not "$(VARIANT)")
endif
REASON := VARIANT=$(VARIANT) was given
else
FOUND := $(shell if count=$$(nvidia-smi -L 2>/dev/null | grep -c '^GPU'); then echo gpu nvidia-smi lists "$$count" GPU; \
	elif compgen -G '/dev/nvidia[0-9]*' >/dev/null; then echo gpu an NVIDIA device is in /dev; \
	else echo cpu nvidia-smi lists no GPU and /dev has no NVIDIA device; fi)
VARIANT := $(firstword $(FOUND))
REASON := $(wordlist 2,99,$(FOUND))
endif
REQUIREMENTS := $(if $(filter gpu,$(VARIANT)),requirements.txt,requirements-cpu.txt)

# Stamps. A .venv holds one variant: making it for the other one clears it.
MADE := $(VENV)/.made-$(VARIANT)
APP := $(VENV)/.app-$(VARIANT)
DEV := $(VENV)/.dev-$(VARIANT)
LM_EVAL := $(VENV)/.lm-eval-$(VARIANT)
# Three workers, on any machine: one has the tests with engines all the time, the others wait much of theirs
# (tests/support/schedule.py says how the tests are shared out).
PYTEST := $(BIN)/python -m pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder

define FUNCTIONS
say() { printf '==> %s\n' "$$*"; }

# debian WHY PACKAGE...: install what is missing, and go on without if that can't be done.
debian() {
	local why=$$1 package missing=() root=(); shift
	if ! command -v dpkg-query >/dev/null; then
		say "This is not Debian: $$why; see to it that this machine has what Debian calls $$*"
		return
	fi
	for package; do
		dpkg-query -W -f='$${db:Status-Status}\n' "$$package" 2>/dev/null | grep -qx installed || missing+=("$$package")
	done
	[ "$${#missing[@]}" -gt 0 ] || return 0
	if [ "$$(id -u)" != 0 ]; then root=(sudo); fi
	say "Installing Debian packages ($${missing[*]}): $$why"
	if ! { "$${root[@]}" apt-get update -qq && "$${root[@]}" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "$${missing[@]}"; }; then
		say "Could not install $${missing[*]}: going on without. Install them by hand if something fails"
	fi
}

browser() {
	command -v chromium >/dev/null || debian 'the browser tests need a browser' chromium
	debian 'the browser tests look at Chinese text' fonts-noto-cjk
}
endef

help:
	@sed -n '/^#   make/s/^# *//p' Makefile

$(MADE):
	@$(FUNCTIONS)
	if [ -z "$(PYTHON)" ]; then
		say 'No Python from 3.11 to 3.14 was found. Install one, or name it: make PYTHON=/path/to/python'
		exit 1
	fi
	if ! "$(PYTHON)" -c 'import ensurepip' 2>/dev/null; then
		debian 'this Python cannot make a virtual environment' \
			"python$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
	fi
	say "Creating $(VENV) with $$("$(PYTHON)" --version)"
	"$(PYTHON)" -m venv --clear $(VENV)
	$(PIP) install --quiet --disable-pip-version-check "$$(grep '^pip==' requirements-app.txt)"
	touch $@

$(APP): requirements-viewer.txt requirements-app.txt $(REQUIREMENTS) | $(MADE)
	@$(FUNCTIONS)
	say 'Installing vLLM for $(VARIANT) from $(REQUIREMENTS), because $(REASON). The first time takes some minutes'
	command -v g++ >/dev/null || debian 'vLLM compiles kernels unless enforce_eager is set' g++
	header="$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"
	[ -e "$$header" ] || debian 'vLLM compiles kernels unless enforce_eager is set' \
		"$$(basename "$$(dirname "$$header")")-dev"
	index=()
	if [ $(VARIANT) = cpu ]; then
		debian 'vLLM on the CPU places its memory with it' libnuma1
		if ! $(PIP) install --dry-run --quiet --no-deps "$$(grep '^torch==' $(REQUIREMENTS))+cpu" >/dev/null 2>&1; then
			say 'The package index has no CPU build of torch: adding $(TORCH_CPU_INDEX)'
			index=(--extra-index-url $(TORCH_CPU_INDEX))
		fi
	fi
	$(PIP) install "$${index[@]}" -r $(REQUIREMENTS)
	if [ $(VARIANT) = cpu ]; then
		say 'Removing torchvision, torchaudio and torchcodec: built for CUDA they break transformers, and text needs none'
		$(PIP) uninstall --yes --quiet torchvision torchaudio torchcodec
		$(BIN)/python -c 'import torch, sys; sys.exit(torch.version.cuda and "torch is not the CPU build")'
	fi
	touch $@

$(DEV): requirements-dev.txt | $(APP)
	@$(FUNCTIONS)
	say 'Installing what the tests need from requirements-dev.txt'
	$(PIP) install --quiet -r requirements-dev.txt
	touch $@

$(LM_EVAL): requirements-lm-eval.txt | $(APP)
	@$(FUNCTIONS)
	say 'Installing lm-evaluation-harness for the tests, in an environment of its own'
	$(BIN)/python -m venv --clear $(VENV)/lm-eval
	$(VENV)/lm-eval/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-lm-eval.txt
	touch $@

install: $(APP) $(DEV) $(LM_EVAL)
	@$(FUNCTIONS)
	browser
	say '$(VENV) is ready, with vLLM for $(VARIANT): $(REASON)'

run: $(APP)
	@exec $(BIN)/python app.py

test: $(APP) $(DEV) $(LM_EVAL)
	@$(FUNCTIONS)
	browser
	shared=0 alone=0
	$(PYTEST) --alone=never $(ARGS) || shared=$$?
	$(BIN)/python -m pytest --alone=only $(ARGS) || alone=$$?
	# 5: ARGS chose no test. Only one of the two may say so.
	case $$shared-$$alone in 0-0 | 0-5 | 5-0) ;; *) exit 1 ;; esac

test-fast: $(APP) $(DEV)
	@$(PYTEST) --alone=never -m 'not (engine or browser or foreign or simulation or slow)' $(ARGS)

check: $(APP) $(DEV)
	@$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q tests/test_layers.py
