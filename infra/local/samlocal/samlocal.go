// Package samlocal lets `sam local` serve the data of a running local server. SAM runs the
// functions in containers, so they need an address by which a container reaches the engines.
// SAM gives them the user's own AWS credentials, so a proxy signs their requests again for
// the engines. SAM reads names and parameters from files. samconfig.toml names the files
// and the host.
package samlocal

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"signalbox.dev/infra/local/engines"
	"signalbox.dev/infra/local/state"
	"signalbox.dev/infra/local/template"
)

// Folder is the folder, in the state folder, of the files that `sam local` needs. They
// exist while the engines run. If they are missing, SAM's error contains the folder's name.
const Folder = "while-make-run-runs"

// Host is this machine's name in containers.
const Host = "make-run"

// Config configures files and proxy for `sam local`.
type Config struct {
	State string // the local server's state folder
	// Port is the preferred port of the proxy. If it is taken or 0, the proxy uses any port.
	Port    int
	Engines *engines.Engines
	// Functions are the template's functions, with resolved environments.
	Functions  []template.Resource[template.Function]
	Parameters map[string]string // of the template
	// Events are sample events, by the logical ids of their functions.
	Events map[string][]byte
	// Log gets errors between containers and engines.
	Log *slog.Logger
}

// Start starts the proxy and writes the files. end ends the proxy and removes the files
// that show that it runs.
func Start(c Config) (end func() error, err error) {
	p, err := startProxy(c)
	if err != nil {
		return nil, fmt.Errorf("serving containers: %w", err)
	}
	folder := filepath.Join(c.State, Folder)
	end = func() error { return errors.Join(os.RemoveAll(folder), p.close()) }
	if err := c.write(folder, p.port); err != nil {
		return nil, errors.Join(fmt.Errorf("writing what sam local reads: %w", err), end())
	}
	return end, nil
}

func (c Config) write(folder string, port int) error {
	url := "http://" + net.JoinHostPort(Host, strconv.Itoa(port))
	environment := make(map[string]map[string]string)
	for _, f := range c.Functions {
		environment[f.ID] = maps.Clone(f.Properties.Environment.Variables)
		for name := range environment[f.ID] {
			if strings.HasPrefix(name, "AWS_ENDPOINT_URL") {
				environment[f.ID][name] = url
			}
		}
	}
	parameters := map[string]string{}
	maps.Copy(parameters, c.Parameters)
	// Containers run this machine's architecture, whatever is deployed.
	parameters["Architecture"] = strings.Replace(runtime.GOARCH, "amd64", "x86_64", 1)

	events := filepath.Join(c.State, "events")
	if err := os.MkdirAll(events, 0o700); err != nil {
		return err
	}
	for function, event := range c.Events {
		if err := state.Write(filepath.Join(events, function+".json"), json.RawMessage(event)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	// SAM reads parameters from YAML and TOML only. JSON is YAML.
	return errors.Join(
		state.Write(filepath.Join(folder, "parameters.yaml"), parameters),
		state.Write(filepath.Join(folder, "env.json"), environment))
}
