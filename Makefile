# The project's whole vocabulary. `make run` and `make test` are all that a new user needs.
SHELL := /bin/bash
# The commit that a program is built from, with -dirty where files differ from it. Only the crate causeway reads it: after
# a commit that one is compiled anew and linked, and nothing else. Debug builds do without.
run build deb image bench lab page-bench soak: export CAUSEWAY_COMMIT = $(shell \
  git describe --always --exclude='*' --abbrev=12 --dirty 2>/dev/null)

.PHONY: help run test check build deb image docs bench lab linux instructions attacks page-bench fuzz sim soak tools clean

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

run: ## install what is missing, build, serve a demonstration LUN on 127.0.0.1:3260
	@scripts/install build web
	@scripts/web
	@[ -e target/release/causeway ] || echo "building; the first time takes some minutes"
	cargo build --release --locked -p causeway --bin causeway
	@scripts/split target/release/causeway
	@scripts/demo target/release/causeway

test: ## install what the tests need, run everything
	@scripts/install build web test browser guest docs deb packages etcd
	@scripts/install ceph || echo "no Ceph: those tests say skipped"
	@scripts/test

check: ## format, clippy, dependency law, licences: under a minute when warm
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo run --quiet --locked -p proof --no-default-features --bin tidy

build: ## the release binary with its page, target/release/causeway, and what debuggers need of it, causeway.debug
	@scripts/install build web
	@scripts/web
	cargo build --release --locked -p causeway --bin causeway
	@scripts/split target/release/causeway

deb: build ## Debian packages: causeway, and causeway-dbgsym with its symbols, in target/deb/
	@scripts/install deb
	@scripts/deb target/release/causeway

image: build ## an OCI image for podman, docker and Kubernetes, made without any of them: target/image/
	@scripts/image target/release/causeway

docs: ## all documents as linked pages, target/docs/index.html; fails on a link that leads nowhere
	@scripts/install docs
	@scripts/docs

bench: ## the cost of the waist, and of I/O beside the floor, tgt and istgt, in one run: target/bench/
	@scripts/install build test bench
	@scripts/bench

lab: ## as root: the published tests, faults and bars of the path layer and the faults of a cluster, in namespaces, about 26 minutes: target/lab/
	@scripts/install build test
	cargo build --release --locked -p causeway --bin causeway
	@mkdir -p target/lab
	@for lab in mpio round-robin sector-size fault bars; do \
	  echo "== $$lab"; \
	  target/release/causeway -o json lab $$lab --html target/lab/$$lab.html > target/lab/$$lab.json || exit 1; \
	done
	@scripts/install etcd
	@echo "== cluster"
	target/release/causeway -o json lab cluster fault --html target/lab/cluster.html > target/lab/cluster.json

linux: ## as root: every scene with a real Linux host in a virtual machine (KERNELS="6.1 6.12", SCENES=part of a name)
	@scripts/install build guest
	@scripts/linux-guest
	@for kernel in $(or $(KERNELS),6.1 6.12); do \
	  echo "== Linux $$kernel"; \
	  CAUSEWAY_GUEST_KERNEL=$$kernel cargo test --locked -p causeway --test linux_host -- \
	    --include-ignored --nocapture --test-threads=1 $(SCENES) || exit 1; \
	done

instructions: ## what the hot paths cost in instructions, against bounds: does not depend on the machine's load
	@scripts/install build test
	@scripts/instructions

attacks: ## takes away each defence of the API in turn: its test has to fail then (15 minutes; ATTACKS=begin of a name)
	@scripts/install build
	@scripts/attacks $(ATTACKS)

page-bench: ## what the page costs, against its bars, on a machine that does nothing else (75 minutes; MINUTES=3 of the stream: 20)
	@scripts/install build web browser
	@scripts/web
	cargo build --release --locked -p causeway --bin causeway
	scripts/viewers target/release/causeway
	CAUSEWAY_BIN=target/release/causeway scripts/web node web/tests/many.ts
	CAUSEWAY_BIN=target/release/causeway scripts/web node web/tests/measure.ts $${MINUTES:-60}

fuzz: ## fuzz every parser for SECONDS (default 60) each
	@scripts/fuzz $(or $(SECONDS_EACH),60)

sim: ## one seed of the simulator (SEED=n), or SEEDS=n of them
	cargo run --release --locked -p proof --bin sim -- $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000))

soak: ## a hundred thousand seeds of the simulator, a million of its journals, 20,000,000 worlds of the model, long kill loops, hostile connections
	cargo run --release --locked -p proof --bin sim -- --seeds 100000
	cargo run --release --locked -p proof --bin sim -- --scene journal --seeds 1000000
	cargo run --release --locked -p replica --features model --example model -- 4000000 20000
	cargo build --release --locked -p causeway --bin causeway
	CAUSEWAY_CLUSTER_KILLS=1000 cargo test --release --locked -p causeway --test lab_cluster killed -- --nocapture
	CAUSEWAY_KILL_CYCLES=2000 cargo test --release --locked -p proof --test kill_loop -- --nocapture
	CAUSEWAY_BIN=$(CURDIR)/target/release/causeway CAUSEWAY_HOSTILE_SECONDS=60 \
	  scripts/run-tests proof-hostile a_thousand_hostile_connections --nocapture

tools: ## install everything that any target needs (make fuzz also uses cargo-fuzz where it is there)
	@scripts/install build web test browser bench guest docs deb packages ceph

clean: ## remove what was built
	cargo clean
