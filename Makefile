# The two commands of the README, and shorthands. The build itself is CMake's: see CMakeLists.txt, CMakePresets.json.
#
#   make run          install what is missing, build, talk to the model in the program     ARGS="-p 'Hello'"
#   make test         build with sanitizers and run every suite; last line: N passed, N failed
#   make check        style and layering only                     make bench   speed of ops and of whole models
#   make fuzz         every fuzzer for FUZZ_SECONDS               make soak    the long runs
#   make clean        removes what was built; models made by train/ stay
.PHONY: run build test check fuzz soak bench clean
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
FUZZ_SECONDS ?= 60
ARGS ?=

run: build
	@.build/release/hadal run $(ARGS)

build:
	@deploy/packages build
	@[ -f .build/release/build.ninja ] || cmake --preset release --log-level=WARNING >/dev/null
	@ninja -C .build/release -n | grep -q 'no work to do' || cmake --build .build/release --parallel $(JOBS)

test: .build/venv/ready
	@deploy/packages test
	@cmake --preset test
	@cmake --build .build/test --parallel $(JOBS)
	@.build/venv/bin/python tests/run.py --build .build/test --jobs $(JOBS)

.build/venv/ready: tests/requirements.txt
	@deploy/packages test
	python3 -m venv --system-site-packages .build/venv
	.build/venv/bin/python -m pip install --quiet -r tests/requirements.txt
	@touch $@

check:
	@python3 tests/check/check.py

fuzz:
	@deploy/packages fuzz
	@cmake --preset fuzz
	@cmake --build .build/fuzz --parallel $(JOBS)
	@python3 tests/run_fuzz.py --build .build/fuzz --seconds $(FUZZ_SECONDS)

soak: build .build/venv/ready
	@.build/venv/bin/python -m pytest -c tests/pytest.ini --rootdir . tests/soak --build .build/release

bench:
	@deploy/packages build
	@cmake --preset cpu
	@cmake --build .build/cpu --parallel $(JOBS)
	@bench/run --build .build/cpu

clean:
	@[ ! -d .build ] || find .build -mindepth 1 -maxdepth 1 ! -name models -exec rm -rf {} +
