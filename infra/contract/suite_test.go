package contract_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"

	"signalbox.dev/infra/contract/openapi"
)

const (
	descriptionFile = "../openapi.yaml"

	// marker is part of every secret that the suite sends: it must come back in
	// no response and stand in no log, table or file, except sealed.
	marker         = "zQ7-marker-mX4w"
	providerKey    = "sk-" + marker + "-a-provider-key-AbCd"
	idempotencyKey = marker + "-idempotency-key"

	// The limiter that the suite runs under: so slow that within the suite no slot
	// comes back, and what a key may still do is known.
	perMinute = 1
	burst     = 20

	// unknownJob is a UUID that names nothing.
	unknownJob = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
)

// suite is what all tests share. It is made before the first test and not
// changed afterwards.
type suite struct {
	place
	spec   *openapi.Spec
	client *http.Client
	// requestIDs are those seen so far: no two requests share one.
	requestIDs *sync.Map
	// local is the edition that the suite started, unless it tests what was
	// there already.
	local *local
	// sam says that sam local is the gateway in front, not the edition's.
	sam bool
	// calls, where they are wanted, are those of every edition that it starts.
	calls *calls
}

// the is the suite; TestMain makes it.
var the suite

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		code = 1
	}
	os.Exit(code)
}

// run tests what listens at SIGNALBOX_BASE_URL, whose stack SIGNALBOX_STACK
// describes (a file such as the single-machine edition writes, stack.json), or
// else an edition of its own. There it writes what the functions ask of AWS into
// the file SIGNALBOX_CALLS, if there is one. SIGNALBOX_GATEWAY=sam says that what
// listens is sam local.
func run(m *testing.M) (code int, err error) {
	spec, err := openapi.Load(descriptionFile)
	if err != nil {
		return 0, err
	}
	the = suite{spec: spec, requestIDs: &sync.Map{}, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if err := choose(); err != nil {
		return 0, err
	}
	if base := os.Getenv("SIGNALBOX_BASE_URL"); base != "" {
		if the.place, err = open(base, os.Getenv("SIGNALBOX_STACK")); err != nil {
			return 0, err
		}
		return m.Run(), nil
	}
	state, err := os.MkdirTemp("", "signalbox-contract-")
	if err != nil {
		return 0, fmt.Errorf("making a state folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	if os.Getenv("SIGNALBOX_CALLS") != "" {
		the.calls = &calls{seen: make(map[string]bool)}
	}
	if the.local, the.place, err = startLocal(state, nil); err != nil {
		return 0, err
	}
	code = m.Run()
	err = the.local.stop()
	if the.calls != nil {
		err = errors.Join(err, the.calls.write(os.Getenv("SIGNALBOX_CALLS")))
	}
	return code, err
}
